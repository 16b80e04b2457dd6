/* SPDX-License-Identifier: MIT
 *
 * What peers read from a full socket; see progress.h.
 */
#include "transport/progress.h"

#include "base/apart.h"

#define LOOKS 4 /* checks within write_timeout_ms: a peer that stops is noticed that much later */

void rd_progress_begin(rd_conn *conn) {
    conn->deadlines.full_unread = conn->transport->count_unread(conn);
}

void rd_progress_look(rd_conn *conn) {
    const rd_conn_set *set = conn->set;
    if (conn->deadlines.full_unread == 0 || conn->deadlines.write == UINT64_MAX) return;
    const uint32_t unread = conn->transport->count_unread(conn);
    if (unread >= conn->deadlines.full_unread) return;
    conn->deadlines.write = set->loop->now_ms + (uint64_t)set->settings->write_timeout_ms;
    conn->deadlines.full_unread = unread;
}

RD_APART uint64_t rd_progress_due(const rd_conn *conn) {
    if (conn->deadlines.full_unread == 0 || conn->deadlines.write == UINT64_MAX) return UINT64_MAX;
    const uint64_t now = conn->set->loop->now_ms;
    const uint64_t timeout = (uint64_t)conn->set->settings->write_timeout_ms;
    const uint64_t step = timeout / LOOKS, since = conn->deadlines.write - timeout;
    return since + ((now - since) / step + 1) * step;
}

bool rd_progress_while_lingering(rd_conn *conn) {
    const uint32_t before = conn->deadlines.full_unread,
                   unread = conn->transport->count_unread(conn);
    conn->deadlines.full_unread = unread;
    return unread > 0 && unread < before;
}

/* SPDX-License-Identifier: MIT
 *
 * What peers read from a full socket; see progress.h.
 */
#include "transport/progress.h"

#include "base/alloc.h"
#include "base/apart.h"

#define LOOKS 4 /* checks within write_timeout_ms: a peer that stops is noticed that much later */

RD_APART rd_stall *rd_stall_of(rd_conn *conn) {
    if (conn->stall != NULL) return conn->stall;
    conn->stall = rd_alloc_zero(sizeof(*conn->stall));
    conn->stall->conn = conn;
    conn->stall->deadline_ms = UINT64_MAX;
    rd_list_init(&conn->stall->in_set);
    return conn->stall;
}

static uint64_t timeout_of(const rd_conn *conn) {
    return (uint64_t)conn->set->settings->write_timeout_ms;
}

RD_APART void rd_progress_set_deadline(rd_conn *conn) {
    rd_stall *stall = rd_stall_of(conn);
    stall->deadline_ms = conn->set->loop->now_ms + timeout_of(conn);
    stall->full_unread = 0;
}

RD_APART void rd_progress_end(rd_conn *conn) {
    conn->stall->deadline_ms = UINT64_MAX;
    conn->stall->full_unread = 0;
}

void rd_progress_begin(rd_conn *conn) {
    rd_stall_of(conn)->full_unread = conn->transport->count_unread(conn);
}

static bool is_watched(const rd_stall *stall) {
    return stall != NULL && stall->full_unread != 0 && stall->deadline_ms != UINT64_MAX;
}

void rd_progress_look(rd_conn *conn) {
    if (!is_watched(conn->stall)) return;
    const uint32_t unread = conn->transport->count_unread(conn);
    if (unread >= conn->stall->full_unread) return;
    rd_progress_set_deadline(conn);
    conn->stall->full_unread = unread;
}

uint64_t rd_progress_due(const rd_conn *conn) {
    if (!is_watched(conn->stall)) return UINT64_MAX;
    const uint64_t now = conn->set->loop->now_ms, timeout = timeout_of(conn);
    const uint64_t step = timeout / LOOKS, since = conn->stall->deadline_ms - timeout;
    return since + ((now - since) / step + 1) * step;
}

bool rd_progress_while_lingering(rd_conn *conn) {
    const uint32_t before = conn->stall->full_unread, unread = conn->transport->count_unread(conn);
    conn->stall->full_unread = unread;
    return unread > 0 && unread < before;
}

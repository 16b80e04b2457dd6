/* SPDX-License-Identifier: MIT
 *
 * HTTP/1.1 between two requests; see http1_idle.h.
 */
#include "protocol/http1_idle.h"

bool rd_http1_is_between_requests(const rd_http1 *http) {
    if (http->input != RD_HTTP1_HEAD) return false;
    return http->request == NULL || rd_http1_parser_is_idle(&http->parser);
}

bool rd_http1_is_idle(rd_conn *conn) {
    const rd_http1 *http = rd_http1_of(conn);
    return rd_http1_is_between_requests(http) || http->input == RD_HTTP1_PROXY;
}

void rd_http1_resume(rd_conn *conn, uint32_t served) {
    rd_http1 *http = rd_http1_of(conn);
    if (http->input == RD_HTTP1_PROXY) rd_http1_set_input(http, RD_HTTP1_HEAD);
    http->served = served;
}

bool rd_http1_is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    const rd_http1 *http = rd_http1_of(conn);
    const rd_settings *settings = conn->set->settings;
    if ((http->served > 0) != kept || !rd_http1_is_between_requests(http) || conn->input.end > 0)
        return false;
    int64_t timeout_ms = kept ? settings->keep_alive_timeout_ms : settings->head_timeout_ms;
    return conn->deadline != UINT64_MAX && conn->deadline <= since_ms + (uint64_t)timeout_ms;
}

/* A request may be on its way, so an idle connection stays for a while; its answer, and that of a
 * request under way, says that it is the last. */
void rd_http1_on_shutdown(rd_conn *conn) {
    uint64_t grace_ms = (uint64_t)conn->set->settings->idle_grace_ms;
    uint64_t due = conn->set->loop->now_ms + grace_ms;
    if (!rd_http1_is_idle(conn)) return;
    if (grace_ms == 0) {
        rd_conn_finish(conn, false);
    } else if (due < conn->deadline) {
        rd_conn_set_deadline(conn, due);
    }
}

bool rd_http1_is_movable(rd_conn *conn) {
    const rd_http1 *http = rd_http1_of(conn);
    return http->input == RD_HTTP1_HEAD || http->input == RD_HTTP1_PROXY;
}

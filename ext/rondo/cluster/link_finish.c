/* SPDX-License-Identifier: MIT
 *
 * The end of a link: sends what is queued although no thread runs the loop any more; see link.h.
 */
#include <poll.h>

#include "system/clock.h"
#include "cluster/link.h"

/* Returns how many bytes are unsent. Sets the descriptor they wait for. */
static size_t flush_some(rd_link *link, int *fd) {
    size_t left = 0;
    rd_loop *loop = link->conns.loop;
    rd_loop_lock(loop);
    rd_loop_refresh(loop);
    if (link->conn != NULL) rd_conn_flush(link->conn);
    if (link->conn != NULL) {
        left = link->conn->out.bytes;
        *fd = link->conn->source.fd;
    }
    rd_loop_unlock(loop);
    return left;
}

void rd_link_finish(rd_link *link, int64_t timeout_ms) {
    const uint64_t due = rd_clock_ms() + (uint64_t)timeout_ms;
    struct pollfd room = {.fd = -1, .events = POLLOUT};
    while (flush_some(link, &room.fd) > 0) {
        const uint64_t now = rd_clock_ms();
        if (now >= due) return;
        poll(&room, 1, (int)(due - now));
    }
}

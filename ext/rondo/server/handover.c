/* SPDX-License-Identifier: MIT
 *
 * Which connections change their worker, and how they go on where they come to; see handover.h.
 */
#include "server/handover.h"

#include <string.h>
#include <unistd.h>

#include "system/clock.h"
#include "protocol/http1_idle.h"
#include "server/server.h"

#define QUEUED_PER_TURN  16 /* looked at */
#define RECEIVE_PER_TURN 64
#define HOPS_MAX         4
#define SLEEPS_NS        1000000 /* the watch thread there for so long, the last thread asleep */
#define COMPUTES_NS      2000000 /* CPU time used, while the watch thread has been there */
#define GUESTS_STAY_MS   200     /* after the last time that worker was stuck */

static uint64_t score(const _Atomic uint64_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* ---- new connections ---- */

/* Two workers may have chosen the same third one at the same time: it passes the connection on. */
static bool pass_on(rd_server *server, int fd, const rd_address *peer, uint32_t hops) {
    const rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL || hops >= HOPS_MAX) return false;
    uint64_t here = server->conns.count + score(&server->score->arriving);
    int64_t to = rd_siblings_lightest(server, rd_siblings_load_of, here);
    if (to < 0) return false;
    rd_handover_header header = {.peer = *peer, .hops = (uint8_t)(hops + 1)};
    if (!rd_siblings_send(server, to, fd, &header, NULL)) return false;
    close(fd);
    return true;
}

bool rd_handover_accepted(rd_server *server, int fd, const rd_address *peer) {
    return pass_on(server, fd, peer, 0);
}

/* ---- requests that wait ---- */

/* Microseconds until a worker would come to one more request; a worker that is stuck itself may
 * never, and one with a full queue would answer 503. */
static uint64_t delay_of(const rd_server *server, const rd_score_slot *slot) {
    uint64_t busy = score(&slot->busy), waiting = score(&slot->queue) + score(&slot->arriving);
    uint64_t most = (uint64_t)server->settings.max_queue;
    if (score(&slot->standing_in) && busy >= score(&slot->max_threads)) return UINT64_MAX;
    if (most > 0 && waiting >= most) return UINT64_MAX;
    return (waiting + busy) * score(&slot->call_us);
}

/* The same for the request at this place of the own queue. What holds the leader has lasted for a
 * while, and nothing is known but that it may well last as long again. */
static uint64_t delay_here(const rd_server *server, uint64_t place) {
    uint64_t away_us = (rd_clock_ns() - server->watch_since_ns) / 1000;
    return away_us + place * score(&server->score->call_us);
}

/* Whether the request can begin anew elsewhere: nothing of an answer, all of its body in memory and
 * as it was sent. */
static bool can_move(const rd_request *request) {
    rd_conn *conn = request->conn;
    if (conn == NULL || !rd_conn_is_open(conn) || conn->protocol != &rd_protocol_http1)
        return false;
    if (!conn->transport->can_move || conn->read_eof || conn->out.bytes > 0) return false;
    if (!request->body_complete || rd_http1_of(conn)->started) return false;
    if (request->body.spool != NULL) return false;
    return request->body.size == 0 ? request->head.framing != RD_FRAMING_CHUNKED
                                   : request->head.framing == RD_FRAMING_LENGTH;
}

/* Head, body, and what was read ahead; 0 when it is too much. */
static size_t unanswered_bytes(const rd_request *request, char *bytes) {
    const rd_slice parts[] = {
        rd_slice_of(request->bytes, request->head_len),
        rd_slice_of(rd_buffer_ptr(&request->body.memory), rd_buffer_len(&request->body.memory)),
        rd_slice_of(rd_buffer_ptr(&request->conn->input), rd_buffer_len(&request->conn->input)),
    };
    size_t len = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (len + parts[i].len > RD_HANDOVER_BYTES_MAX) return 0;
        if (parts[i].ptr != NULL) memcpy(bytes + len, parts[i].ptr, parts[i].len);
        len += parts[i].len;
    }
    return len;
}

/* The loop must not know the descriptor any more when the other worker gets it. */
static bool move_request(rd_server *server, rd_request *request, int64_t to) {
    char *bytes = server->loop.receive; /* nobody reads just now */
    rd_conn *conn = request->conn;
    size_t len = unanswered_bytes(request, bytes);
    if (len == 0) return false;
    uint64_t waited_us = (server->loop.now_ns - request->ready_ns) / 1000;
    rd_handover_header header = {
        .len = (uint32_t)len,
        .served = rd_http1_of(conn)->served,
        .time = waited_us > UINT32_MAX ? UINT32_MAX : (uint32_t)waited_us,
        .peer = conn->peer,
    };
    rd_conn_leave_loop(conn);
    if (!rd_siblings_send(server, to, conn->source.fd, &header, bytes)) {
        rd_conn_rejoin_loop(conn);
        return false;
    }
    request->detached = true;
    close(rd_conn_detach(conn));
    return true;
}

/* Whether those who wait do so for the application. With more processes than CPUs a leader often
 * waits some milliseconds for one, and its requests would be no better off elsewhere: it is never
 * stuck by that alone. One that sleeps while threads are left is about to be relieved. */
static bool is_stuck(const rd_server *server) {
    const rd_score_slot *here = server->score;
    uint64_t away_ns = rd_clock_ns() - server->watch_since_ns;
    if (away_ns < SLEEPS_NS) return false;
    switch (rd_thread_state_of(&server->leader)) {
    case RD_THREAD_SLEEPING:
        if (score(&here->busy) >= score(&here->max_threads)) return true;
        break;
    case RD_THREAD_RUNNABLE:
        return rd_thread_cpu_ns(&server->leader) >= server->leader_cpu_ns + COMPUTES_NS;
    case RD_THREAD_UNKNOWN:
        break;
    }
    return away_ns >= RD_HANDOVER_AWAY_NS;
}

void rd_handover_queued(rd_server *server) {
    const rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL || !is_stuck(server)) return;
    atomic_store_explicit(&server->score->stuck_ms, server->loop.now_ms, memory_order_relaxed);
    rd_list *node = server->queue.next;
    for (uint64_t place = 0; place < QUEUED_PER_TURN && node != &server->queue; place++) {
        rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
        node = node->next;
        if (!can_move(request)) continue;
        int64_t to = rd_siblings_lightest(server, delay_of, delay_here(server, place));
        if (to < 0) continue;
        if (!move_request(server, request, to)) continue;
        rd_list_unlink(&request->in_queue);
        server->queue_len--;
        rd_request_unref(request);
    }
}

/* Connections of a worker that has been there for them for a while: going back for a moment only
 * makes them wait once more. */
static uint64_t load_where_free(const rd_server *server, const rd_score_slot *slot) {
    uint64_t stuck_ms = score(&slot->stuck_ms);
    bool was_stuck = stuck_ms > 0 && server->loop.now_ms < stuck_ms + GUESTS_STAY_MS;
    return was_stuck || score(&slot->standing_in) ? UINT64_MAX : rd_siblings_load_of(server, slot);
}

/* The worker with clearly fewer of them; -1 without one. */
static int64_t host_of_guests(const rd_server *server) {
    uint64_t here = server->conns.count + score(&server->score->arriving);
    return here < 2 ? -1 : rd_siblings_lightest(server, load_where_free, here - 1);
}

bool rd_handover_returns(const rd_server *server) {
    return host_of_guests(server) >= 0;
}

static bool move_guest(rd_server *server, rd_request *request) {
    int64_t to = can_move(request) ? host_of_guests(server) : -1;
    return to >= 0 && move_request(server, request, to);
}

void rd_handover_guests(rd_server *server) {
    for (rd_list *node; (node = rd_list_shift(&server->guests)) != NULL;) {
        rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
        if (move_guest(server, request)) {
            server->queue_len--;
            rd_request_unref(request);
        } else {
            rd_list_append(&server->queue, &request->in_queue);
        }
    }
}

/* ---- receiving ---- */

/* A request that has waited elsewhere, and what came after it. */
static void go_on_with_request(rd_conn *conn, const rd_handover_header *header, const char *bytes) {
    rd_server *server = RD_CONTAINER(conn->set, rd_server, conns);
    server->handed_wait_ns = (uint64_t)header->time * 1000 + 1;
    conn->guest = true;
    rd_http1_resume(conn, header->served);
    rd_conn_take_data(conn, bytes, header->len);
    server->handed_wait_ns = 0;
}

/* Its deadline goes on as well, unless more has come meanwhile. */
static void go_on_idle(rd_conn *conn, const rd_handover_header *header, const char *bytes) {
    if ((header->flags & RD_HANDOVER_NEW) == 0) rd_http1_resume(conn, header->served);
    if (header->len > 0) {
        rd_conn_take_data(conn, bytes, header->len);
    } else {
        rd_conn_read_now(conn);
    }
    if (!rd_conn_is_open(conn) || header->time == UINT32_MAX) return;
    bool as_before = header->len > 0 ? rd_http1_is_movable(conn) : rd_http1_is_idle(conn);
    if (as_before) rd_conn_set_deadline(conn, conn->set->loop->now_ms + header->time);
}

static void adopt(rd_server *server, int fd, const rd_handover_header *header, const char *bytes) {
    const bool is_idle = header->flags & RD_HANDOVER_IDLE, is_fresh = !is_idle && header->len == 0;
    if (is_fresh && pass_on(server, fd, &header->peer, header->hops)) return;
    rd_conn *conn =
        rd_conn_open(&server->conns, fd, &rd_transport_tcp, &rd_protocol_http1, &header->peer);
    rd_conn_ref(conn);
    server->handed_in++;
    atomic_store_explicit(&server->score->connections, server->conns.count, memory_order_relaxed);
    if (is_idle) {
        go_on_idle(conn, header, bytes);
    } else if (is_fresh) {
        rd_conn_read_now(conn);
    } else {
        go_on_with_request(conn, header, bytes);
    }
    if (rd_conn_ends(conn)) rd_conn_shut_down(conn);
    rd_conn_unref(conn);
}

void rd_handover_receive(rd_server *server) {
    rd_handover_header header;
    char *bytes = server->loop.receive;
    int fd;
    for (int left = RECEIVE_PER_TURN; left > 0; left--) {
        if (!rd_siblings_receive(server, &header, bytes, &fd)) break;
        if (fd >= 0) adopt(server, fd, &header, bytes);
    }
    rd_server_publish(server);
}

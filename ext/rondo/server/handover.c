/* SPDX-License-Identifier: MIT
 *
 * Which connections change their worker, and how the other worker continues them; see handover.h.
 */
#include "server/handover.h"

#include <sys/socket.h>
#include <unistd.h>

#include "system/clock.h"
#include "protocol/protocols.h"
#include "server/server.h"
#include "system/socket.h"

#define LOOKED_AT        128 /* requests of the queue in a turn */
#define MOVED_PER_TURN   16
#define RECEIVE_PER_TURN 64
#define HOPS_MAX         4
#define SLEEPS_NS        1000000 /* of turns by the watch thread, the last thread sleeps */
#define COMPUTES_NS      2000000 /* of CPU time used while the watch thread ran turns */
#define GUESTS_STAY_MS   200     /* after the other worker was last stuck */
#define ASKED_NS         500000

static uint64_t score(const _Atomic uint64_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* ---- workers that are stuck ---- */

static bool is_exhausted(const rd_server *server) {
    const rd_score_row *here = server->score;
    if (server->hooks.is_exhausted != NULL) return server->hooks.is_exhausted(server);
    return score(&here->busy) >= score(&here->max_threads);
}

/* Whether requests wait because of the application. With more processes than CPUs, a leader often
 * waits some milliseconds for a CPU. Its requests would wait as long elsewhere, so that alone does
 * not make it stuck. If the leader sleeps and other threads are free, one soon takes over. */
static bool looks_stuck(const rd_server *server, uint64_t away_ns) {
    if (away_ns < SLEEPS_NS) return false;
    switch (rd_thread_state_of(&server->lead.thread)) {
    case RD_THREAD_SLEEPING:
        if (is_exhausted(server)) return true;
        break;
    case RD_THREAD_RUNNABLE:
        return rd_thread_cpu_ns(&server->lead.thread) >= server->lead.cpu_ns + COMPUTES_NS;
    case RD_THREAD_UNKNOWN:
        break;
    }
    return away_ns >= RD_HANDOVER_AWAY_NS;
}

/* The same, asked at most once in ASKED_NS: each question is a file of the kernel. */
static bool is_stuck(rd_server *server) {
    rd_lead *lead = &server->lead;
    const uint64_t now = rd_clock_ns();
    if (lead->stuck_ns > lead->watch_since_ns && now - lead->stuck_ns < ASKED_NS) return true;
    const bool is = looks_stuck(server, now - lead->watch_since_ns);
    if (is) lead->stuck_ns = now;
    return is;
}

/* ---- new connections ---- */

/* The load of a worker, unless it is stuck now. Its watch thread says so with each of its turns. */
static uint64_t load_unless_stuck(const rd_server *server, const rd_score_row *row) {
    const uint64_t says_ms = 2 * (uint64_t)(RD_WATCH_WAIT_US / 1000);
    const bool is_stuck_now =
        score(&row->standing_in) && server->loop.now_ms < score(&row->stuck_ms) + says_ms;
    return is_stuck_now ? UINT64_MAX : rd_siblings_load_of(server, row);
}

/* The worker for a new connection, if it is not this one. If the connection can never move again, a
 * stuck worker is the wrong one, however few it has: all its requests would have to be forwarded.
 */
static int64_t host_of_new(rd_server *server, rd_slice listener) {
    const uint64_t here = server->conns.count + score(&server->score->arriving);
    const rd_listener_name *name = rd_listener_names_find(&server->accepting.names, listener);
    if (name == NULL || name->transport->can_move) {
        return rd_siblings_lightest(server, rd_siblings_load_of, here);
    }
    const bool must_go = server->lead.watch_owns && is_stuck(server);
    return rd_siblings_lightest(server, load_unless_stuck, must_go ? UINT64_MAX : here);
}

/* Two workers may have chosen this one at the same time: then it passes the connection on. */
static bool pass_on(rd_server *server, int fd, const rd_address *peer, rd_slice listener,
                    uint32_t hops) {
    if (server->siblings.board == NULL || hops >= HOPS_MAX) return false;
    const int64_t to = host_of_new(server, listener);
    if (to < 0) return false;
    rd_handover handover = {.header = {.peer = *peer, .hops = (uint8_t)(hops + 1)},
                            .listener = listener};
    if (!rd_siblings_send(server, to, fd, &handover)) return false;
    close(fd);
    return true;
}

bool rd_handover_accepted(rd_server *server, int fd, const rd_address *peer, rd_slice listener) {
    return pass_on(server, fd, peer, listener, 0);
}

/* ---- connections ---- */

bool rd_handover_give(rd_server *server, int64_t to, rd_conn *conn, const rd_packed *packed,
                      int flags, uint32_t time) {
    rd_handover handover = {
        .header = {.served = packed->served,
                   .time = time,
                   .flags = (uint8_t)flags,
                   .peer = conn->peer},
        .listener = rd_listener_name_of_conn(&server->accepting.names, conn),
        .protocol = rd_protocol_name_of(conn),
        .packed = *packed,
    };
    rd_conn_leave_loop(conn);
    const bool has_left = rd_siblings_send(server, to, conn->source.fd, &handover);
    if (!has_left) rd_conn_rejoin_loop(conn);
    return has_left;
}

/* ---- requests that wait ---- */

/* Microseconds until a worker would take one more request. A stuck worker may never take it, and
 * one with a full queue would answer 503: both give UINT64_MAX. */
static uint64_t delay_of(const rd_server *server, const rd_score_row *row) {
    uint64_t busy = score(&row->busy), waiting = score(&row->queue) + score(&row->arriving);
    uint64_t most = (uint64_t)server->settings.max_queue;
    if (score(&row->standing_in) && busy >= score(&row->max_threads)) return UINT64_MAX;
    if (most > 0 && waiting >= most) return UINT64_MAX;
    return (waiting + busy) * score(&row->call_us);
}

/* The same for the request at this place of this worker's queue. What holds the leader has lasted
 * for a while; the best guess is that it lasts as long again. */
static uint64_t delay_here(const rd_server *server, uint64_t place) {
    uint64_t away_us = (rd_clock_ns() - server->lead.watch_since_ns) / 1000;
    return away_us + place * score(&server->score->call_us);
}

/* Whether the request can start over in another worker. */
static bool can_move(const rd_request *request, rd_packed *packed) {
    rd_conn *conn = request->conn;
    return conn != NULL && rd_conn_pack(conn, true, packed) &&
           rd_packed_len(packed) <= RD_HANDOVER_BYTES_MAX;
}

/* A request that moves leaves the queue. */
static bool move_request(rd_server *server, rd_request *request, const rd_packed *packed,
                         int64_t to) {
    rd_conn *conn = request->conn;
    uint64_t waited_us = (server->loop.now_ns - request->times.ready_ns) / 1000;
    uint32_t time = waited_us > UINT32_MAX ? UINT32_MAX : (uint32_t)waited_us;
    if (!rd_handover_give(server, to, conn, packed, 0, time)) return false;
    request->detached = true;
    rd_conn_close(conn); /* the other worker has a copy of the descriptor */
    return true;
}

/* The request goes to another worker, with its connection if that can move. */
static bool leave_stuck(rd_server *server, rd_request *request, uint64_t below) {
    rd_packed packed;
    const bool moves = can_move(request, &packed);
    if (!moves && !rd_forward_can_begin(server, request)) return false;
    const int64_t to = rd_siblings_lightest(server, delay_of, below);
    if (to < 0) return false;
    return moves ? move_request(server, request, &packed, to)
                 : rd_forward_begin(server, request, to);
}

/* A walk over the queue. */
typedef struct rd_leaving {
    rd_server *server;
    uint64_t place; /* of the next request */
    int moved;
} rd_leaving;

static bool is_over(const rd_leaving *leaving) {
    return leaving->place >= LOOKED_AT || leaving->moved >= MOVED_PER_TURN;
}

static void look_at(rd_leaving *leaving, rd_request *request) {
    const uint64_t delay_us = delay_here(leaving->server, leaving->place++);
    leaving->moved += leave_stuck(leaving->server, request, delay_us);
}

/* The requests of a carrier's line go one by one: one that has to stay does not hold up the others.
 */
static void leave_line(rd_leaving *leaving, rd_line *line) {
    rd_lines *lines = RD_CONTAINER(line, rd_lines, calls);
    rd_lines_ref(lines);
    for (rd_list *node = line->waiting.next, *next; node != &line->waiting && !is_over(leaving);
         node = next) {
        next = node->next;
        look_at(leaving, RD_CONTAINER(node, rd_request, in_queue));
    }
    rd_lines_unref(lines);
}

static void leave_fifo(rd_leaving *leaving, rd_list *fifo) {
    for (rd_list *node = fifo->next, *next; node != fifo && !is_over(leaving); node = next) {
        next = node->next;
        rd_standing *standing = RD_CONTAINER(node, rd_standing, node);
        if (standing->is_line) {
            leave_line(leaving, RD_CONTAINER(standing, rd_line, standing));
        } else {
            look_at(leaving, RD_CONTAINER(standing, rd_request, queued.standing));
        }
    }
}

void rd_handover_queued(rd_server *server) {
    const rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL || !is_stuck(server)) return;
    atomic_store_explicit(&server->score->stuck_ms, server->loop.now_ms, memory_order_relaxed);
    rd_leaving leaving = {.server = server};
    leave_fifo(&leaving, &server->queue.next);
    leave_fifo(&leaving, &server->queue.lines);
    leave_fifo(&leaving, &server->queue.full);
}

/* The load of a worker, if it has not been stuck for a while. If a connection went back too early,
 * it would soon wait again. */
static uint64_t load_where_free(const rd_server *server, const rd_score_row *row) {
    uint64_t stuck_ms = score(&row->stuck_ms);
    bool was_stuck = stuck_ms > 0 && server->loop.now_ms < stuck_ms + GUESTS_STAY_MS;
    return was_stuck || score(&row->standing_in) ? UINT64_MAX : rd_siblings_load_of(server, row);
}

/* The worker with clearly fewer connections; -1: there is none. */
static int64_t host_of_guests(const rd_server *server) {
    uint64_t here = server->conns.count + score(&server->score->arriving);
    return here < 2 ? -1 : rd_siblings_lightest(server, load_where_free, here - 1);
}

bool rd_handover_returns(const rd_server *server) {
    return host_of_guests(server) >= 0;
}

bool rd_handover_move_guest(rd_server *server, rd_request *request) {
    rd_packed packed;
    int64_t to = can_move(request, &packed) ? host_of_guests(server) : -1;
    return to >= 0 && move_request(server, request, &packed, to);
}

/* ---- receiving ---- */

/* Continues with a request that has waited in another worker, and the bytes that came after it. */
static void go_on_with_request(rd_server *server, rd_conn *conn, const rd_handover *handover) {
    server->queue.handed_wait_ns = (uint64_t)handover->header.time * 1000 + 1;
    conn->guest = true;
    rd_conn_unpack(conn, &handover->packed);
    server->queue.handed_wait_ns = 0;
}

static bool is_fresh(const rd_handover_header *header) {
    return (header->flags & RD_HANDOVER_IDLE) == 0 && header->len == header->names;
}

static const rd_protocol *protocol_of(const rd_server *server, const rd_transport *transport,
                                      const rd_handover *handover) {
    const rd_handover_header *header = &handover->header;
    if (handover->protocol.len > 0) return rd_protocol_find(handover->protocol);
    if (handover->packed.begun && !is_fresh(header)) return rd_protocol_first;
    return rd_protocol_begin(&server->conns, transport, &header->peer);
}

/* Opens the connection as its listener would have. NULL: this worker has no listener or protocol of
 * that name. */
static rd_conn *open_conn(rd_server *server, int fd, const rd_handover *handover) {
    const rd_listener_name *name =
        rd_listener_names_find(&server->accepting.names, handover->listener);
    if (name == NULL) return NULL;
    const rd_protocol *protocol = protocol_of(server, name->transport, handover);
    if (protocol == NULL || protocol->unpack == NULL) return NULL;
    rd_conn *conn =
        rd_conn_open(&server->conns, fd, name->transport, protocol, &handover->header.peer);
    conn->origin.site = name->site;
    return conn;
}

/* Answers a request that comes without its connection. It has waited in the other worker. */
static void adopt_forward(rd_server *server, int fd, const rd_handover *handover) {
    const rd_handover_header *header = &handover->header;
    const rd_listener_name *name =
        rd_listener_names_find(&server->accepting.names, handover->listener);
    if (name == NULL || header->len == header->names) {
        server->counts.dropped++;
        const rd_slice busy = rd_protocol_busy();
        send(fd, busy.ptr, busy.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(fd);
        return;
    }
    rd_conn *conn = rd_conn_open_forwarded(&server->conns, fd, name->transport->is_secure,
                                           rd_protocol_first, &header->peer);
    conn->origin.site = name->site;
    rd_conn_ref(conn);
    server->forwards.in++;
    server->queue.handed_wait_ns = (uint64_t)header->time * 1000 + 1;
    rd_conn_unpack(conn, &handover->packed);
    server->queue.handed_wait_ns = 0;
    rd_conn_unref(conn);
}

static void adopt(rd_server *server, int fd, const rd_handover *handover) {
    const rd_handover_header *header = &handover->header;
    if (header->flags & RD_HANDOVER_FORWARD) {
        adopt_forward(server, fd, handover);
        return;
    }
    const bool is_idle = header->flags & RD_HANDOVER_IDLE;
    if (is_fresh(header) && pass_on(server, fd, &header->peer, handover->listener, header->hops))
        return;
    rd_conn *conn = open_conn(server, fd, handover);
    if (conn == NULL) {
        server->counts.dropped++;
        close(fd);
        return;
    }
    rd_conn_ref(conn);
    server->counts.handed_in++;
    atomic_store_explicit(&server->score->connections, server->conns.count, memory_order_relaxed);
    if (is_idle) {
        rd_conn_unpack(conn, &handover->packed);
    } else if (is_fresh(header)) {
        rd_conn_read_now(conn);
    } else {
        go_on_with_request(server, conn, handover);
    }
    if (rd_conn_is_open(conn) && rd_conn_ends(conn)) rd_conn_shut_down(conn);
    rd_conn_unref(conn);
}

void rd_handover_receive(rd_server *server) {
    rd_handover handover;
    char *bytes = server->loop.receive; /* free: no connection is being read */
    int fd;
    for (int left = RECEIVE_PER_TURN; left > 0; left--) {
        if (!rd_siblings_receive(server, &handover, bytes, &fd)) break;
        if (fd >= 0) adopt(server, fd, &handover);
    }
    rd_server_write_scores(server);
}

/* SPDX-License-Identifier: MIT
 *
 * Choosing a sibling, writing and reading the messages between workers; see handover.h.
 */
#include "server/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "protocol/http1.h"
#include "server/server.h"

#define MAGIC            0x52444831u
#define QUEUED_PER_TURN  16 /* looked at */
#define RECEIVE_PER_TURN 64
#define HOPS_MAX         4
#define SLEEPS_NS        1000000 /* the watch thread there for so long, the last thread asleep */
#define COMPUTES_NS      2000000 /* CPU time used, while the watch thread has been there */
#define GUESTS_STAY_MS   200     /* after the last time that worker was stuck */

/* In front of the bytes. Both ends are on the same machine, so it is a plain struct; they may be of
 * different versions during a restart, so MAGIC changes with it. */
typedef struct rd_handover_header {
    uint32_t magic;
    uint32_t len;       /* of the bytes; 0: a connection that has said nothing yet */
    uint32_t served;    /* requests so far */
    uint32_t waited_us; /* the request, until now */
    uint32_t hops;      /* a new connection may be passed on, but not for ever */
    uint32_t to;        /* slot it was meant for; the inbox may be another process's by now */
    rd_address peer;
} rd_handover_header;

/* ---- siblings ---- */

void rd_siblings_init(rd_siblings *siblings) {
    *siblings = (rd_siblings){.inbox.fd = -1};
}

static void on_inbox(rd_source *source, unsigned ready) {
    (void)ready;
    rd_handover_receive(RD_CONTAINER(source, rd_server, siblings.inbox));
}

int rd_siblings_join(rd_server *server, const rd_scoreboard *board, uint32_t own, int inbox,
                     const int *outboxes) {
    rd_siblings *siblings = &server->siblings;
    int flags = fcntl(inbox, F_GETFL);
    if (flags < 0 || fcntl(inbox, F_SETFL, flags | O_NONBLOCK) != 0) return -1;
    siblings->inbox = (rd_source){.fd = inbox, .on_ready = on_inbox};
    if (rd_loop_add(&server->loop, &siblings->inbox, RD_READABLE) != 0) return -1;
    siblings->board = board;
    siblings->own = own;
    siblings->outboxes = rd_alloc(board->slot_count * sizeof(int));
    memcpy(siblings->outboxes, outboxes, board->slot_count * sizeof(int));
    return 0;
}

bool rd_siblings_expect(const rd_server *server) {
    return server->siblings.inbox.fd >= 0;
}

void rd_siblings_clear(rd_server *server) {
    rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL) return;
    if (rd_siblings_expect(server)) rd_loop_remove(&server->loop, &siblings->inbox);
    rd_free(siblings->outboxes);
    rd_siblings_init(siblings);
}

static uint64_t score(const _Atomic uint64_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* A sender counts first and looks at the state then, so one of the two sees the other. */
void rd_siblings_leave(rd_server *server) {
    rd_siblings *siblings = &server->siblings;
    if (!rd_siblings_expect(server)) return;
    atomic_store(&server->score->state, RD_SCORE_DRAINING);
    if (atomic_load(&server->score->arriving) > 0 && server->stopping != RD_STOP_NOW) return;
    rd_loop_remove(&server->loop, &siblings->inbox);
    siblings->inbox.fd = -1;
}

/* Connections of a worker, those on their way to it included. */
static uint64_t load_of(const rd_server *server, const rd_score_slot *slot) {
    (void)server;
    return score(&slot->connections) + score(&slot->arriving);
}

static bool takes_part(const rd_siblings *siblings, uint32_t number) {
    const rd_score_slot *slot = &siblings->board->slots[number];
    return number != siblings->own && siblings->outboxes[number] >= 0 &&
           score(&slot->state) == RD_SCORE_READY && score(&slot->listening) != 0;
}

/* The worker that takes part with the least of what `weigh` says; -1 without one. */
typedef uint64_t (*rd_weigh)(const rd_server *server, const rd_score_slot *slot);

static int64_t lightest(const rd_server *server, rd_weigh weigh, uint64_t below) {
    const rd_siblings *siblings = &server->siblings;
    int64_t best = -1;
    for (uint32_t i = 0; i < siblings->board->slot_count; i++) {
        if (!takes_part(siblings, i)) continue;
        uint64_t weight = weigh(server, &siblings->board->slots[i]);
        if (weight >= below) continue;
        below = weight;
        best = i;
    }
    return best;
}

/* ---- sending ---- */

static void count_arrival(const rd_siblings *siblings, uint32_t slot) {
    if (slot >= siblings->board->slot_count) return;
    _Atomic uint64_t *arriving = &siblings->board->slots[slot].arriving;
    uint64_t count = atomic_load(arriving); /* a cleared slot begins at 0 */
    while (count > 0 && !atomic_compare_exchange_weak(arriving, &count, count - 1)) {
    }
}

/* True when the message is in the inbox of slot `to`; the descriptor is still open here. */
static bool send_message(rd_server *server, int64_t to, int fd, rd_handover_header *header,
                         const char *bytes) {
    header->to = (uint32_t)to;
    struct iovec iov[2] = {{header, sizeof(*header)}, {(void *)(uintptr_t)bytes, header->len}};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct msghdr message = {.msg_iov = iov,
                             .msg_iovlen = 2,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof(int));
    rd_score_slot *target = &server->siblings.board->slots[to];
    atomic_fetch_add(&target->arriving, 1);
    int outbox = server->siblings.outboxes[to];
    if (atomic_load(&target->state) == RD_SCORE_READY &&
        sendmsg(outbox, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        server->handed_out++;
        return true;
    }
    count_arrival(&server->siblings, (uint32_t)to);
    return false;
}

/* Two workers may have chosen the same third one at the same time: it passes the connection on. */
static bool pass_on(rd_server *server, int fd, const rd_address *peer, uint32_t hops) {
    const rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL || hops >= HOPS_MAX) return false;
    uint64_t here = server->conns.count + score(&server->score->arriving);
    int64_t to = lightest(server, load_of, here);
    if (to < 0) return false;
    rd_handover_header header = {.magic = MAGIC, .peer = *peer, .hops = hops + 1};
    if (!send_message(server, to, fd, &header, NULL)) return false;
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
    if (conn->transport != &rd_transport_tcp || conn->read_eof || conn->out.bytes > 0) return false;
    if (!request->body_complete || rd_http1_of(conn)->started) return false;
    if (request->body.fd >= 0) return false;
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
        .magic = MAGIC,
        .len = (uint32_t)len,
        .served = rd_http1_of(conn)->served,
        .waited_us = waited_us > UINT32_MAX ? UINT32_MAX : (uint32_t)waited_us,
        .peer = conn->peer,
    };
    rd_conn_leave_loop(conn);
    if (!send_message(server, to, conn->source.fd, &header, bytes)) {
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
        int64_t to = lightest(server, delay_of, delay_here(server, place));
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
    return was_stuck || score(&slot->standing_in) ? UINT64_MAX : load_of(server, slot);
}

/* The worker with clearly fewer of them; -1 without one. */
static int64_t host_of_guests(const rd_server *server) {
    uint64_t here = server->conns.count + score(&server->score->arriving);
    return here < 2 ? -1 : lightest(server, load_where_free, here - 1);
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

static int descriptor_of(struct msghdr *message) {
    int fd = -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            memcpy(&fd, CMSG_DATA(part), sizeof(int));
        }
    }
    return fd;
}

static void adopt(rd_server *server, int fd, const rd_handover_header *header, const char *bytes) {
    if (header->len == 0 && pass_on(server, fd, &header->peer, header->hops)) return;
    rd_conn *conn =
        rd_conn_open(&server->conns, fd, &rd_transport_tcp, &rd_protocol_http1, &header->peer);
    server->handed_in++;
    atomic_store_explicit(&server->score->connections, server->conns.count, memory_order_relaxed);
    if (header->len == 0) {
        rd_conn_read_now(conn);
        return;
    }
    server->handed_wait_ns = (uint64_t)header->waited_us * 1000 + 1;
    conn->guest = true;
    rd_http1_resume(conn, header->served);
    rd_conn_take_data(conn, bytes, header->len);
    server->handed_wait_ns = 0;
}

/* One message; false when there is none. */
static bool receive_one(rd_server *server) {
    rd_handover_header header;
    char *bytes = server->loop.receive;
    struct iovec iov[2] = {{&header, sizeof(header)}, {bytes, RD_HANDOVER_BYTES_MAX}};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = iov,
                             .msg_iovlen = 2,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    ssize_t len = recvmsg(server->siblings.inbox.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (len <= 0) return false;
    bool whole = (size_t)len >= sizeof(header) && header.magic == MAGIC &&
                 header.len == (size_t)len - sizeof(header);
    if (whole) count_arrival(&server->siblings, header.to);
    int fd = descriptor_of(&message);
    if (fd < 0) { /* out of descriptors, in spite of those kept: the kernel closed it */
        server->dropped++;
    } else if (whole) {
        adopt(server, fd, &header, bytes);
    } else {
        close(fd);
    }
    return true;
}

void rd_handover_receive(rd_server *server) {
    for (int left = RECEIVE_PER_TURN; left > 0 && receive_one(server); left--) {
    }
    rd_server_publish(server);
}

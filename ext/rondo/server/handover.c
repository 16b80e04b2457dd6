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
#include "protocol/http1.h"
#include "server/server.h"

#define MAGIC            0x52444831u
#define QUEUED_PER_TURN  16
#define RECEIVE_PER_TURN 64
#define HOPS_MAX         4
#define AWAY_NS          3000000 /* less, and the leader may only be waiting for a CPU */

/* In front of the bytes. Both ends are the same program, so it is a plain struct. */
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

void rd_siblings_clear(rd_server *server) {
    rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL) return;
    rd_loop_remove(&server->loop, &siblings->inbox);
    rd_free(siblings->outboxes);
    rd_siblings_init(siblings);
}

static uint64_t score(const _Atomic uint64_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* Connections of a worker, those on their way to it included. */
static uint64_t load_of(const rd_score_slot *slot) {
    return score(&slot->connections) + score(&slot->arriving);
}

static bool takes_part(const rd_siblings *siblings, uint32_t number) {
    const rd_score_slot *slot = &siblings->board->slots[number];
    return number != siblings->own && siblings->outboxes[number] >= 0 &&
           score(&slot->state) == RD_SCORE_READY && score(&slot->listening) != 0;
}

/* The worker that takes part with the least of what `weigh` says; -1 without one. */
static int64_t lightest(const rd_siblings *siblings, uint64_t (*weigh)(const rd_score_slot *),
                        uint64_t below) {
    int64_t best = -1;
    for (uint32_t i = 0; i < siblings->board->slot_count; i++) {
        if (!takes_part(siblings, i)) continue;
        uint64_t weight = weigh(&siblings->board->slots[i]);
        if (weight >= below) continue;
        below = weight;
        best = i;
    }
    return best;
}

/* ---- sending ---- */

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
    if (sendmsg(outbox, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        server->handed_out++;
        return true;
    }
    atomic_fetch_sub(&target->arriving, 1);
    return false;
}

/* Two workers may have chosen the same third one at the same time: it passes the connection on. */
static bool pass_on(rd_server *server, int fd, const rd_address *peer, uint32_t hops) {
    const rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL || hops >= HOPS_MAX) return false;
    uint64_t here = server->conns.count + score(&server->score->arriving);
    int64_t to = lightest(siblings, load_of, here);
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

/* Requests that are there already; a worker that is stuck itself has no end of them. */
static uint64_t pending_of(const rd_score_slot *slot) {
    uint64_t busy = score(&slot->busy);
    if (score(&slot->standing_in) && busy >= score(&slot->max_threads)) return UINT64_MAX;
    return score(&slot->queue) + score(&slot->arriving) + busy;
}

/* A move must leave the request better off: to nobody before it, or to clearly fewer than here. */
static uint64_t worth_moving_below(const rd_server *server) {
    uint64_t here = server->queue_len + score(&server->score->busy);
    return here > 2 ? here - 1 : 1;
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

void rd_handover_queued(rd_server *server) {
    const rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL) return;
    if (server->loop.now_ns < server->leader_seen_ns + AWAY_NS) return;
    rd_list *node = server->queue.next;
    for (int left = QUEUED_PER_TURN; left > 0 && node != &server->queue; left--) {
        rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
        node = node->next;
        if (!can_move(request)) continue;
        int64_t to = lightest(siblings, pending_of, worth_moving_below(server));
        if (to < 0) return;
        if (!move_request(server, request, to)) continue;
        rd_list_unlink(&request->in_queue);
        server->queue_len--;
        rd_request_unref(request);
    }
}

/* Connections of a worker that is there for them. */
static uint64_t load_where_free(const rd_score_slot *slot) {
    return score(&slot->standing_in) ? UINT64_MAX : load_of(slot);
}

static bool move_guest(rd_server *server, rd_request *request) {
    uint64_t here = server->conns.count + score(&server->score->arriving);
    if (here < 2 || !can_move(request)) return false;
    int64_t to = lightest(&server->siblings, load_where_free, here - 1);
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

static void count_arrival(const rd_siblings *siblings, uint32_t slot) {
    if (slot >= siblings->board->slot_count) return;
    _Atomic uint64_t *arriving = &siblings->board->slots[slot].arriving;
    if (score(arriving) > 0) atomic_fetch_sub(arriving, 1); /* a cleared slot begins at 0 */
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
    if (fd < 0) return true; /* out of descriptors: the kernel closed it */
    if (whole) {
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

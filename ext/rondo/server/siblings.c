/* SPDX-License-Identifier: MIT
 *
 * Joining and leaving siblings, choosing one, messages to and from them; see siblings.h.
 */
#include "server/siblings.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "server/budgets.h"
#include "server/server.h"
#include "system/fd.h"
#include "system/socket.h"

#define MAGIC         0x52444831u
#define MAGIC_NAMED   0x52444832u /* names precede the bytes */
#define MAGIC_FORWARD 0x52444833u /* a forward, with names */

/* ---- joining and leaving ---- */

void rd_siblings_init(rd_siblings *siblings, void (*on_messages)(rd_server *server)) {
    *siblings = (rd_siblings){.inbox.fd = -1, .on_messages = on_messages};
}

static void on_inbox(rd_source *source, unsigned ready) {
    (void)ready;
    rd_server *server = RD_CONTAINER(source, rd_server, siblings.inbox);
    server->siblings.on_messages(server);
}

static void set_outboxes(rd_siblings *siblings, const rd_scoreboard *board, const int *outboxes) {
    size_t bytes = board->row_count * sizeof(int);
    rd_free(siblings->outboxes);
    siblings->board = board;
    siblings->outboxes = rd_alloc(bytes);
    memcpy(siblings->outboxes, outboxes, bytes);
}

int rd_siblings_join(rd_server *server, const rd_scoreboard *board, uint32_t own, int inbox,
                     const int *outboxes) {
    rd_siblings *siblings = &server->siblings;
    int flags = fcntl(inbox, F_GETFL);
    if (flags < 0 || fcntl(inbox, F_SETFL, flags | O_NONBLOCK) != 0) return -1;
    siblings->inbox = (rd_source){.fd = inbox, .on_ready = on_inbox};
    if (rd_loop_add(&server->loop, &siblings->inbox, RD_READABLE) != 0) return -1;
    rd_budgets_share(server, board->row_count);
    siblings->home = board;
    siblings->own = own;
    set_outboxes(siblings, board, outboxes);
    return 0;
}

void rd_siblings_set_heirs(rd_server *server, const rd_scoreboard *board, const int *outboxes) {
    if (server->siblings.board != NULL) set_outboxes(&server->siblings, board, outboxes);
}

bool rd_siblings_expect(const rd_server *server) {
    return server->siblings.inbox.fd >= 0;
}

void rd_siblings_clear(rd_server *server) {
    rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL) return;
    if (rd_siblings_expect(server)) rd_loop_remove(&server->loop, &siblings->inbox);
    rd_free(siblings->outboxes);
    rd_siblings_init(siblings, siblings->on_messages);
}

/* A sender increments `arriving` first and reads the state afterwards, so one of the two sees the
 * other. */
void rd_siblings_leave(rd_server *server) {
    rd_siblings *siblings = &server->siblings;
    if (!rd_siblings_expect(server)) return;
    atomic_store(&server->score->state, RD_SCORE_DRAINING);
    if (atomic_load(&server->score->arriving) > 0 && server->stop.state != RD_STOP_NOW) return;
    rd_loop_remove(&server->loop, &siblings->inbox);
    siblings->inbox.fd = -1;
}

/* ---- choosing ---- */

static uint64_t score(const _Atomic uint64_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

uint64_t rd_siblings_load_of(const rd_server *server, const rd_score_row *row) {
    (void)server;
    return score(&row->connections) + score(&row->arriving);
}

static bool takes_part(const rd_siblings *siblings, uint32_t number) {
    const rd_score_row *row = &siblings->board->rows[number];
    bool is_own = siblings->board == siblings->home && number == siblings->own;
    return !is_own && siblings->outboxes[number] >= 0 && score(&row->state) == RD_SCORE_READY &&
           score(&row->listening) != 0;
}

bool rd_siblings_are_there(const rd_server *server) {
    const rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL) return false;
    for (uint32_t i = 0; i < siblings->board->row_count; i++) {
        if (takes_part(siblings, i)) return true;
    }
    return false;
}

int64_t rd_siblings_lightest(const rd_server *server, rd_siblings_weigh weigh, uint64_t below) {
    const rd_siblings *siblings = &server->siblings;
    int64_t best = -1;
    for (uint32_t i = 0; i < siblings->board->row_count; i++) {
        if (!takes_part(siblings, i)) continue;
        uint64_t weight = weigh(server, &siblings->board->rows[i]);
        if (weight >= below) continue;
        below = weight;
        best = i;
    }
    return best;
}

/* ---- messages ---- */

static void count_arrival(const rd_scoreboard *board, uint32_t row) {
    if (row >= board->row_count) return;
    _Atomic uint64_t *arriving = &board->rows[row].arriving;
    uint64_t count = atomic_load(arriving); /* a cleared row begins at 0 */
    while (count > 0 && !atomic_compare_exchange_weak(arriving, &count, count - 1)) {
    }
}

/* Room for one descriptor beside the bytes. */
typedef union rd_rights {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
} rd_rights;

static bool is_forward(const rd_handover_header *header) {
    return header->flags & RD_HANDOVER_FORWARD;
}

/* Listener, a zero byte, protocol. Nothing if both are empty, but a forward always has them. */
static size_t put_names(const rd_handover *handover, char names[RD_HANDOVER_NAMES_MAX]) {
    const rd_slice listener = handover->listener, protocol = handover->protocol;
    const bool is_named = listener.len > 0 || protocol.len > 0;
    if (!is_named && !is_forward(&handover->header)) return 0;
    assert(listener.len + protocol.len < RD_HANDOVER_NAMES_MAX);
    if (listener.len > 0) memcpy(names, listener.ptr, listener.len);
    names[listener.len] = '\0';
    if (protocol.len > 0) memcpy(names + listener.len + 1, protocol.ptr, protocol.len);
    return listener.len + 1 + protocol.len;
}

static void complete_header(rd_handover *handover, int64_t to, size_t names, size_t bytes) {
    rd_handover_header *header = &handover->header;
    header->magic = is_forward(header) ? MAGIC_FORWARD : names == 0 ? MAGIC : MAGIC_NAMED;
    header->len = (uint32_t)(names + bytes);
    header->names = (uint16_t)names;
    header->to = (uint32_t)to;
}

static bool send_message(int outbox, const struct iovec *iov, size_t count, int fd) {
    rd_rights control = {.room = {0}};
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov,
                             .msg_iovlen = (rd_iovec_count)count,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof(int));
    return sendmsg(outbox, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static struct iovec iovec_of(rd_slice bytes) {
    return (struct iovec){(void *)(uintptr_t)bytes.ptr, bytes.len};
}

bool rd_siblings_send(rd_server *server, int64_t to, int fd, rd_handover *handover) {
    char names[RD_HANDOVER_NAMES_MAX];
    const size_t names_len = put_names(handover, names), len = rd_packed_len(&handover->packed);
    if (len > RD_HANDOVER_BYTES_MAX) return false;
    complete_header(handover, to, names_len, len);
    struct iovec iov[2 + RD_PACKED_PARTS] = {{&handover->header, sizeof(handover->header)},
                                             {names, names_len}};
    for (size_t i = 0; i < RD_PACKED_PARTS; i++) iov[2 + i] = iovec_of(handover->packed.parts[i]);
    const rd_scoreboard *board = server->siblings.board;
    rd_score_row *target = &board->rows[to];
    atomic_fetch_add(&target->arriving, 1);
    if (atomic_load(&target->state) == RD_SCORE_READY &&
        send_message(server->siblings.outboxes[to], iov, 2 + RD_PACKED_PARTS, fd)) {
        if (!is_forward(&handover->header)) server->counts.handed_out++;
        return true;
    }
    count_arrival(board, (uint32_t)to);
    return false;
}

static int descriptor_of(struct msghdr *message) {
    int fd = -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            memcpy(&fd, CMSG_DATA(part), sizeof(int));
        }
    }
    return fd;
}

/* Whether the message is of this format and complete. */
static bool is_whole(const rd_handover_header *header, size_t len) {
    if (len < sizeof(*header) || header->len != len - sizeof(*header)) return false;
    if (header->magic == MAGIC) return header->names == 0;
    if (header->names == 0 || header->names > header->len) return false;
    return header->magic == (is_forward(header) ? MAGIC_FORWARD : MAGIC_NAMED);
}

/* False: the names are not valid. */
static bool take_names(rd_handover *handover, const char *bytes) {
    const size_t len = handover->header.names;
    handover->listener = handover->protocol = RD_SLICE("");
    if (len == 0) return true;
    const char *end = memchr(bytes, '\0', len);
    if (end == NULL) return false;
    handover->listener = rd_slice_of(bytes, (size_t)(end - bytes));
    handover->protocol = rd_slice_of(end + 1, (size_t)(bytes + len - (end + 1)));
    return true;
}

static void take_packed(rd_handover *handover, const char *bytes) {
    const rd_handover_header *header = &handover->header;
    const bool is_idle = header->flags & RD_HANDOVER_IDLE;
    handover->packed = (rd_packed){
        .served = header->served,
        .left_ms = is_idle ? header->time : UINT32_MAX,
        .begun = (header->flags & RD_HANDOVER_NEW) == 0,
        .is_stream = (header->flags & RD_HANDOVER_STREAM) != 0,
        .parts[RD_PACKED_INPUT] = rd_slice_of(bytes + header->names, header->len - header->names),
    };
}

/* Length of the message that was received; 0: there was none. */
static size_t receive_message(int inbox, rd_handover_header *header, char *bytes, int *fd) {
    struct iovec iov[2] = {{header, sizeof(*header)},
                           {bytes, RD_HANDOVER_NAMES_MAX + RD_HANDOVER_BYTES_MAX}};
    rd_rights control;
    struct msghdr message = {.msg_iov = iov,
                             .msg_iovlen = 2,
                             .msg_control = control.room,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    const ssize_t len = recvmsg(inbox, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *fd = len < 0 ? -1 : descriptor_of(&message);
    if (MSG_CMSG_CLOEXEC == 0 && *fd >= 0) rd_fd_prepare(*fd, false);
    return len < 0 ? 0 : (size_t)len;
}

bool rd_siblings_receive(rd_server *server, rd_handover *handover, char *bytes, int *fd) {
    const rd_siblings *siblings = &server->siblings;
    rd_handover_header *header = &handover->header;
    const size_t len = receive_message(siblings->inbox.fd, header, bytes, fd);
    if (len == 0 && *fd < 0) return false;
    const bool whole = is_whole(header, len) && take_names(handover, bytes);
    /* A header of another version does not say which row it was sent to: probably this one. */
    if (whole || *fd >= 0) count_arrival(siblings->home, whole ? header->to : siblings->own);
    if (*fd < 0) server->counts.dropped++; /* no descriptor is left, not even a kept one */
    if (whole) {
        take_packed(handover, bytes);
    } else if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return true;
}

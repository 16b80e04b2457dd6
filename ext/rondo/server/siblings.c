/* SPDX-License-Identifier: MIT
 *
 * Joining and leaving siblings, choosing one, messages to and from them; see siblings.h.
 */
#include "server/siblings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "server/budgets.h"
#include "server/server.h"

#define MAGIC 0x52444831u

/* ---- a place among them ---- */

void rd_siblings_init(rd_siblings *siblings) {
    *siblings = (rd_siblings){.inbox.fd = -1};
}

static void on_inbox(rd_source *source, unsigned ready) {
    (void)ready;
    rd_handover_receive(RD_CONTAINER(source, rd_server, siblings.inbox));
}

static void set_outboxes(rd_siblings *siblings, const rd_scoreboard *board, const int *outboxes) {
    size_t bytes = board->slot_count * sizeof(int);
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
    rd_budgets_share(server, board->slot_count);
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
    rd_siblings_init(siblings);
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

/* ---- choosing ---- */

static uint64_t score(const _Atomic uint64_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

uint64_t rd_siblings_load_of(const rd_server *server, const rd_score_slot *slot) {
    (void)server;
    return score(&slot->connections) + score(&slot->arriving);
}

static bool takes_part(const rd_siblings *siblings, uint32_t number) {
    const rd_score_slot *slot = &siblings->board->slots[number];
    bool is_own = siblings->board == siblings->home && number == siblings->own;
    return !is_own && siblings->outboxes[number] >= 0 && score(&slot->state) == RD_SCORE_READY &&
           score(&slot->listening) != 0;
}

bool rd_siblings_are_there(const rd_server *server) {
    const rd_siblings *siblings = &server->siblings;
    if (siblings->board == NULL) return false;
    for (uint32_t i = 0; i < siblings->board->slot_count; i++) {
        if (takes_part(siblings, i)) return true;
    }
    return false;
}

int64_t rd_siblings_lightest(const rd_server *server, rd_siblings_weigh weigh, uint64_t below) {
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

/* ---- messages ---- */

static void count_arrival(const rd_scoreboard *board, uint32_t slot) {
    if (slot >= board->slot_count) return;
    _Atomic uint64_t *arriving = &board->slots[slot].arriving;
    uint64_t count = atomic_load(arriving); /* a cleared slot begins at 0 */
    while (count > 0 && !atomic_compare_exchange_weak(arriving, &count, count - 1)) {
    }
}

/* Room for one descriptor beside the bytes. */
typedef union rd_rights {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
} rd_rights;

bool rd_siblings_send(rd_server *server, int64_t to, int fd, rd_handover_header *header,
                      const char *bytes) {
    header->magic = MAGIC;
    header->to = (uint32_t)to;
    struct iovec iov[2] = {{header, sizeof(*header)}, {(void *)(uintptr_t)bytes, header->len}};
    rd_rights control = {.room = {0}};
    struct msghdr message = {.msg_iov = iov,
                             .msg_iovlen = 2,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof(int));
    const rd_scoreboard *board = server->siblings.board;
    rd_score_slot *target = &board->slots[to];
    atomic_fetch_add(&target->arriving, 1);
    int outbox = server->siblings.outboxes[to];
    if (atomic_load(&target->state) == RD_SCORE_READY &&
        sendmsg(outbox, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        server->handed_out++;
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

bool rd_siblings_receive(rd_server *server, rd_handover_header *header, char *bytes, int *fd) {
    struct iovec iov[2] = {{header, sizeof(*header)}, {bytes, RD_HANDOVER_BYTES_MAX}};
    rd_rights control;
    struct msghdr message = {.msg_iov = iov,
                             .msg_iovlen = 2,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    const rd_siblings *siblings = &server->siblings;
    ssize_t len = recvmsg(siblings->inbox.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (len <= 0) return false;
    bool whole = (size_t)len >= sizeof(*header) && header->magic == MAGIC &&
                 header->len == (size_t)len - sizeof(*header);
    *fd = descriptor_of(&message);
    /* A head of another version does not say where it was sent to: here, as far as one knows. */
    if (whole || *fd >= 0) count_arrival(siblings->home, whole ? header->to : siblings->own);
    if (*fd < 0) server->dropped++; /* no descriptor is left, in spite of those kept */
    if (*fd >= 0 && !whole) {
        close(*fd);
        *fd = -1;
    }
    return true;
}

/* SPDX-License-Identifier: MIT
 *
 * Attempts, their order, and the one that wins; see dial.h.
 */
#include "listen/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/socket.h"

#define STAGGER_MS 250 /* RFC 8305, section 5 */
#define BUSY_MS    20  /* before a Unix socket whose queue is full is tried again */

/* A socket on its way to one target. */
typedef struct rd_attempt {
    rd_list in_dial, in_dialer;
    rd_source source;
    rd_dial *dial;
    rd_disposal closing;
} rd_attempt;

typedef enum rd_trial { FAILED, WAITS, IS_BUSY, HAS_WON } rd_trial;

void rd_dialer_init(rd_dialer *dialer, rd_loop *loop, rd_ledger *ledger) {
    *dialer = (rd_dialer){.loop = loop, .ledger = ledger, .nodelay = true};
    rd_list_init(&dialer->attempts);
    rd_list_init(&dialer->calls);
}

void rd_dialer_abandon(rd_dialer *dialer) {
    for (rd_list *node = dialer->attempts.next; node != &dialer->attempts; node = node->next) {
        close(RD_CONTAINER(node, rd_attempt, in_dialer)->source.fd);
    }
    for (rd_list *node = dialer->calls.next; node != &dialer->calls; node = node->next) {
        close(RD_CONTAINER(node, rd_path_call, node)->fd);
    }
}

/* ---- sockets ---- */

static int open_socket(rd_dialer *dialer, const rd_target *target) {
    const sa_family_t family = target->address.any.sa_family;
    if (rd_ledger_lacks_descriptors(dialer->ledger)) {
        errno = EMFILE;
        return -1;
    }
    const int fd = rd_socket_open(family, false);
    if (fd < 0) return -1;
    rd_ledger_add(dialer->ledger, RD_LEDGER_DESCRIPTORS, 1);
    if (dialer->nodelay && family != AF_UNIX) {
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    return fd;
}

static void close_socket(rd_dialer *dialer, int fd) {
    rd_ledger_release(dialer->ledger, RD_LEDGER_DESCRIPTORS, 1);
    close(fd);
}

static int failure_of(int fd) {
    int code = 0;
    socklen_t len = sizeof(code);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) == 0 ? code : errno;
}

/* TCP lets a socket connect to itself: the kernel has given it the port that it wants to reach,
 * because nobody listens there (RFC 9293, section 3.5). */
static bool is_own(int fd) {
    struct sockaddr_storage own, peer;
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
    memset(&own, 0, sizeof(own));
    memset(&peer, 0, sizeof(peer));
    if (getsockname(fd, (struct sockaddr *)&own, &own_len) != 0) return false;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0) return false;
    return own.ss_family != AF_UNIX && own_len == peer_len && memcmp(&own, &peer, own_len) == 0;
}

/* ---- attempts ---- */

static void free_attempt(rd_disposal *disposal) {
    rd_free(RD_CONTAINER(disposal, rd_attempt, closing));
}

/* Removes it, and returns its socket. */
static int leave(rd_attempt *attempt) {
    rd_loop *loop = attempt->dial->dialer->loop;
    rd_list_unlink(&attempt->in_dial);
    rd_list_unlink(&attempt->in_dialer);
    rd_loop_remove(loop, &attempt->source);
    rd_loop_free_later(loop, &attempt->closing);
    return attempt->source.fd;
}

static void stop_timer(rd_timer *timer) {
    if (rd_timer_is_armed(timer)) rd_timer_cancel(timer);
}

static void end(rd_dial *dial) {
    stop_timer(&dial->due);
    stop_timer(&dial->stagger);
    if (dial->lookup != NULL) rd_lookup_drop(dial->lookup);
    if (dial->call != NULL) rd_path_call_drop(dial->call);
    dial->lookup = NULL;
    dial->call = NULL;
    while (!rd_list_is_empty(&dial->attempts)) {
        close_socket(dial->dialer, leave(RD_CONTAINER(dial->attempts.next, rd_attempt, in_dial)));
    }
    rd_free(dial->targets);
    dial->targets = NULL;
}

static void fail(rd_dial *dial, const char *why) {
    dial->why = why;
    end(dial);
    dial->on_done(dial, -1, NULL);
}

/* The descriptor is the owner's now, who counts it. */
static void win(rd_dial *dial, int fd) {
    struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(from);
    rd_address peer = {.kind = RD_ADDRESS_NONE};
    if (getpeername(fd, (struct sockaddr *)&from, &len) == 0)
        rd_address_from_sockaddr(&peer, (const struct sockaddr *)&from);
    rd_ledger_release(dial->dialer->ledger, RD_LEDGER_DESCRIPTORS, 1);
    end(dial);
    dial->on_done(dial, fd, &peer);
}

/* `code`: what connect(2) came to; 0: it has succeeded. */
static rd_trial judge(rd_dial *dial, int fd, int code) {
    if (code == 0 && is_own(fd)) code = ECONNREFUSED;
    if (code == 0) {
        win(dial, fd);
        return HAS_WON;
    }
    dial->why = strerror(code);
    close_socket(dial->dialer, fd);
    return FAILED;
}

static void try_next(rd_dial *dial);

static void on_ready(rd_source *source, unsigned ready) {
    rd_attempt *attempt = RD_CONTAINER(source, rd_attempt, source);
    rd_dial *dial = attempt->dial;
    const int fd = leave(attempt);
    (void)ready;
    if (judge(dial, fd, failure_of(fd)) == FAILED) try_next(dial);
}

/* The poller reports the socket until it is removed. */
static rd_trial wait_for(rd_dial *dial, int fd) {
    rd_dialer *dialer = dial->dialer;
    rd_attempt *attempt = rd_alloc_zero(sizeof(*attempt));
    attempt->dial = dial;
    attempt->source = (rd_source){.fd = fd, .on_ready = on_ready};
    attempt->closing.free = free_attempt;
    rd_list_append(&dial->attempts, &attempt->in_dial);
    rd_list_append(&dialer->attempts, &attempt->in_dialer);
    if (rd_loop_add(dialer->loop, &attempt->source, RD_WRITABLE) == 0) return WAITS;
    const int code = errno;
    return judge(dial, leave(attempt), code);
}

/* What connect(2) came to. */
static rd_trial begun(rd_dial *dial, int fd, int code, bool is_unix) {
    if (code == EINPROGRESS || code == EINTR) return wait_for(dial, fd);
    const bool is_busy = code == EAGAIN && is_unix;
    const rd_trial trial = judge(dial, fd, code);
    return is_busy ? IS_BUSY : trial;
}

static void go_on(rd_dial *dial, rd_trial trial);

static void on_called(rd_path_call *call, int fd, int code) {
    rd_dial *dial = call->owner;
    dial->call = NULL;
    go_on(dial, begun(dial, fd, code, true));
}

static rd_trial call_path(rd_dial *dial, int fd, const rd_target *target) {
    rd_dialer *dialer = dial->dialer;
    dial->call = rd_path_call_new(fd, target);
    dial->call->on_called = on_called;
    dial->call->owner = dial;
    dial->call->ledger = dialer->ledger;
    dial->call->live = &dialer->waits;
    rd_path_call_begin(dialer->loop, dial->call, &dialer->calls);
    return WAITS;
}

static rd_trial try_target(rd_dial *dial, const rd_target *target) {
    const int fd = open_socket(dial->dialer, target);
    if (fd < 0) {
        dial->why = strerror(errno);
        return FAILED;
    }
    if (rd_target_is_path(target)) return call_path(dial, fd, target);
    const int result = connect(fd, &target->address.any, target->len);
    const bool is_unix = target->address.any.sa_family == AF_UNIX;
    return begun(dial, fd, result == 0 ? 0 : errno, is_unix);
}

static void set_stagger(rd_dial *dial, uint64_t ms) {
    rd_loop *loop = dial->dialer->loop;
    rd_timer_set(&loop->timers, &dial->stagger, loop->now_ms + ms);
}

/* After an attempt that came to this. */
static void go_on(rd_dial *dial, rd_trial trial) {
    while (trial == FAILED && dial->next < dial->targets->count) {
        trial = try_target(dial, &dial->targets->list[dial->next++]);
    }
    if (trial == IS_BUSY) {
        dial->next--;
        set_stagger(dial, BUSY_MS);
    } else if (trial == WAITS && dial->next < dial->targets->count) {
        set_stagger(dial, STAGGER_MS);
    } else if (trial == FAILED && rd_list_is_empty(&dial->attempts)) {
        fail(dial, dial->why);
    }
}

static void try_next(rd_dial *dial) {
    stop_timer(&dial->stagger);
    go_on(dial, FAILED);
}

/* ---- from the beginning ---- */

static void on_stagger(rd_timer *timer) {
    try_next(RD_CONTAINER(timer, rd_dial, stagger));
}

static void on_due(rd_timer *timer) {
    rd_dial *dial = RD_CONTAINER(timer, rd_dial, due);
    fail(dial, dial->lookup != NULL ? "the name was not found in time" : "no answer in time");
}

static void begin(rd_dialer *dialer, rd_dial *dial, uint64_t due_ms) {
    dial->dialer = dialer;
    dial->lookup = NULL;
    dial->call = NULL;
    dial->targets = NULL;
    dial->next = 0;
    dial->why = "the name has no address";
    rd_list_init(&dial->attempts);
    rd_timer_init(&dial->stagger, on_stagger);
    rd_timer_init(&dial->due, on_due);
    rd_timer_set(&dialer->loop->timers, &dial->due, due_ms);
}

void rd_dial_begin(rd_dialer *dialer, rd_dial *dial, rd_targets *targets, uint64_t due_ms) {
    begin(dialer, dial, due_ms);
    dial->targets = targets;
    try_next(dial);
}

static void on_found(rd_lookup *lookup) {
    rd_dial *dial = lookup->owner;
    dial->lookup = NULL;
    dial->why = lookup->why;
    dial->targets = rd_alloc(sizeof(*dial->targets));
    *dial->targets = lookup->targets;
    try_next(dial);
}

void rd_dial_name(rd_dialer *dialer, rd_dial *dial, const char *host, uint16_t port,
                  uint64_t due_ms) {
    begin(dialer, dial, due_ms);
    dial->lookup = rd_lookup_new(host, port);
    dial->lookup->on_found = on_found;
    dial->lookup->owner = dial;
    dial->lookup->live = &dialer->waits;
    rd_lookup_begin(dialer->loop, dial->lookup);
}

void rd_dial_cancel(rd_dial *dial) {
    end(dial);
}

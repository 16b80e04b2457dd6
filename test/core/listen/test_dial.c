/* SPDX-License-Identifier: MIT
 *
 * listen/dial, on both pollers: the first target that answers wins, the others get their turn after
 * a failure or a quarter of a second, a full Unix socket is tried again, deadlines, the descriptors
 * that the ledger counts, and ends from outside.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "disk_jobs.h"
#include "hand_clock.h"
#include "listen/dial.h"

#define DUE_MS 10000

static rd_loop loop;
static rd_ledger ledger;
static rd_dialer dialer;
static rd_dial dial;
static rd_ready_set ready;
static int result; /* a descriptor; -1: it has failed; -2: it is not over */
static rd_address reached;
static int listener;
static uint64_t others; /* descriptors that are not of the dial */

static uint64_t descriptors(void) {
    return ledger.rows[RD_LEDGER_DESCRIPTORS].held;
}

static void on_done(rd_dial *over, int fd, const rd_address *peer) {
    CHECK(over == &dial);
    CHECK_INT(result, -2);
    result = fd;
    if (fd >= 0) reached = *peer;
    CHECK_INT(descriptors(), others); /* a connection counts its own */
}

static void start(bool poll_only) {
    memset(&ledger, 0, sizeof(ledger));
    ledger.rows[RD_LEDGER_DESCRIPTORS].limit = 100;
    CHECK_INT(rd_loop_init(&loop, poll_only), 0);
    rd_dialer_init(&dialer, &loop, &ledger);
    dial = (rd_dial){.on_done = on_done};
    result = -2;
    listener = -1;
    others = 0;
}

static void end(void) {
    if (result >= 0) close(result);
    if (listener >= 0) close(listener);
    CHECK_INT(descriptors(), 0);
    CHECK(rd_list_is_empty(&dialer.attempts));
    CHECK(rd_list_is_empty(&dialer.calls));
    CHECK(rd_disk_stop(&loop));
    rd_loop_clear(&loop);
}

static void turn(void) {
    rd_loop_wait(&loop, &ready, 20000);
    rd_loop_lock(&loop);
    rd_loop_refresh(&loop);
    rd_loop_process(&loop, &ready);
    rd_loop_unlock(&loop);
}

static void later(uint64_t ms) {
    pass_ms(ms);
    turn();
}

/* ---- targets ---- */

static rd_targets *targets(void) {
    return rd_alloc_zero(sizeof(rd_targets));
}

static void add(rd_targets *to, const char *address, uint16_t port) {
    rd_targets one;
    CHECK(rd_targets_read(&one, address, port));
    to->list[to->count++] = one.list[0];
}

static uint16_t listen_on(int backlog) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(bind(listener, (struct sockaddr *)&address, len), 0);
    CHECK_INT(listen(listener, backlog), 0);
    CHECK_INT(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

/* Where nobody listens: bound, so that no other program gets it. */
static uint16_t closed_port(int *holder) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    *holder = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(bind(*holder, (struct sockaddr *)&address, len), 0);
    CHECK_INT(getsockname(*holder, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

static int knock(const char *address, uint16_t port) {
    rd_targets one;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(rd_targets_read(&one, address, port));
    (void)!connect(fd, &one.list[0].address.any, one.list[0].len);
    return fd;
}

/* A port whose queue is full: the kernel drops what asks for a connection. */
static uint16_t silent_port(int clients[3]) {
    const uint16_t port = listen_on(0);
    for (int i = 0; i < 3; i++) clients[i] = knock("127.0.0.1", port);
    return port;
}

static void begin(rd_targets *to) {
    rd_loop_lock(&loop);
    rd_loop_refresh(&loop);
    rd_dial_begin(&dialer, &dial, to, loop.now_ms + DUE_MS);
    rd_loop_unlock(&loop);
}

static void await(void) {
    for (int i = 0; i < 500 && result == -2; i++) turn();
}

/* ---- the tests ---- */

static void test_one(bool poll_only) {
    start(poll_only);
    rd_targets *to = targets();
    const uint16_t port = listen_on(4);
    add(to, "127.0.0.1", port);
    begin(to);
    await();
    CHECK(result >= 0);
    CHECK_INT(reached.kind, RD_ADDRESS_V4);
    CHECK_INT(reached.port, port);
    end();
}

/* What is refused does not cost a quarter of a second. */
static void test_refused_then_answered(bool poll_only) {
    int holder;
    start(poll_only);
    rd_targets *to = targets();
    add(to, "127.0.0.1", closed_port(&holder));
    add(to, "127.0.0.1", listen_on(4));
    begin(to);
    await();
    CHECK(result >= 0);
    close(holder);
    end();
}

static void test_all_refused(bool poll_only) {
    int holder;
    start(poll_only);
    rd_targets *to = targets();
    const uint16_t port = closed_port(&holder);
    add(to, "127.0.0.1", port);
    add(to, "127.0.0.1", port);
    begin(to);
    await();
    CHECK_INT(result, -1);
    CHECK_STR(dial.why, "Connection refused");
    close(holder);
    end();
}

static void test_second_after_a_while(bool poll_only) {
    int clients[3];
    start(poll_only);
    rd_targets *to = targets();
    const uint16_t silent = silent_port(clients);
    const int full = listener;
    const uint16_t port = listen_on(4);
    add(to, "127.0.0.1", silent);
    add(to, "127.0.0.1", port);
    begin(to);
    later(249);
    CHECK_INT(result, -2);
    CHECK_INT(descriptors(), 1);
    later(2);
    await();
    CHECK(result >= 0);
    CHECK_INT(reached.port, port);
    for (int i = 0; i < 3; i++) close(clients[i]);
    close(full);
    end();
}

static void test_deadline(bool poll_only) {
    int clients[3];
    start(poll_only);
    rd_targets *to = targets();
    const uint16_t silent = silent_port(clients);
    add(to, "127.0.0.1", silent);
    add(to, "127.0.0.1", silent);
    begin(to);
    later(300);
    CHECK_INT(descriptors(), 2);
    later(DUE_MS - 301);
    CHECK_INT(result, -2);
    later(2);
    CHECK_INT(result, -1);
    CHECK_STR(dial.why, "no answer in time");
    for (int i = 0; i < 3; i++) close(clients[i]);
    end();
}

static void test_a_busy_unix_socket(bool poll_only) {
    start(poll_only);
    rd_targets *to = targets();
    CHECK(rd_targets_of_path(to, "@rondo-test-dial"));
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(bind(listener, &to->list[0].address.any, to->list[0].len), 0);
    CHECK_INT(listen(listener, 0), 0);
    const int first = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(connect(first, &to->list[0].address.any, to->list[0].len), 0);
    begin(to);
    later(30);
    later(30);
    CHECK_INT(result, -2);
    CHECK_INT(descriptors(), 0); /* it waits without a socket */
    const int taken = accept(listener, NULL, NULL);
    later(30);
    CHECK(result >= 0);
    CHECK_INT(reached.kind, RD_ADDRESS_UNIX);
    close(taken);
    close(first);
    end();
}

/* ---- paths ---- */

static char path[64];

static rd_targets *path_target(bool exists) {
    rd_targets *to = targets();
    snprintf(path, sizeof(path), "/tmp/rondo-test-dial-%d.sock", (int)getpid());
    unlink(path);
    CHECK(rd_targets_of_path(to, path));
    if (!exists) return to;
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(bind(listener, &to->list[0].address.any, to->list[0].len), 0);
    CHECK_INT(listen(listener, 4), 0);
    return to;
}

static void test_a_path(bool poll_only) {
    start(poll_only);
    begin(path_target(true));
    CHECK_INT(result, -2); /* a thread does it */
    CHECK_INT(dialer.waits, 1);
    finish_jobs(&loop);
    CHECK(result >= 0);
    CHECK_INT(reached.kind, RD_ADDRESS_UNIX);
    CHECK_INT(dialer.waits, 0);
    unlink(path);
    end();
}

static void test_nobody_at_a_path(bool poll_only) {
    start(poll_only);
    begin(path_target(false));
    finish_jobs(&loop);
    CHECK_INT(result, -1);
    CHECK_STR(dial.why, "No such file or directory");
    end();
}

/* The socket is the thread's until the disk answers, and counts as a descriptor for so long. */
static void test_a_path_on_a_disk_that_does_not_answer(bool poll_only) {
    int status = -1;
    start(poll_only);
    rd_targets *to = path_target(true);
    hold_volume(&loop, RD_DISK_PATHS);
    others = 1;
    const int next = dup(0); /* the number that the socket gets */
    close(next);
    begin(to);
    const pid_t child = fork();
    if (child == 0) {
        rd_dialer_abandon(&dialer);
        _exit(fcntl(next, F_GETFD) < 0 ? 0 : 1);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    later(DUE_MS + 1);
    CHECK_INT(result, -1);
    CHECK_STR(dial.why, "no answer in time");
    CHECK_INT(dialer.waits, 1);
    CHECK_INT(descriptors(), 1);
    release_jobs(&loop);
    finish_jobs(&loop);
    CHECK_INT(dialer.waits, 0);
    CHECK(fcntl(next, F_GETFD) < 0);
    unlink(path);
    end();
}

static void test_no_descriptor(bool poll_only) {
    start(poll_only);
    ledger.rows[RD_LEDGER_DESCRIPTORS].limit = others = 1;
    rd_ledger_add(&ledger, RD_LEDGER_DESCRIPTORS, 1);
    rd_targets *to = targets();
    add(to, "127.0.0.1", listen_on(4));
    begin(to);
    CHECK_INT(result, -1);
    CHECK_STR(dial.why, strerror(EMFILE));
    rd_ledger_release(&ledger, RD_LEDGER_DESCRIPTORS, 1);
    end();
}

static void test_cancelled(bool poll_only) {
    int clients[3];
    start(poll_only);
    rd_targets *to = targets();
    add(to, "127.0.0.1", silent_port(clients));
    begin(to);
    CHECK_INT(descriptors(), 1);
    rd_loop_lock(&loop);
    rd_dial_cancel(&dial);
    rd_loop_unlock(&loop);
    CHECK_INT(descriptors(), 0);
    later(DUE_MS * 2);
    CHECK_INT(result, -2);
    for (int i = 0; i < 3; i++) close(clients[i]);
    end();
}

/* ---- names ---- */

static void begin_name(const char *host, uint16_t port) {
    rd_loop_lock(&loop);
    rd_loop_refresh(&loop);
    rd_dial_name(&dialer, &dial, host, port, loop.now_ms + DUE_MS);
    rd_loop_unlock(&loop);
}

static void test_a_name(bool poll_only) {
    start(poll_only);
    begin_name("localhost", listen_on(4));
    CHECK_INT(dialer.waits, 1);
    finish_jobs(&loop);
    await();
    CHECK(result >= 0);
    CHECK_INT(dialer.waits, 0);
    end();
}

static void test_a_name_without_address(bool poll_only) {
    start(poll_only);
    begin_name("rondo.invalid", 80);
    finish_jobs(&loop);
    CHECK_INT(result, -1);
    end();
}

static void test_a_name_that_takes_long(bool poll_only) {
    start(poll_only);
    hold_volume(&loop, RD_DISK_NAMES);
    begin_name("localhost", 80);
    later(DUE_MS + 1);
    CHECK_INT(result, -1);
    CHECK_STR(dial.why, "the name was not found in time");
    CHECK_INT(dialer.waits, 1);
    release_jobs(&loop);
    finish_jobs(&loop);
    CHECK_INT(dialer.waits, 0);
    end();
}

static void test_a_forked_child(bool poll_only) {
    int clients[3], status = -1;
    start(poll_only);
    rd_targets *to = targets();
    add(to, "127.0.0.1", silent_port(clients));
    const int next = dup(0); /* the number that the attempt gets */
    close(next);
    begin(to);
    CHECK(fcntl(next, F_GETFD) >= 0);
    const pid_t child = fork();
    if (child == 0) {
        rd_dialer_abandon(&dialer);
        _exit(fcntl(next, F_GETFD) < 0 ? 0 : 1);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    rd_loop_lock(&loop);
    rd_dial_cancel(&dial);
    rd_loop_unlock(&loop);
    for (int i = 0; i < 3; i++) close(clients[i]);
    end();
}

static void test_all(bool poll_only) {
    test_one(poll_only);
    test_refused_then_answered(poll_only);
    test_all_refused(poll_only);
    test_second_after_a_while(poll_only);
    test_deadline(poll_only);
    test_a_busy_unix_socket(poll_only);
    test_a_path(poll_only);
    test_nobody_at_a_path(poll_only);
    test_a_path_on_a_disk_that_does_not_answer(poll_only);
    test_no_descriptor(poll_only);
    test_cancelled(poll_only);
    test_a_name(poll_only);
    test_a_name_without_address(poll_only);
    test_a_name_that_takes_long(poll_only);
    test_a_forked_child(poll_only);
}

int main(void) {
    test_all(false);
    test_all(true);
    return check_summary();
}

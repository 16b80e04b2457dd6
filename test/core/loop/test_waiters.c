/* SPDX-License-Identifier: MIT
 *
 * Waiters of descriptors that the loop does not own, on both pollers: directions, several for one
 * descriptor, what callbacks do to each other, closing announced and not, numbers used again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "loop/waiters.h"

#define LIMIT 8

static rd_loop loop;
static rd_fd_waiters waiters;
static rd_ready_set found;

typedef struct waiting {
    rd_fd_waiter waiter;
    int calls, last;
    void (*then)(struct waiting *one);
} waiting;

static waiting a, b, c;

static void on_ready(rd_fd_waiter *waiter, int ready) {
    waiting *one = RD_CONTAINER(waiter, waiting, waiter);
    CHECK(!rd_waiter_waits(waiter));
    one->calls++;
    one->last = ready;
    if (one->then != NULL) one->then(one);
}

static void renew(waiting *one) {
    *one = (waiting){.last = 0};
    rd_waiter_init(&one->waiter, on_ready);
}

static void start(bool poll_only) {
    CHECK_INT(rd_loop_init(&loop, poll_only), 0);
    rd_waiters_init(&waiters, &loop, LIMIT);
    renew(&a);
    renew(&b);
    renew(&c);
}

static void end(void) {
    rd_waiters_clear(&waiters);
    CHECK_INT(waiters.count, 0);
    rd_loop_clear(&loop);
}

static int turn(int64_t timeout_us) {
    const int count = rd_loop_wait(&loop, &found, timeout_us);
    rd_loop_lock(&loop);
    rd_loop_process(&loop, &found);
    rd_loop_unlock(&loop);
    return count;
}

static int add(waiting *one, int fd, unsigned wanted) {
    return rd_waiters_add(&waiters, &one->waiter, fd, wanted);
}

static void open_pair(int pair[2]) {
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
}

static void close_pair(int pair[2]) {
    close(pair[0]);
    close(pair[1]);
}

static void test_directions(void) {
    int pair[2];
    open_pair(pair);
    CHECK_INT(add(&a, pair[0], RD_READABLE), 0);
    CHECK_INT(add(&b, pair[0], RD_WRITABLE), 0);
    CHECK_INT(add(&c, pair[0], RD_READABLE | RD_WRITABLE), 0);
    CHECK_INT(waiters.count, 3);
    turn(1000000);
    CHECK_INT(a.calls, 0);
    CHECK_INT(b.last, RD_WRITABLE);
    CHECK_INT(c.last, RD_WRITABLE);
    CHECK_INT(waiters.count, 1);
    CHECK_INT(turn(0), 0); /* those directions have no waiter any more */
    CHECK_INT(write(pair[1], "x", 1), 1);
    turn(1000000);
    CHECK_INT(a.last, RD_READABLE);
    CHECK_INT(a.calls + b.calls + c.calls, 3);
    CHECK_INT(turn(0), 0); /* still readable, but no waiter is left */
    CHECK_INT(add(&a, pair[0], RD_READABLE), 0);
    turn(1000000);
    CHECK_INT(a.calls, 2);
    close(pair[1]);
    CHECK_INT(add(&b, pair[0], RD_READABLE), 0);
    turn(1000000);
    CHECK_INT(b.last, RD_READABLE); /* hung up: a read reports it */
    close(pair[0]);
}

static void test_removal(void) {
    int pair[2];
    open_pair(pair);
    CHECK_INT(add(&a, pair[0], RD_READABLE), 0);
    CHECK_INT(add(&b, pair[0], RD_READABLE), 0);
    CHECK_INT(write(pair[1], "x", 1), 1);
    rd_waiters_remove(&waiters, &a.waiter);
    rd_waiters_remove(&waiters, &a.waiter);
    turn(1000000);
    CHECK_INT(a.calls, 0);
    CHECK_INT(b.calls, 1);
    CHECK_INT(waiters.count, 0);
    close_pair(pair);
}

/* ---- callbacks ---- */

static int fds[2];

static void wait_again(waiting *one) {
    char byte;
    CHECK_INT(read(fds[0], &byte, 1), 1);
    if (one->calls < 3) CHECK_INT(add(one, fds[0], RD_READABLE), 0);
}

static void test_waiting_again(void) {
    open_pair(fds);
    a.then = wait_again;
    CHECK_INT(add(&a, fds[0], RD_READABLE), 0);
    CHECK_INT(write(fds[1], "123", 3), 3);
    for (int i = 0; i < 4; i++) turn(0);
    CHECK_INT(a.calls, 3);
    CHECK_INT(waiters.count, 0);
    close_pair(fds);
}

static void remove_others(waiting *one) {
    waiting *all[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        if (all[i] != one) rd_waiters_remove(&waiters, &all[i]->waiter);
    }
}

static void test_removal_by_another(void) {
    open_pair(fds);
    a.then = b.then = c.then = remove_others;
    add(&a, fds[0], RD_WRITABLE);
    add(&b, fds[0], RD_WRITABLE);
    add(&c, fds[0], RD_READABLE);
    turn(1000000);
    CHECK_INT(a.calls + b.calls + c.calls, 1);
    CHECK_INT(waiters.count, 0);
    close_pair(fds);
}

static void close_all(waiting *one) {
    (void)one;
    rd_waiters_close(&waiters, fds[0]);
    close_pair(fds);
}

static void test_closing_in_a_callback(void) {
    open_pair(fds);
    a.then = close_all;
    add(&a, fds[0], RD_WRITABLE);
    add(&b, fds[0], RD_READABLE);
    turn(1000000);
    CHECK_INT(a.last, RD_WRITABLE);
    CHECK_INT(b.last, -EBADF);
    CHECK_INT(waiters.count, 0);
    CHECK_INT(turn(0), 0);
}

/* ---- closing ---- */

static void test_closing(void) {
    int pair[2];
    open_pair(pair);
    add(&a, pair[0], RD_READABLE);
    add(&b, pair[0], RD_READABLE);
    rd_waiters_close(&waiters, pair[0]);
    rd_waiters_close(&waiters, pair[0]);
    close_pair(pair);
    CHECK_INT(a.last, -EBADF);
    CHECK_INT(b.last, -EBADF);
    CHECK_INT(turn(0), 0);
}

/* A number that is used again: its old waiter is notified, and its new one waits for the new file.
 */
static void test_number_used_again(void) {
    int before[2], after[2];
    open_pair(before);
    add(&a, before[0], RD_READABLE);
    open_pair(after);
    CHECK_INT(dup2(after[0], before[0]), before[0]); /* closes it without notice */
    CHECK_INT(add(&b, before[0], RD_READABLE), 0);
    CHECK_INT(a.last, -EBADF);
    CHECK_INT(write(after[1], "x", 1), 1);
    turn(1000000);
    CHECK_INT(b.last, RD_READABLE);
    close_pair(before);
    close_pair(after);
}

static unsigned own_calls;

static void on_own(rd_source *source, unsigned ready) {
    (void)source, (void)ready;
    own_calls++;
}

/* The number may be the descriptor of a connection. The connection continues. */
static void test_number_used_by_the_loop(void) {
    int before[2], after[2];
    rd_source own = {.on_ready = on_own};
    open_pair(before);
    add(&a, before[0], RD_READABLE);
    open_pair(after);
    CHECK_INT(dup2(after[0], before[0]), before[0]);
    own.fd = before[0];
    CHECK_INT(rd_loop_add(&loop, &own, RD_READABLE), 0);
    rd_waiters_remove(&waiters, &a.waiter);
    own_calls = 0;
    CHECK_INT(write(after[1], "x", 1), 1);
    turn(1000000);
    CHECK_INT(own_calls, 1);
    CHECK_INT(a.calls, 0);
    rd_loop_remove(&loop, &own);
    close_pair(before);
    close_pair(after);
}

/* A copy keeps the file open, as in a forked child. The poller reports once more that it is ready.
 */
static void test_closed_with_a_copy(void) {
    int pair[2];
    open_pair(pair);
    add(&a, pair[0], RD_READABLE);
    const int copy = dup(pair[0]);
    close(pair[0]);
    CHECK_INT(write(pair[1], "x", 1), 1);
    turn(0);
    rd_waiters_remove(&waiters, &a.waiter); /* poll(2) has reported an invalid number */
    turn(0);
    CHECK_INT(turn(0), 0);
    CHECK_INT(waiters.count, 0);
    close(copy);
    close(pair[1]);
}

/* The number means the same file again, a FIFO that was opened anew, but epoll has forgotten it.
 * When one waiter leaves, the others are woken, because epoll would never report the file to them.
 */
static void test_closed_and_opened_anew(void) {
    char folder[] = "/tmp/rondo-waiters-XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/fifo", folder);
    CHECK_INT(mkfifo(path, 0600), 0);
    for (int woken = 0; woken < 2; woken++) {
        renew(&a);
        renew(&b);
        const int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        add(&a, fd, RD_READABLE);
        add(&b, fd, RD_READABLE | RD_WRITABLE);
        if (woken == 0) {
            const int again = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
            CHECK_INT(dup2(again, fd), fd); /* closes it without notice */
            close(again);
            rd_waiters_remove(&waiters, &b.waiter);
        } else {
            CHECK(turn(1000000) > 0); /* b was told that it can write */
            CHECK_INT(b.last, RD_WRITABLE);
        }
        CHECK_INT(write(fd, "x", 1), 1);
        turn(0);
        CHECK_INT(a.calls, 1);
        CHECK_INT(a.last, woken == 0 && loop.ops->by_file ? -EBADF : RD_READABLE);
        close(fd);
    }
    unlink(path);
    rmdir(folder);
}

/* The other waiters of a closed number are notified when one of them gives up. */
static void test_closed_and_given_up(void) {
    int pair[2];
    open_pair(pair);
    add(&a, pair[0], RD_READABLE);
    add(&b, pair[0], RD_READABLE);
    close_pair(pair);
    rd_waiters_remove(&waiters, &b.waiter);
    CHECK_INT(a.calls, 1);
    CHECK_INT(a.last, -EBADF);
    CHECK_INT(b.calls, 0);
    CHECK_INT(waiters.count, 0);
}

/* ---- reports that are dropped ---- */

static void drop(void) {
    CHECK(rd_loop_wait(&loop, &found, 1000000) > 0);
    rd_loop_lock(&loop);
    rd_loop_drop(&loop, &found);
    rd_loop_unlock(&loop);
}

/* By a thread that has waited while another one had the loop. */
static void test_a_dropped_report(void) {
    int pair[2];
    open_pair(pair);
    CHECK_INT(add(&a, pair[0], RD_READABLE), 0);
    CHECK_INT(add(&b, pair[0], RD_READABLE | RD_WRITABLE), 0);
    CHECK_INT(write(pair[1], "x", 1), 1);
    drop();
    drop();
    CHECK_INT(a.calls + b.calls, 0);
    turn(1000000);
    CHECK_INT(a.last, RD_READABLE);
    CHECK_INT(b.last, RD_READABLE | RD_WRITABLE);
    CHECK_INT(waiters.count, 0);
    close_pair(pair);
}

/* More than are armed again in one turn. The next turn for that is a millisecond later. */
static void test_many_dropped_reports(void) {
    static int pairs[300][2];
    static waiting many[600];
    waiters.limit = 600;
    for (int i = 0; i < 600; i++) {
        if (i % 2 == 0) open_pair(pairs[i / 2]);
        renew(&many[i]);
        CHECK_INT(add(&many[i], pairs[i / 2][i % 2], RD_WRITABLE), 0);
    }
    for (int i = 0; i < 4; i++) drop();
    for (int i = 0; i < 1000 && waiters.count > 0; i++) turn(1000000);
    CHECK_INT(waiters.count, 0);
    for (int i = 0; i < 600; i++) CHECK_INT(many[i].calls, 1);
    for (int i = 0; i < 300; i++) close_pair(pairs[i]);
}

/* It was closed without notice meanwhile. */
static void test_dropped_and_closed(void) {
    int pair[2];
    open_pair(pair);
    CHECK_INT(add(&a, pair[0], RD_WRITABLE), 0);
    CHECK(rd_loop_wait(&loop, &found, 1000000) > 0);
    close_pair(pair);
    rd_loop_lock(&loop);
    rd_loop_drop(&loop, &found);
    rd_loop_unlock(&loop);
    CHECK_INT(a.last, -EBADF);
    CHECK_INT(waiters.count, 0);
}

/* ---- limits ---- */

static void test_limit(void) {
    int pair[2];
    waiting many[LIMIT + 1];
    open_pair(pair);
    for (int i = 0; i <= LIMIT; i++) {
        renew(&many[i]);
        CHECK_INT(add(&many[i], pair[i % 2], RD_READABLE), i < LIMIT ? 0 : -1);
    }
    CHECK_INT(errno, ENOBUFS);
    rd_waiters_remove(&waiters, &many[0].waiter);
    CHECK_INT(add(&many[LIMIT], pair[0], RD_READABLE), 0);
    rd_waiters_clear(&waiters);
    CHECK_INT(many[LIMIT].last, -ECANCELED);
    CHECK_INT(waiters.count, 0);
    rd_waiters_init(&waiters, &loop, LIMIT);
    close_pair(pair);
}

static void test_what_cannot_be_waited_for(void) {
    CHECK_INT(add(&a, -1, RD_READABLE), -1);
    CHECK_INT(errno, EBADF);
    CHECK_INT(add(&a, 1000000, RD_READABLE), -1);
    CHECK_INT(errno, EBADF);
    const int file = open("/proc/self/exe", O_RDONLY);
    const int result = add(&a, file, RD_READABLE);
    if (result == 0) turn(1000000); /* poll(2) reports it as ready */
    CHECK(result == 1 || a.last == RD_READABLE);
    CHECK_INT(waiters.count, 0);
    close(file);
}

/* Random operations in random order: no waiter is lost, and only waiters that wait are called. */
static void test_any_order(void) {
    int pairs[3][2];
    waiting some[LIMIT];
    srand(7);
    for (int i = 0; i < 3; i++) open_pair(pairs[i]);
    for (int i = 0; i < LIMIT; i++) renew(&some[i]);
    for (int step = 0; step < 20000; step++) {
        waiting *one = &some[rand() % LIMIT];
        int *pair = pairs[rand() % 3], fd = pair[rand() % 2];
        char byte;
        switch (rand() % 8) {
        case 0:
            rd_waiters_remove(&waiters, &one->waiter);
            break;
        case 1:
            (void)!write(fd, "x", 1);
            break;
        case 2:
            (void)!read(fd, &byte, 1);
            break;
        case 3:
            turn(0);
            break;
        case 4:
            if (rand() % 2) rd_waiters_close(&waiters, pair[0]);
            if (rand() % 2) rd_waiters_close(&waiters, pair[1]);
            close_pair(pair);
            open_pair(pair);
            break;
        default:
            if (!rd_waiter_waits(&one->waiter)) add(one, fd, 1 + (unsigned)rand() % 3);
        }
        uint32_t count = 0;
        for (int i = 0; i < LIMIT; i++) count += rd_waiter_waits(&some[i].waiter);
        if (!CHECK(count == waiters.count)) break;
    }
    rd_waiters_clear(&waiters);
    rd_waiters_init(&waiters, &loop, LIMIT);
    for (int i = 0; i < 3; i++) close_pair(pairs[i]);
}

int main(void) {
    void (*const tests[])(void) = {test_directions,
                                   test_removal,
                                   test_waiting_again,
                                   test_removal_by_another,
                                   test_closing_in_a_callback,
                                   test_closing,
                                   test_number_used_again,
                                   test_number_used_by_the_loop,
                                   test_closed_with_a_copy,
                                   test_closed_and_opened_anew,
                                   test_closed_and_given_up,
                                   test_a_dropped_report,
                                   test_many_dropped_reports,
                                   test_dropped_and_closed,
                                   test_limit,
                                   test_what_cannot_be_waited_for,
                                   test_any_order};
    for (int poll_only = 0; poll_only < 2; poll_only++) {
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
            start(poll_only != 0);
            tests[i]();
            end();
        }
    }
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * poll(2) and the best poller through the same tests: readiness, interest, removal, hang-up, a
 * wake-up from another thread; and what the loop adds: things closed in a turn are freed after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "best_poller.h"
#include "check.h"
#include "loop/loop.h"

typedef struct probe {
    rd_source source;
    unsigned calls, ready;
} probe;

static void on_ready(rd_source *source, unsigned ready) {
    probe *one = RD_CONTAINER(source, probe, source);
    one->calls++;
    one->ready = ready;
}

static rd_ready_set found;

static void turn(rd_loop *loop, int64_t timeout_us) {
    rd_loop_wait(loop, &found, timeout_us);
    rd_loop_lock(loop);
    rd_loop_process(loop, &found);
    rd_loop_unlock(loop);
}

static void test_readiness(rd_loop *loop) {
    int pair[2];
    probe one = {.source.on_ready = on_ready};
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    one.source.fd = pair[0];
    CHECK_INT(rd_loop_add(loop, &one.source, RD_READABLE), 0);
    turn(loop, 0);
    CHECK_INT(one.calls, 0);
    CHECK_INT(write(pair[1], "x", 1), 1);
    turn(loop, 1000000);
    CHECK_INT(one.calls, 1);
    CHECK_INT(one.ready, RD_READABLE);
    turn(loop, 0); /* level-triggered: still there */
    CHECK_INT(one.calls, 2);
    rd_loop_set_interest(loop, &one.source, RD_WRITABLE);
    turn(loop, 0);
    CHECK_INT(one.ready, RD_WRITABLE);
    rd_loop_set_interest(loop, &one.source, 0);
    turn(loop, 0);
    CHECK_INT(one.calls, 3);
    close(pair[1]);
    turn(loop, 0);
    CHECK(one.ready & RD_HANGUP);
    rd_loop_remove(loop, &one.source);
    turn(loop, 0);
    CHECK_INT(one.calls, 4);
    close(pair[0]);
}

/* Half of an end is for those who read. A hang-up is for everybody, until the source is removed. */
static void test_ends(rd_loop *loop) {
    int pair[2];
    probe one = {.source.on_ready = on_ready};
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    one.source.fd = pair[0];
    CHECK_INT(rd_loop_add(loop, &one.source, 0), 0);
    CHECK_INT(write(pair[1], "x", 1), 1);
    CHECK_INT(shutdown(pair[1], SHUT_WR), 0);
    turn(loop, 0);
    CHECK_INT(one.calls, 0);
    rd_loop_set_interest(loop, &one.source, RD_READABLE | RD_WRITABLE);
    turn(loop, 0);
    CHECK_INT(one.calls, 1);
    CHECK_INT(one.ready, RD_READABLE | RD_WRITABLE);
    rd_loop_set_interest(loop, &one.source, 0);
    turn(loop, 0);
    CHECK_INT(one.calls, 1);
    close(pair[1]);
    for (unsigned turns = 2; turns < 5; turns++) {
        turn(loop, 0);
        CHECK_INT(one.calls, turns);
        CHECK_INT(one.ready, RD_READABLE | RD_WRITABLE | RD_HANGUP);
    }
    rd_loop_set_interest(loop, &one.source, RD_READABLE);
    turn(loop, 0);
    CHECK_INT(one.calls, 5);
    CHECK(one.ready & RD_HANGUP);
    rd_loop_remove(loop, &one.source);
    turn(loop, 0);
    CHECK_INT(one.calls, 5);
    close(pair[0]);
}

/* Another source takes the number of one that was closed without notice. */
static void test_a_number_that_was_closed(rd_loop *loop) {
    int first[2], second[2];
    probe old = {.source.on_ready = on_ready}, new = {.source.on_ready = on_ready};
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, first), 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, second), 0);
    old.source.fd = new.source.fd = first[0];
    CHECK_INT(rd_loop_add(loop, &old.source, RD_READABLE), 0);
    CHECK_INT(dup2(second[0], first[0]), first[0]);
    CHECK_INT(rd_loop_add(loop, &new.source, RD_READABLE), 0);
    old.source.registered = 0; /* as waiters.c does: the poller may not know it any more */
    if (!loop->ops->by_file) loop->ops->remove(loop->poller, &old.source);
    CHECK_INT(write(second[1], "x", 1), 1);
    turn(loop, 0);
    CHECK_INT(old.calls, 0);
    CHECK_INT(new.calls, 1);
    rd_loop_remove(loop, &new.source);
    close(first[0]);
    close(first[1]);
    close(second[0]);
    close(second[1]);
}

static void *wake(void *argument) {
    rd_loop *loop = argument;
    while (!atomic_load(&loop->sleeping)) {
    }
    rd_loop_wakeup(loop);
    return NULL;
}

static void test_wakeup(rd_loop *loop) {
    pthread_t thread;
    pthread_create(&thread, NULL, wake, loop);
    atomic_store(&loop->sleeping, true);
    CHECK_INT(rd_loop_wait(loop, &found, 30000000), 1);
    pthread_join(thread, NULL);
    rd_loop_lock(loop);
    rd_loop_process(loop, &found);
    rd_loop_unlock(loop);
    CHECK_INT(rd_loop_wait(loop, &found, 0), 0); /* the wake-up was taken */
    found.count = 0;
}

static unsigned freed;

static void count_free(rd_disposal *disposal) {
    (void)disposal;
    freed++;
}

static void test_closing(rd_loop *loop) {
    rd_disposal closing = {.free = count_free};
    freed = 0;
    rd_loop_free_later(loop, &closing);
    CHECK_INT(freed, 0);
    turn(loop, 0);
    CHECK_INT(freed, 1);
}

/* One descriptor is left: enough for the poller, not for what wakes it. */
static void test_a_loop_that_cannot_begin_leaves_nothing(void) {
    struct rlimit before, few;
    rd_loop loop;
    const int first = dup(0);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){(rlim_t)first + 1, before.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
    close(first);
    CHECK_INT(rd_loop_init(&loop, false), -1);
    CHECK_INT(errno, EMFILE);
    CHECK_INT(dup(0), first);
    close(first);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void) {
    static rd_loop loop;
    for (int poll_only = 0; poll_only < 2; poll_only++) {
        CHECK_INT(rd_loop_init(&loop, poll_only != 0), 0);
        CHECK_STR(loop.ops->name, poll_only ? "poll" : best_poller());
        test_readiness(&loop);
        test_ends(&loop);
        test_a_number_that_was_closed(&loop);
        test_wakeup(&loop);
        test_closing(&loop);
        rd_loop_clear(&loop);
    }
    test_a_loop_that_cannot_begin_leaves_nothing();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Rondo::ProcessTree: what a server asks of the kernel and Ruby has no methods for: which process
 * adopts orphans, that a child does not outlive its parent, which processes get a terminal's
 * signals, how many arenas malloc has. lib/rondo/cluster.rb, worker.rb and first_process.rb use it.
 * The guard below runs on its own thread, without Ruby.
 */
#include "ruby/rb_objects.h"

#include "base/alloc.h"
#include "system/clock.h"
#include "system/thread_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <ruby.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* Makes this process the parent of its descendants' orphans.
 * @return [Boolean] whether the system can do that */
static VALUE tree_set_subreaper(VALUE self) {
    (void)self;
#ifdef PR_SET_CHILD_SUBREAPER
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 ? Qtrue : Qfalse;
#else
    return Qfalse;
#endif
}

/* The signal that the kernel sends to this process when its parent dies.
 * @param signal [Integer] its number; 0: none
 * @return [Boolean] whether the system can do that; false if the number is not a signal's */
static VALUE tree_set_parent_death_signal(VALUE self, VALUE signal) {
    (void)self;
    int number = NUM2INT(signal);
#ifdef PR_SET_PDEATHSIG
    return prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) == 0 ? Qtrue : Qfalse;
#else
    (void)number;
    return Qfalse;
#endif
}

/* Makes this process the leader of its own process group. If the process has a terminal, the group
 * gets it: signals typed there (Ctrl-C) go to this group alone.
 * @return [nil] */
static VALUE tree_lead_terminal(VALUE self) {
    (void)self;
    setpgid(0, 0);
    /* A background process that takes the terminal gets TTOU, which would stop it. */
    sigset_t output, before;
    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &output, &before);
    (void)tcsetpgrp(STDIN_FILENO, getpgrp());
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return Qnil;
}

/* Ruby's threads allocate one at a time, so an arena for each of them only fragments free memory.
 * Two are enough, unless the environment says otherwise. The limit holds for new arenas, and in
 * child processes.
 * @return [nil] */
static VALUE tree_limit_arenas(VALUE self) {
    (void)self;
#ifdef M_ARENA_MAX
    if (getenv("MALLOC_ARENA_MAX") == NULL && getenv("GLIBC_TUNABLES") == NULL) {
        mallopt(M_ARENA_MAX, 2);
    }
#endif
    return Qnil;
}

/* ---- the guard: ends this process after the other end of a socket is closed ---- */

typedef struct guard {
    int fd; /* owned: a duplicate */
    int signal;
    int64_t grace_ms;
} guard;

static void wait_for_hang_up(int fd) {
    struct pollfd waited = {.fd = fd, .events = POLLRDHUP};
    const short gone = POLLHUP | POLLRDHUP | POLLERR | POLLNVAL;
    while (poll(&waited, 1, -1) < 0 ? errno == EINTR : !(waited.revents & gone)) {
    }
}

static void *guard_main(void *argument) {
    guard guard = *(struct guard *)argument;
    rd_free(argument);
    wait_for_hang_up(guard.fd);
    kill(getpid(), guard.signal);
    struct timespec left = rd_clock_timespec((uint64_t)guard.grace_ms * 1000000);
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    kill(getpid(), SIGKILL);
    return NULL;
}

static int start_detached(void *(*run)(void *), void *argument) {
    pthread_t thread;
    const int code = rd_thread_start(&thread, run, argument);
    if (code == 0) pthread_detach(thread);
    return code;
}

/* Sends this process a signal when the other end of a socket is closed, and KILL later. Works even
 * while Ruby is stuck.
 * @param fd [Integer] of the socket; a duplicate is kept
 * @param signal [Integer] its number
 * @param grace_ms [Integer] milliseconds between the two
 * @return [nil]
 * @raise [SystemCallError] the system has no descriptor or no thread left */
static VALUE tree_end_with(VALUE self, VALUE fd, VALUE signal, VALUE grace_ms) {
    (void)self;
    const int number = NUM2INT(signal);
    const int64_t grace = NUM2LL(grace_ms);
    int copy = fcntl(NUM2INT(fd), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) rb_sys_fail("guard");
    guard *started = rd_alloc(sizeof(*started));
    *started = (guard){.fd = copy, .signal = number, .grace_ms = grace > 0 ? grace : 0};
    int code = start_detached(guard_main, started);
    if (code != 0) {
        close(copy);
        rd_free(started);
        rb_syserr_fail(code, "guard");
    }
    return Qnil;
}

/* Document-module: Rondo::ProcessTree
 * What the processes of a cluster ask of the kernel and of malloc.
 * @api private */
void rd_init_process(VALUE rondo) {
    VALUE tree = rb_define_module_under(rondo, "ProcessTree");
    rb_define_singleton_method(tree, "set_subreaper", tree_set_subreaper, 0);
    rb_define_singleton_method(tree, "set_parent_death_signal", tree_set_parent_death_signal, 1);
    rb_define_singleton_method(tree, "lead_terminal", tree_lead_terminal, 0);
    rb_define_singleton_method(tree, "limit_arenas", tree_limit_arenas, 0);
    rb_define_singleton_method(tree, "end_with", tree_end_with, 3);
}

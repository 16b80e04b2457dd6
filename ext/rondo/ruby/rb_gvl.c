/* SPDX-License-Identifier: MIT
 *
 * Waiting without the GVL; see rb_gvl.h. RUBY_UBF_IO everywhere: a ubf of one's own costs 25 us a
 * call on Ruby up to 3.2.
 */
#include "ruby/rb_gvl.h"

#include <ruby/thread.h>
#include <time.h>

typedef struct rd_poll_wait {
    rd_server *server;
    int64_t timeout_us;
} rd_poll_wait;

static void *wait_nogvl(void *argument) {
    rd_poll_wait *wait = argument;
    rd_loop_wait(&wait->server->loop, wait->timeout_us);
    return NULL;
}

void rd_gvl_wait(rd_server *server, int64_t timeout_us) {
    rd_poll_wait wait = {server, timeout_us};
    if (timeout_us == 0) {
        wait_nogvl(&wait);
    } else {
        rb_thread_call_without_gvl2(wait_nogvl, &wait, RUBY_UBF_IO, NULL);
    }
}

void rd_gvl_check_interrupts(void) {
    rb_thread_check_ints();
}

typedef struct rd_change_wait {
    rd_binding *binding;
    uint64_t seen;
} rd_change_wait;

static void *change_nogvl(void *argument) {
    rd_change_wait *wait = argument;
    rd_binding *binding = wait->binding;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1; /* a signal does not wake a condition: look at interrupts now and then */
    pthread_mutex_lock(&binding->change_lock);
    if (binding->change_count == wait->seen) {
        pthread_cond_timedwait(&binding->changed, &binding->change_lock, &until);
    }
    pthread_mutex_unlock(&binding->change_lock);
    return NULL;
}

static void wake_changed(void *argument) {
    rd_gvl_announce_change(argument);
}

uint64_t rd_gvl_change_count(rd_binding *binding) {
    pthread_mutex_lock(&binding->change_lock);
    uint64_t count = binding->change_count;
    pthread_mutex_unlock(&binding->change_lock);
    return count;
}

void rd_gvl_await_change(rd_binding *binding, uint64_t seen) {
    rd_change_wait wait = {binding, seen};
    rb_thread_call_without_gvl(change_nogvl, &wait, wake_changed, binding);
}

void rd_gvl_announce_change(rd_binding *binding) {
    pthread_mutex_lock(&binding->change_lock);
    binding->change_count++;
    pthread_cond_broadcast(&binding->changed);
    pthread_mutex_unlock(&binding->change_lock);
}

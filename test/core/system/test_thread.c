/* SPDX-License-Identifier: MIT
 *
 * One thread looks at another that sleeps, that computes, and that is over.
 */
#include "system/thread.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "check.h"

static sem_t ready, go_on;
static atomic_bool computes;
static rd_thread other;

static void *live(void *argument) {
    (void)argument;
    prctl(PR_SET_NAME, "a ) R (b");
    other = rd_thread_self();
    sem_post(&ready);
    sem_wait(&go_on);
    sem_post(&ready);
    while (atomic_load(&computes)) {
    }
    return NULL;
}

static void test_states(void) {
    pthread_t thread;
    rd_thread nobody = {.id = 0};
    sem_init(&ready, 0, 0);
    sem_init(&go_on, 0, 0);
    atomic_store(&computes, true);
    CHECK_INT(rd_thread_state_of(&nobody), RD_THREAD_UNKNOWN);
    CHECK_INT(rd_thread_cpu_ns(&nobody), 0);

    CHECK_INT(pthread_create(&thread, NULL, live, NULL), 0);
    sem_wait(&ready);
    while (rd_thread_state_of(&other) != RD_THREAD_SLEEPING) { /* on its way to sem_wait */
    }
    uint64_t before = rd_thread_cpu_ns(&other);
    for (uint64_t now; (now = rd_thread_cpu_ns(&other)) != before; before = now) { /* until idle */
    }
    CHECK(before > 0);

    sem_post(&go_on);
    sem_wait(&ready);
    CHECK_INT(rd_thread_state_of(&other), RD_THREAD_RUNNABLE);
    while (rd_thread_cpu_ns(&other) <= before) {
    }
    atomic_store(&computes, false);
    pthread_join(thread, NULL);
    while (rd_thread_state_of(&other) != RD_THREAD_UNKNOWN) { /* the kernel cleans up */
    }
    CHECK_INT(rd_thread_cpu_ns(&other), 0);
    sem_destroy(&ready);
    sem_destroy(&go_on);
}

static void test_process(void) {
    const uint64_t before = rd_process_cpu_ns();
    CHECK(before > 0);
    while (rd_process_cpu_ns() <= before) {
    }
}

static void test_self(void) {
    rd_thread self = rd_thread_self();
    CHECK_INT(self.id, getpid()); /* the main thread */
    CHECK_INT(rd_thread_state_of(&self), RD_THREAD_RUNNABLE);
}

static void test_sleeps_that_end_on_time(void) {
    CHECK(prctl(PR_GET_TIMERSLACK) > 1);
    rd_thread_be_punctual();
    CHECK_INT(prctl(PR_GET_TIMERSLACK), 1);
}

int main(void) {
    test_states();
    test_self();
    test_process();
    test_sleeps_that_end_on_time();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Posts are counted; waits end by a post, by their time and by a signal; many threads share one; a
 * forked child has its own.
 */
#include "system/semaphore.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4, POSTS = 20000, FORKS = 200, PATIENCE_S = 60 };

static rd_semaphore shared, ready;
static _Atomic unsigned taken;
static int plain; /* protected only by the semaphore */

static void test_posts_are_counted(void) {
    rd_semaphore one;
    rd_semaphore_init(&one);
    CHECK(!rd_semaphore_wait(&one, 0));
    rd_semaphore_post(&one);
    rd_semaphore_post(&one);
    CHECK(rd_semaphore_wait(&one, 0));
    CHECK(rd_semaphore_wait(&one, -1));
    CHECK(!rd_semaphore_wait(&one, 0));
    CHECK(!rd_semaphore_wait(&one, 1000000));
}

static void *take_all(void *argument) {
    (void)argument;
    for (int i = 0; i < POSTS; i++) {
        while (!rd_semaphore_wait(&shared, i % 2 ? -1 : 1000000)) {
        }
        atomic_fetch_add(&taken, 1);
    }
    return NULL;
}

static void *post_all(void *argument) {
    (void)argument;
    for (int i = 0; i < POSTS; i++) rd_semaphore_post(&shared);
    return NULL;
}

static void test_many_threads(void) {
    pthread_t threads[2 * THREADS];
    rd_semaphore_init(&shared);
    for (int i = 0; i < 2 * THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, i % 2 ? take_all : post_all, NULL), 0);
    for (int i = 0; i < 2 * THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_INT(taken, THREADS * POSTS);
    CHECK(!rd_semaphore_wait(&shared, 0));
}

static void *write_and_post(void *argument) {
    (void)argument;
    plain = 1;
    rd_semaphore_post(&shared);
    return NULL;
}

static void test_what_was_written_before_a_post_is_seen(void) {
    pthread_t thread;
    rd_semaphore_init(&shared);
    CHECK_INT(pthread_create(&thread, NULL, write_and_post, NULL), 0);
    CHECK(rd_semaphore_wait(&shared, -1));
    CHECK_INT(plain, 1);
    pthread_join(thread, NULL);
}

static void on_signal(int number) {
    (void)number;
}

static void *wait_for_signal(void *argument) {
    (void)argument;
    rd_semaphore_post(&ready);
    const bool posted = rd_semaphore_wait(&shared, -1);
    rd_semaphore_post(&ready);
    return posted ? &ready : NULL;
}

static void test_a_signal_ends_a_wait(void) {
    struct sigaction action = {.sa_handler = on_signal};
    pthread_t thread;
    sigaction(SIGUSR1, &action, NULL);
    rd_semaphore_init(&shared);
    rd_semaphore_init(&ready);
    CHECK_INT(pthread_create(&thread, NULL, wait_for_signal, NULL), 0);
    CHECK(rd_semaphore_wait(&ready, -1));
    /* The thread may not wait yet when the first posts come. */
    do pthread_kill(thread, SIGUSR1);
    while (!rd_semaphore_wait(&ready, 1000000));
    void *posted;
    pthread_join(thread, &posted);
    CHECK(posted == NULL);
}

static atomic_bool over;

static void *post_and_take(void *argument) {
    (void)argument;
    while (!over) {
        rd_semaphore_post(&shared);
        rd_semaphore_wait(&shared, 1000000);
    }
    return NULL;
}

/* The threads of the parent, and what they hold at that moment, are not there in the child. */
static void use_after_fork(void) {
    alarm(PATIENCE_S);
    rd_semaphore_post(&shared);
    _exit(rd_semaphore_wait(&shared, -1) ? 0 : 1);
}

static void test_a_forked_child_waits_for_no_thread_of_its_parent(void) {
    pthread_t threads[THREADS];
    rd_semaphore_init(&shared);
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, post_and_take, NULL), 0);
    for (int i = 0, status = 0; i < FORKS && status == 0; i++) {
        const pid_t child = fork();
        if (child == 0) use_after_fork();
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
    }
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(void) {
    test_posts_are_counted();
    test_many_threads();
    test_what_was_written_before_a_post_is_seen();
    test_a_signal_ends_a_wait();
    test_a_forked_child_waits_for_no_thread_of_its_parent();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * The run list of a thread: order, results, what may be dropped where, and other threads that make
 * things ready while the owner sleeps.
 */
#include "loop/run_list.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "check.h"

#define THREADS 4
#define ROUNDS  5000

static rd_run_list list;
static sem_t woken;
static int wakes;

static void count_wake(rd_run_list *woken_list) {
    CHECK(woken_list == &list);
    wakes++;
}

static void post_wake(rd_run_list *woken_list) {
    (void)woken_list;
    sem_post(&woken);
}

static int batch_size(const rd_list *batch) {
    int size = 0;
    for (rd_list *node = batch->next; node != batch; node = node->next) size++;
    return size;
}

static void test_results(void) {
    rd_runnable a, b;
    rd_list batch;
    wakes = 0;
    rd_list_init(&batch);
    rd_run_list_init(&list, count_wake);
    rd_runnable_init(&a);
    rd_runnable_init(&b);
    rd_run_list_add(&list, &a, 0);
    rd_run_list_add(&list, &b, 3);
    rd_run_list_add(&list, &a, 5); /* instead of the deadline */
    rd_run_list_add(&list, &a, 7); /* too late */
    rd_run_list_take(&list, &batch, UINT32_MAX);
    CHECK_INT(batch_size(&batch), 2);
    CHECK(batch.next == &a.node);
    rd_run_list_add(&list, &b, 9); /* it is ready still */
    CHECK_INT(rd_run_list_drop(&list, &a), 5);
    CHECK_INT(rd_run_list_drop(&list, &b), 3);
    CHECK_INT(batch_size(&batch), 0);
    CHECK_INT(rd_run_list_drop(&list, &b), 0);
    rd_run_list_add(&list, &b, 9);
    CHECK_INT(rd_run_list_drop(&list, &b), 9);
    CHECK_INT(wakes, 0);
    rd_run_list_clear(&list);
}

static void test_hold(void) {
    rd_runnable a, b;
    rd_list urgent;
    rd_list_init(&urgent);
    rd_run_list_init(&list, count_wake);
    rd_runnable_init(&a);
    rd_runnable_init(&b);
    CHECK(rd_run_list_hold(&list, &a, &urgent));
    CHECK(rd_run_list_hold(&list, &b, &urgent));
    CHECK(!rd_run_list_hold(&list, &a, &urgent));
    CHECK(urgent.next == &b.node && b.node.next == &a.node);
    rd_run_list_add(&list, &a, 4); /* changes no list */
    CHECK(rd_run_list_begin_sleep(&list));
    rd_run_list_end_sleep(&list);
    CHECK_INT(rd_run_list_drop(&list, &a), 4);
    rd_run_list_drop(&list, &b);
    rd_run_list_clear(&list);
}

static void test_sleep(void) {
    rd_runnable a, b;
    wakes = 0;
    rd_run_list_init(&list, count_wake);
    rd_runnable_init(&a);
    rd_runnable_init(&b);
    CHECK(rd_run_list_begin_sleep(&list));
    rd_run_list_add(&list, &a, 1);
    rd_run_list_add(&list, &b, 1);
    CHECK_INT(wakes, 1);
    rd_run_list_end_sleep(&list);
    CHECK(!rd_run_list_begin_sleep(&list));
    rd_run_list_drop(&list, &a);
    rd_run_list_drop(&list, &b);
    rd_run_list_clear(&list);
}

/* ---- other threads ---- */

typedef struct other {
    pthread_t thread;
    rd_runnable runnable;
    sem_t ran;
} other;

static atomic_int finished;

/* Two wake-ups each time, as from a descriptor and a deadline. The second one may come after the
 * owner has run this: then it runs once more, and one of the next rounds does not wait. */
static void *make_ready(void *argument) {
    other *own = argument;
    for (int i = 0; i < ROUNDS; i++) {
        rd_run_list_add(&list, &own->runnable, 1);
        rd_run_list_add(&list, &own->runnable, 2);
        while (sem_wait(&own->ran) != 0) {
        }
    }
    atomic_fetch_add(&finished, 1);
    sem_post(&woken);
    return NULL;
}

static void run_batch(void) {
    rd_list batch;
    rd_list_init(&batch);
    rd_run_list_take(&list, &batch, UINT32_MAX);
    for (rd_list *node; (node = rd_list_shift(&batch)) != NULL;) {
        other *ready = RD_CONTAINER(node, other, runnable.node);
        const int result = rd_run_list_drop(&list, &ready->runnable);
        CHECK(result == 1 || result == 2);
        sem_post(&ready->ran);
    }
}

static void test_threads(void) {
    static other others[THREADS];
    sem_init(&woken, 0, 0);
    rd_run_list_init(&list, post_wake);
    for (int i = 0; i < THREADS; i++) {
        rd_runnable_init(&others[i].runnable);
        sem_init(&others[i].ran, 0, 0);
        pthread_create(&others[i].thread, NULL, make_ready, &others[i]);
    }
    while (atomic_load(&finished) < THREADS) {
        if (rd_run_list_begin_sleep(&list)) {
            while (sem_wait(&woken) != 0) {
            }
        }
        rd_run_list_end_sleep(&list);
        run_batch();
    }
    for (int i = 0; i < THREADS; i++) pthread_join(others[i].thread, NULL);
    run_batch();
    rd_run_list_clear(&list);
}

static void test_some_of_them(void) {
    rd_runnable some[3];
    rd_list batch;
    rd_list_init(&batch);
    rd_run_list_init(&list, count_wake);
    CHECK(rd_run_list_is_empty(&list));
    for (int i = 0; i < 3; i++) {
        rd_runnable_init(&some[i]);
        rd_run_list_add(&list, &some[i], 1);
    }
    rd_run_list_take(&list, &batch, 2);
    CHECK_INT(batch_size(&batch), 2);
    CHECK(batch.next == &some[0].node);
    CHECK(!rd_run_list_is_empty(&list));
    rd_run_list_take(&list, &batch, 2);
    CHECK(rd_run_list_is_empty(&list));
    CHECK(batch.prev == &some[2].node);
    for (int i = 0; i < 3; i++) rd_run_list_drop(&list, &some[i]);
    rd_run_list_clear(&list);
}

/* A gate wakes what comes before it is opened, and what comes after. */
static void test_gates(void) {
    rd_runnable waits;
    wakes = 0;
    rd_run_list_init(&list, count_wake);
    rd_runnable_init(&waits);
    rd_gate gate = {.list = &list};
    rd_gate_open(&gate); /* nothing waits yet */
    CHECK(rd_run_list_is_empty(&list));
    rd_gate_wait(&gate, &waits);
    CHECK(!rd_run_list_is_empty(&list));
    CHECK(rd_gate_leave(&gate));
    CHECK_INT(rd_run_list_drop(&list, &waits), 1);
    rd_gate_wait(&gate, &waits); /* it is closed again */
    CHECK(rd_run_list_begin_sleep(&list));
    rd_gate_open(&gate);
    CHECK_INT(wakes, 1);
    CHECK(rd_gate_leave(&gate));
    CHECK_INT(rd_run_list_drop(&list, &waits), 1);
    rd_gate_wait(&gate, &waits);
    CHECK(!rd_gate_leave(&gate)); /* its time was up */
    rd_gate_open(&gate);
    CHECK(rd_run_list_is_empty(&list));
    rd_run_list_clear(&list);
}

int main(void) {
    test_results();
    test_some_of_them();
    test_gates();
    test_hold();
    test_sleep();
    test_threads();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Making things ready for a thread that may sleep; see run_list.h.
 */
#include "loop/run_list.h"

#include <assert.h>

void rd_run_list_init(rd_run_list *list, void (*wake)(rd_run_list *list)) {
    pthread_mutex_init(&list->lock, NULL);
    rd_list_init(&list->ready);
    list->sleeping = false;
    list->wake = wake;
}

void rd_run_list_clear(rd_run_list *list) {
    assert(rd_list_is_empty(&list->ready));
    pthread_mutex_destroy(&list->lock);
}

/* Under the lock. Returns whether the owner must be woken. */
static bool add(rd_run_list *list, rd_runnable *runnable, int result) {
    const bool was_ready = runnable->is_ready;
    if (!was_ready || runnable->result == 0) runnable->result = result;
    if (!was_ready) rd_list_append(&list->ready, &runnable->node);
    runnable->is_ready = true;
    const bool wakes = !was_ready && list->sleeping;
    if (wakes) list->sleeping = false;
    return wakes;
}

void rd_run_list_add(rd_run_list *list, rd_runnable *runnable, int result) {
    pthread_mutex_lock(&list->lock);
    const bool wakes = add(list, runnable, result);
    pthread_mutex_unlock(&list->lock);
    if (wakes) list->wake(list);
}

void rd_gate_open(rd_gate *gate) {
    rd_run_list *list = gate->list; /* the gate may be gone once the lock is released */
    pthread_mutex_lock(&list->lock);
    gate->is_open = true;
    const bool wakes = gate->behind != NULL && add(list, gate->behind, 1);
    pthread_mutex_unlock(&list->lock);
    if (wakes) list->wake(list);
}

void rd_gate_wait(rd_gate *gate, rd_runnable *runnable) {
    pthread_mutex_lock(&gate->list->lock);
    gate->behind = runnable;
    if (gate->is_open) add(gate->list, runnable, 1); /* the owner does not sleep */
    pthread_mutex_unlock(&gate->list->lock);
}

bool rd_gate_leave(rd_gate *gate) {
    pthread_mutex_lock(&gate->list->lock);
    const bool was_open = gate->is_open;
    gate->is_open = false;
    gate->behind = NULL;
    pthread_mutex_unlock(&gate->list->lock);
    return was_open;
}

void rd_run_list_take(rd_run_list *list, rd_list *batch, uint32_t most) {
    pthread_mutex_lock(&list->lock);
    for (rd_list *node; most > 0 && (node = rd_list_shift(&list->ready)) != NULL; most--)
        rd_list_append(batch, node);
    pthread_mutex_unlock(&list->lock);
}

bool rd_run_list_is_empty(rd_run_list *list) {
    pthread_mutex_lock(&list->lock);
    const bool is_empty = rd_list_is_empty(&list->ready);
    pthread_mutex_unlock(&list->lock);
    return is_empty;
}

bool rd_run_list_hold(rd_run_list *list, rd_runnable *runnable, rd_list *first_of) {
    pthread_mutex_lock(&list->lock);
    const bool was_ready = runnable->is_ready;
    if (!was_ready) rd_list_insert_before(first_of->next, &runnable->node);
    runnable->is_ready = true;
    pthread_mutex_unlock(&list->lock);
    return !was_ready;
}

int rd_run_list_drop(rd_run_list *list, rd_runnable *runnable) {
    pthread_mutex_lock(&list->lock);
    rd_list_unlink(&runnable->node);
    runnable->is_ready = false;
    const int result = runnable->result;
    runnable->result = 0;
    pthread_mutex_unlock(&list->lock);
    return result;
}

bool rd_run_list_begin_sleep(rd_run_list *list) {
    pthread_mutex_lock(&list->lock);
    list->sleeping = rd_list_is_empty(&list->ready);
    const bool sleeps = list->sleeping;
    pthread_mutex_unlock(&list->lock);
    return sleeps;
}

void rd_run_list_end_sleep(rd_run_list *list) {
    pthread_mutex_lock(&list->lock);
    list->sleeping = false;
    pthread_mutex_unlock(&list->lock);
}

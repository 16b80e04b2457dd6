/* SPDX-License-Identifier: MIT
 *
 * Work that was put off; see deferred.h.
 */
#include "transport/deferred.h"

#include "system/clock.h"

#define TURN_NS 100000 /* of a turn of the loop */

void rd_deferred_init(rd_deferred *deferred, void (*go_on)(rd_deferred *deferred)) {
    rd_list_init(&deferred->in_line);
    deferred->go_on = go_on;
}

/* The line is looked at only while there are layers, so whoever waits counts as one. */
void rd_deferred_wait(rd_conn_set *set, rd_deferred *deferred) {
    if (rd_deferred_waits(deferred)) return;
    rd_list_append(&set->layers.deferred, &deferred->in_line);
    set->layers.count++;
}

void rd_deferred_leave(rd_conn_set *set, rd_deferred *deferred) {
    if (!rd_deferred_waits(deferred)) return;
    rd_list_unlink(&deferred->in_line);
    set->layers.count--;
}

static uint64_t spent(const rd_conn_set *set) {
    const rd_layers *layers = &set->layers;
    return layers->deferred_turn == set->loop->turns ? layers->deferred_ns : 0;
}

uint64_t rd_deferred_until(const rd_conn_set *set, uint64_t now_ns) {
    const uint64_t gone = spent(set);
    if (gone >= TURN_NS || !rd_list_is_empty(&set->layers.deferred)) return 0;
    return now_ns + (TURN_NS - gone);
}

void rd_deferred_spend(rd_conn_set *set, uint64_t ns) {
    set->layers.deferred_ns = spent(set) + ns;
    set->layers.deferred_turn = set->loop->turns;
}

static void serve_first(rd_conn_set *set) {
    rd_deferred *deferred = RD_CONTAINER(set->layers.deferred.next, rd_deferred, in_line);
    rd_deferred_leave(set, deferred);
    deferred->go_on(deferred);
}

void rd_deferred_finish(rd_conn_set *set) {
    while (!rd_list_is_empty(&set->layers.deferred)) serve_first(set);
}

/* At least one is served in each turn, however much new work there was. */
void rd_deferred_serve(rd_conn_set *set) {
    rd_list *line = &set->layers.deferred;
    if (rd_list_is_empty(line)) return;
    const uint64_t gone = spent(set), left = gone < TURN_NS ? TURN_NS - gone : 0;
    const uint64_t until = rd_clock_ns() + left;
    do {
        serve_first(set);
    } while (!rd_list_is_empty(line) && rd_clock_ns() < until);
}

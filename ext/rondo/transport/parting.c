/* SPDX-License-Identifier: MIT
 *
 * The slots and their timer; see parting.h.
 */
#include "transport/parting.h"

#include <assert.h>

#include "base/alloc.h"
#include "system/random.h"

typedef struct rd_parting {
    rd_conn_set *set;
    rd_timer timer;
    uint64_t began_ms, span_ms;
    uint64_t random;      /* state of the generator */
    const rd_conn *ended; /* whose on_shutdown runs */
    uint32_t next;        /* the slots before it are over */
    rd_list slots[RD_PARTING_SLOTS];
} rd_parting;

/* splitmix64: this only scatters, and may be foreseen. */
static uint64_t next_random(rd_parting *parting) {
    uint64_t bits = parting->random += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

/* The last slot is due at the end of the span. */
static uint64_t due_of(const rd_parting *parting, uint32_t slot) {
    return parting->began_ms + (slot + 1) * parting->span_ms / RD_PARTING_SLOTS;
}

static void arm(rd_parting *parting) {
    const rd_loop *loop = parting->set->loop;
    uint32_t slot = parting->next;
    while (slot < RD_PARTING_SLOTS && rd_list_is_empty(&parting->slots[slot])) slot++;
    if (slot == RD_PARTING_SLOTS) return;
    const uint64_t due = due_of(parting, slot), soonest = loop->now_ms + 1;
    rd_timer_set(&parting->set->loop->timers, &parting->timer, due > soonest ? due : soonest);
}

static void go_home(rd_conn *conn) {
    rd_conn_set *set = conn->set;
    rd_list_append(rd_conn_carrier(conn) != NULL ? &set->carried : &set->conns, &conn->in_set);
}

/* Ends at most `most` connections of the slot. Returns how many there were. */
static uint32_t end_some(rd_parting *parting, rd_list *slot, uint32_t most) {
    uint32_t count = 0;
    while (count < most && !rd_list_is_empty(slot)) {
        rd_conn *conn = RD_CONTAINER(rd_list_shift(slot), rd_conn, in_set);
        go_home(conn);
        parting->ended = conn;
        rd_conn_shut_down(conn);
        parting->ended = NULL;
        count++;
    }
    return count;
}

static void on_due(rd_timer *timer) {
    rd_parting *parting = RD_CONTAINER(timer, rd_parting, timer);
    const uint64_t now = parting->set->loop->now_ms;
    uint32_t left = RD_PARTING_PER_TURN;
    while (parting->next < RD_PARTING_SLOTS && due_of(parting, parting->next) <= now) {
        rd_list *slot = &parting->slots[parting->next];
        left -= end_some(parting, slot, left);
        if (!rd_list_is_empty(slot)) break;
        parting->next++;
    }
    arm(parting);
}

void rd_parting_begin(rd_conn_set *set, uint64_t span_ms) {
    assert(set->parting == NULL);
    if (span_ms == 0) return;
    rd_parting *parting = set->parting = rd_alloc(sizeof(*parting));
    parting->set = set;
    parting->began_ms = set->loop->now_ms;
    parting->span_ms = span_ms;
    parting->ended = NULL;
    parting->next = 0;
    rd_timer_init(&parting->timer, on_due);
    rd_random(&parting->random, sizeof(parting->random));
    for (uint32_t i = 0; i < RD_PARTING_SLOTS; i++) rd_list_init(&parting->slots[i]);
}

void rd_parting_end(rd_conn_set *set) {
    rd_parting *parting = set->parting;
    if (parting == NULL) return;
    if (rd_timer_is_armed(&parting->timer)) rd_timer_cancel(&parting->timer);
    for (uint32_t i = parting->next; i < RD_PARTING_SLOTS; i++) {
        rd_list *slot = &parting->slots[i];
        while (!rd_list_is_empty(slot)) {
            go_home(RD_CONTAINER(rd_list_shift(slot), rd_conn, in_set));
        }
    }
    set->parting = NULL;
    rd_free(parting);
}

bool rd_parting_is_ending(const rd_conn *conn) {
    return conn->set->parting != NULL && conn->set->parting->ended == conn;
}

bool rd_parting_add(rd_conn *conn) {
    rd_parting *parting = conn->set->parting;
    if (parting == NULL || parting->next == RD_PARTING_SLOTS) return false;
    const uint64_t number = next_random(parting) % (RD_PARTING_SLOTS - parting->next);
    const uint32_t slot = parting->next + (uint32_t)number;
    rd_list_unlink(&conn->in_set);
    rd_list_append(&parting->slots[slot], &conn->in_set);
    if (!rd_timer_is_armed(&parting->timer) || due_of(parting, slot) < parting->timer.due) {
        arm(parting);
    }
    return true;
}

static bool is_in_use(const rd_list *slot) {
    for (const rd_list *node = slot->next; node != slot; node = node->next) {
        const rd_conn *conn = RD_CONTAINER(node, const rd_conn, in_set);
        if (conn->state == RD_CONN_OPEN || conn->state == RD_CONN_FINISHING) return true;
    }
    return false;
}

bool rd_parting_is_in_use(const rd_conn_set *set) {
    const rd_parting *parting = set->parting;
    if (parting == NULL) return false;
    for (uint32_t i = parting->next; i < RD_PARTING_SLOTS; i++) {
        if (is_in_use(&parting->slots[i])) return true;
    }
    return false;
}

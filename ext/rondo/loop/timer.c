/* SPDX-License-Identifier: MIT
 *
 * The timer wheel; see timer.h for the picture.
 */
#include "loop/timer.h"

#define LEVEL_BITS 6
#define SLOT_MASK  63u
/* Less than the 64 slots of the top level. So a timer that crosses into the next round stands
 * before now's slot and cannot be mistaken for one of this round. */
#define SPAN_LIMIT (UINT64_C(62) << (LEVEL_BITS * (RD_TIMER_LEVELS - 1)))

typedef struct rd_slot_ref {
    unsigned level, slot;
    uint64_t time; /* UINT64_MAX: none */
} rd_slot_ref;

void rd_timer_wheel_init(rd_timer_wheel *wheel, uint64_t now) {
    wheel->now = now;
    for (unsigned level = 0; level < RD_TIMER_LEVELS; level++) {
        wheel->occupied[level] = 0;
        for (unsigned slot = 0; slot < RD_TIMER_SLOTS; slot++) {
            rd_list_init(&wheel->slots[level][slot]);
        }
    }
}

void rd_timer_init(rd_timer *timer, void (*on_due)(rd_timer *)) {
    rd_list_init(&timer->node);
    timer->due = 0;
    timer->on_due = on_due;
}

static void place(rd_timer_wheel *wheel, rd_timer *timer) {
    unsigned top_bit = 63u - (unsigned)__builtin_clzll(timer->due ^ wheel->now);
    unsigned level = top_bit / LEVEL_BITS;
    if (level >= RD_TIMER_LEVELS) level = RD_TIMER_LEVELS - 1;
    unsigned slot = (unsigned)(timer->due >> (level * LEVEL_BITS)) & SLOT_MASK;
    wheel->occupied[level] |= UINT64_C(1) << slot;
    rd_list_append(&wheel->slots[level][slot], &timer->node);
}

void rd_timer_set(rd_timer_wheel *wheel, rd_timer *timer, uint64_t due) {
    if (rd_timer_is_armed(timer)) rd_list_unlink(&timer->node);
    if (due <= wheel->now) due = wheel->now + 1;
    if (due > wheel->now + SPAN_LIMIT) due = wheel->now + SPAN_LIMIT;
    timer->due = due;
    place(wheel, timer);
}

void rd_timer_cancel(rd_timer *timer) {
    rd_list_unlink(&timer->node);
}

static rd_slot_ref next_slot(const rd_timer_wheel *wheel) {
    for (unsigned level = 0; level < RD_TIMER_LEVELS; level++) {
        unsigned shift = level * LEVEL_BITS;
        unsigned current = (unsigned)(wheel->now >> shift) & SLOT_MASK;
        uint64_t ahead = current == SLOT_MASK ? 0 : wheel->occupied[level] >> (current + 1);
        if (ahead == 0) continue;
        unsigned slot = current + 1 + (unsigned)__builtin_ctzll(ahead);
        uint64_t above = wheel->now >> shift >> LEVEL_BITS << LEVEL_BITS << shift;
        return (rd_slot_ref){level, slot, above | ((uint64_t)slot << shift)};
    }
    /* Only a timer that crosses into the next span of the top level has a lower slot than now's. */
    unsigned shift = (RD_TIMER_LEVELS - 1) * LEVEL_BITS;
    if (wheel->occupied[RD_TIMER_LEVELS - 1] != 0) {
        unsigned slot = (unsigned)__builtin_ctzll(wheel->occupied[RD_TIMER_LEVELS - 1]);
        uint64_t above = (wheel->now >> shift >> LEVEL_BITS) + 1;
        return (rd_slot_ref){RD_TIMER_LEVELS - 1, slot, (above << LEVEL_BITS | slot) << shift};
    }
    return (rd_slot_ref){0, 0, UINT64_MAX};
}

static void expire_slot(rd_timer_wheel *wheel, rd_slot_ref ref, rd_list *expired) {
    rd_list batch;
    rd_list_take(&batch, &wheel->slots[ref.level][ref.slot]);
    wheel->occupied[ref.level] &= ~(UINT64_C(1) << ref.slot);
    for (rd_list *node; (node = rd_list_shift(&batch)) != NULL;) {
        rd_timer *timer = RD_CONTAINER(node, rd_timer, node);
        if (timer->due <= wheel->now) {
            rd_list_append(expired, node);
        } else {
            place(wheel, timer);
        }
    }
}

void rd_timer_advance(rd_timer_wheel *wheel, uint64_t now) {
    rd_list expired;
    rd_list_init(&expired);
    while (wheel->now < now) {
        rd_slot_ref ref = next_slot(wheel);
        if (ref.time > now) {
            wheel->now = now;
            break;
        }
        wheel->now = ref.time;
        expire_slot(wheel, ref, &expired);
    }
    for (rd_list *node; (node = rd_list_shift(&expired)) != NULL;) {
        rd_timer *timer = RD_CONTAINER(node, rd_timer, node);
        timer->on_due(timer);
    }
}

uint64_t rd_timer_next(const rd_timer_wheel *wheel) {
    return next_slot(wheel).time;
}

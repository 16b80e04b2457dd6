/* SPDX-License-Identifier: MIT
 *
 * Views in shared memory; see view.h. Words are copied one by one, because they change while a
 * reader copies them. It sees that by the version, and tries again.
 */
#include "cluster/view.h"

#include <string.h>

#define FIRST_BOUND 64 /* us; each further band reaches four times as far */
#define TRIES       4

typedef union rd_view_copy {
    rd_view view;
    uint64_t words[RD_VIEW_WORDS];
} rd_view_copy;

const char *rd_view_state_name(unsigned state) {
    static const char *const names[RD_VIEW_STATE_COUNT] = {"inside", "client", "answering",
                                                           "hung",   "thread", "turn"};
    return state < RD_VIEW_STATE_COUNT ? names[state] : "unknown";
}

uint64_t rd_view_bound_us(unsigned band) {
    return band + 1 >= RD_VIEW_BANDS ? UINT64_MAX : (uint64_t)FIRST_BOUND << 2 * band;
}

unsigned rd_view_band(uint64_t us) {
    if (us <= FIRST_BOUND) return 0;
    const unsigned doubled = 64 - (unsigned)__builtin_clzll((us - 1) / FIRST_BOUND);
    const unsigned band = (doubled + 1) / 2;
    return band < RD_VIEW_BANDS ? band : RD_VIEW_BANDS - 1;
}

static void write_words(rd_shared_view *shared, const rd_view_copy *copy) {
    const uint64_t before = atomic_load_explicit(&shared->version, memory_order_relaxed) | 1;
    atomic_store_explicit(&shared->version, before, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < RD_VIEW_WORDS; i++) {
        atomic_store_explicit(&shared->words[i], copy->words[i], memory_order_relaxed);
    }
    atomic_store_explicit(&shared->version, before + 1, memory_order_release);
}

void rd_view_write(rd_shared_view *shared, const rd_view *view) {
    rd_view_copy copy = {0};
    copy.view = *view;
    write_words(shared, &copy);
}

void rd_view_clear(rd_shared_view *shared) {
    static const rd_view_copy nothing;
    write_words(shared, &nothing);
}

static uint32_t at_most(uint32_t count, uint32_t most) {
    return count < most ? count : most;
}

static void keep_within(rd_view *view) {
    view->calls = at_most(view->calls, RD_VIEW_CALLS);
    view->busiest = at_most(view->busiest, RD_VIEW_CLIENTS);
    view->longest = at_most(view->longest, RD_VIEW_CLIENTS);
    view->largest = at_most(view->largest, RD_VIEW_CHANNELS);
    for (uint32_t i = 0; i < view->largest; i++) {
        view->channel[i].len = (uint8_t)at_most(view->channel[i].len, RD_VIEW_NAME_MAX);
    }
    for (uint32_t i = 0; i < view->calls; i++) {
        view->call[i].len = (uint8_t)at_most(view->call[i].len, RD_VIEW_TARGET_MAX);
    }
}

bool rd_view_read(const rd_shared_view *shared, rd_view *view) {
    rd_view_copy copy;
    for (int left = TRIES; left > 0; left--) {
        const uint64_t before = atomic_load_explicit(&shared->version, memory_order_acquire);
        for (size_t i = 0; i < RD_VIEW_WORDS; i++) {
            copy.words[i] = atomic_load_explicit(&shared->words[i], memory_order_relaxed);
        }
        atomic_thread_fence(memory_order_acquire);
        const uint64_t after = atomic_load_explicit(&shared->version, memory_order_relaxed);
        if (before != after || (before & 1) != 0) continue;
        *view = copy.view;
        keep_within(view);
        return true;
    }
    return false;
}

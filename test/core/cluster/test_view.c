/* SPDX-License-Identifier: MIT
 *
 * Views in shared memory: what is written is read, a reader sees no half of one, a writer that died
 * in the middle, and numbers beyond their bounds.
 */
#include "cluster/view.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define ROUNDS 2000

static rd_shared_view shared;

static rd_view numbered(uint32_t number) {
    rd_view view;
    memset(&view, 0, sizeof(view));
    view.written_ms = number + 1;
    view.calls = RD_VIEW_CALLS;
    for (unsigned i = 0; i < RD_VIEW_CALLS; i++) view.call[i].since_ms = number;
    for (unsigned i = 0; i < RD_VIEW_CLIENTS; i++) view.late[i].requests = number;
    return view;
}

static void test_written_and_read(void) {
    rd_view view = numbered(7), again;
    view.busiest = 2;
    view.busy[1].requests = 9;
    memcpy(view.call[3].target, "GET /", 5);
    view.call[3].len = 5;
    rd_view_write(&shared, &view);
    CHECK(rd_view_read(&shared, &again));
    CHECK(memcmp(&view, &again, sizeof(view)) == 0);
    rd_view_clear(&shared);
    CHECK(rd_view_read(&shared, &again));
    CHECK_INT(again.written_ms, 0);
    CHECK_INT(again.calls, 0);
}

static void test_a_writer_that_died(void) {
    rd_view view = numbered(7), again;
    rd_view_write(&shared, &view);
    atomic_fetch_add(&shared.version, 1);
    CHECK(!rd_view_read(&shared, &again));
    rd_view_write(&shared, &view); /* its successor */
    CHECK(rd_view_read(&shared, &again));
    atomic_fetch_add(&shared.version, 1);
    rd_view_clear(&shared);
    CHECK(rd_view_read(&shared, &again));
}

static void test_numbers_beyond_their_bounds(void) {
    rd_view view = numbered(1), again;
    view.calls = view.busiest = view.longest = UINT32_MAX;
    memset(&view.call[0].len, 0xff, 1);
    rd_view_write(&shared, &view);
    CHECK(rd_view_read(&shared, &again));
    CHECK_INT(again.calls, RD_VIEW_CALLS);
    CHECK_INT(again.busiest, RD_VIEW_CLIENTS);
    CHECK_INT(again.longest, RD_VIEW_CLIENTS);
    CHECK_INT(again.call[0].len, RD_VIEW_TARGET_MAX);
}

static void *write_many(void *unused) {
    (void)unused;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const rd_view view = numbered(i);
        rd_view_write(&shared, &view);
    }
    return NULL;
}

static void test_a_reader_beside_the_writer(void) {
    pthread_t writer;
    rd_view_clear(&shared);
    CHECK_INT(pthread_create(&writer, NULL, write_many, NULL), 0);
    unsigned halves = 0;
    uint64_t last = 0;
    while (last < ROUNDS) {
        rd_view view;
        if (!rd_view_read(&shared, &view) || view.written_ms == 0) continue;
        last = view.written_ms;
        for (unsigned i = 0; i < RD_VIEW_CALLS; i++) halves += view.call[i].since_ms != last - 1;
        for (unsigned i = 0; i < RD_VIEW_CLIENTS; i++) halves += view.late[i].requests != last - 1;
    }
    pthread_join(writer, NULL);
    CHECK_INT(halves, 0);
}

static void test_bands(void) {
    for (unsigned i = 0; i + 1 < RD_VIEW_BANDS; i++) {
        CHECK_INT(rd_view_band(rd_view_bound_us(i)), i);
        CHECK_INT(rd_view_band(rd_view_bound_us(i) + 1), i + 1);
    }
    CHECK_INT(rd_view_band(0), 0);
    CHECK_INT(rd_view_band(UINT64_MAX), RD_VIEW_BANDS - 1);
    CHECK(rd_view_bound_us(RD_VIEW_BANDS - 1) == UINT64_MAX);
    CHECK(strcmp(rd_view_state_name(RD_VIEW_TURN), "turn") == 0);
    CHECK(strcmp(rd_view_state_name(99), "unknown") == 0);
}

int main(void) {
    test_written_and_read();
    test_a_writer_that_died();
    test_numbers_beyond_their_bounds();
    test_a_reader_beside_the_writer();
    test_bands();
    return check_summary();
}

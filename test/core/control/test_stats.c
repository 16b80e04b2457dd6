/* SPDX-License-Identifier: MIT
 *
 * What reports count, and percentiles of histograms. How the pages look is in test_control.c.
 */
#include "control/stats.h"

#include "check.h"
#include "control/metrics.h"

static void test_percentiles(void) {
    uint64_t counts[RD_HISTOGRAM_BUCKETS] = {0};
    CHECK_INT(rd_histogram_percentile(counts, 500), 0);
    counts[0] = 2;
    CHECK_INT(rd_histogram_percentile(counts, 500), 8); /* the middle of the first bucket */
    CHECK_INT(rd_histogram_percentile(counts, 990), 16);
    counts[3] = 98; /* 64 to 128 us */
    CHECK_INT(rd_histogram_percentile(counts, 10), 8);
    CHECK_INT(rd_histogram_percentile(counts, 20), 16);
    CHECK_INT(rd_histogram_percentile(counts, 1000), 128);
    CHECK_INT(rd_histogram_percentile(counts, 0), 8);
    memset(counts, 0, sizeof(counts));
    counts[RD_HISTOGRAM_BUCKETS - 1] = 1; /* only its lower end is known */
    CHECK_INT(rd_histogram_percentile(counts, 500),
              rd_histogram_bound_us(RD_HISTOGRAM_BUCKETS - 2));
}

static void test_two_processes_of_a_worker(void) {
    rd_scoreboard board;
    rd_buffer text = {0};
    CHECK_INT(rd_scoreboard_create(&board, 4), 0);
    rd_report report = {.board = &board, .room = 2, .cluster = true};
    for (int i = 0; i < 4; i++) atomic_store(&board.rows[i].started_ms, (uint64_t)(10 + i));
    atomic_store(&board.rows[1].state, RD_SCORE_DRAINING);
    CHECK(!rd_report_is_leaving(&report, 1)); /* its worker has no other process */
    atomic_store(&board.rows[3].state, RD_SCORE_READY);
    CHECK(rd_report_is_leaving(&report, 1));
    CHECK(!rd_report_is_leaving(&report, 3));
    CHECK_INT(rd_report_worker(&report, 3), 1);
    rd_report_metrics(&report, &text);
    rd_buffer_append(&text, "", 1);
    CHECK(strstr(text.bytes, "\nrondo_busy{worker=\"1\",leaving=\"1\"} 0\n"
                             "rondo_busy{worker=\"1\"} 0\n") != NULL);
    rd_buffer_clear(&text);
    rd_scoreboard_close(&board);
}

static void test_counting_states(void) {
    rd_scoreboard board;
    CHECK_INT(rd_scoreboard_create(&board, 4), 0);
    rd_report report = {.board = &board, .room = 4};
    CHECK_INT(rd_report_count(&report, RD_SCORE_STATE_COUNT), 0);
    CHECK(!rd_report_is_stuck(&report, 1));
    atomic_store(&board.rows[0].state, RD_SCORE_READY);
    atomic_store(&board.rows[2].state, RD_SCORE_READY);
    atomic_store(&board.rows[3].state, RD_SCORE_BOOTING);
    CHECK_INT(rd_report_count(&report, RD_SCORE_READY), 2);
    CHECK_INT(rd_report_count(&report, RD_SCORE_DRAINING), 0);
    CHECK_INT(rd_report_count(&report, RD_SCORE_STATE_COUNT), 3);
    rd_scoreboard_close(&board);
}

int main(void) {
    test_percentiles();
    test_counting_states();
    test_two_processes_of_a_worker();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Samples and lives: what processes count between two ticks, new processes in the same row, lives
 * that end as they should and by themselves, and more of both than are kept.
 */
#include "control/past.h"

#include <string.h>

#include "check.h"

static rd_scoreboard board;
static rd_report report;
static rd_past *past;
static rd_buffer text;

static void begin(uint32_t rows) {
    CHECK_INT(rd_scoreboard_create(&board, rows), 0);
    report = (rd_report){.board = &board, .room = rows, .cluster = true};
    past = rd_past_new(&report);
}

static void end(void) {
    rd_past_free(past);
    rd_buffer_clear(&text);
    rd_scoreboard_close(&board);
}

static void run(uint32_t row, uint64_t pid, rd_score_state state) {
    atomic_store(&board.rows[row].pid, pid);
    atomic_store(&board.rows[row].state, state);
}

static const char *ended(void) {
    rd_buffer_append(&text, "", 1);
    return rd_buffer_ptr(&text);
}

static const char *samples(bool all) {
    rd_buffer_rewind(&text);
    rd_past_add_samples(past, all, &text);
    return ended();
}

static const char *lives(void) {
    rd_buffer_rewind(&text);
    rd_past_add_lives(past, &text);
    return ended();
}

static unsigned count(const char *where, const char *what) {
    unsigned found = 0;
    while ((where = strstr(where, what)) != NULL) {
        found++;
        where++;
    }
    return found;
}

static void test_samples(void) {
    begin(2);
    CHECK(strcmp(samples(true), "[]") == 0);
    CHECK(strcmp(samples(false), "[]") == 0);
    run(0, 100, RD_SCORE_READY);
    run(1, 101, RD_SCORE_READY);
    atomic_store(&board.rows[0].requests, 5);
    atomic_store(&board.rows[1].requests, 7);
    rd_histogram_add(&board.rows[1].wait, 17);
    rd_past_tick(past);
    CHECK(strstr(samples(false), "\"requests\":12,") != NULL);
    CHECK(strstr(samples(false), "\"wait\":[[1,1]],\"duration\":[]") != NULL);
    atomic_store(&board.rows[0].requests, 6);
    rd_past_tick(past);
    CHECK(strstr(samples(false), "\"requests\":1,") != NULL);
    CHECK_INT(count(samples(true), "time_ms"), 2);
    rd_score_clear(&board.rows[0]); /* another process, which counts from zero */
    run(0, 200, RD_SCORE_READY);
    atomic_store(&board.rows[0].requests, 3);
    rd_past_tick(past);
    CHECK(strstr(samples(false), "\"requests\":3,") != NULL);
    end();
}

static void test_more_samples_than_are_kept(void) {
    begin(1);
    run(0, 100, RD_SCORE_READY);
    for (unsigned i = 1; i <= 350; i++) {
        atomic_store(&board.rows[0].published, i * i);
        rd_past_tick(past);
    }
    CHECK_INT(count(samples(true), "time_ms"), 300);
    CHECK(strstr(samples(true), "\"published\":101,") != NULL);
    CHECK(strstr(samples(true), "\"published\":99,") == NULL);
    CHECK_INT(count(samples(false), "time_ms"), 1);
    end();
}

static void test_a_life(void) {
    begin(2);
    CHECK(!rd_past_tick(past));
    run(1, 100, RD_SCORE_BOOTING);
    atomic_store(&board.rows[1].started_ms, 5);
    CHECK(rd_past_tick(past));
    CHECK(!rd_past_tick(past));
    CHECK(strstr(lives(),
                 "{\"worker\":1,\"pid\":100,\"generation\":0,\"started_ms\":5,\"ready_ms\":0,"
                 "\"draining_ms\":0,\"ended_ms\":0,\"lost\":false}") != NULL);
    run(1, 100, RD_SCORE_READY);
    atomic_store(&board.rows[1].ready_ms, 6);
    CHECK(rd_past_tick(past));
    run(1, 100, RD_SCORE_DRAINING);
    CHECK(rd_past_tick(past));
    CHECK(!rd_past_tick(past));
    rd_score_clear(&board.rows[1]);
    CHECK(rd_past_tick(past));
    CHECK(strstr(lives(), "\"ended_ms\":0") == NULL);
    CHECK(strstr(lives(), "\"lost\":false") != NULL);
    run(1, 101, RD_SCORE_READY);
    rd_past_tick(past);
    rd_score_clear(&board.rows[1]);
    run(1, 102, RD_SCORE_READY); /* the next one is there before anybody looked */
    CHECK(rd_past_tick(past));
    CHECK_INT(count(lives(), "\"lost\":true"), 1);
    run(1, 102, RD_SCORE_DRAINING); /* and it ends before anybody looked */
    rd_score_clear(&board.rows[1]);
    CHECK(rd_past_tick(past));
    CHECK_INT(count(lives(), "\"lost\":true"), 1);
    CHECK_INT(count(lives(), "\"worker\":1"), 3);
    end();
}

/* It is there and gone before anybody looks, as a worker that cannot boot. */
static void test_a_life_that_nobody_has_seen(void) {
    begin(1);
    run(0, 100, RD_SCORE_BOOTING);
    atomic_store(&board.rows[0].started_ms, 5);
    rd_score_clear(&board.rows[0]);
    CHECK(rd_past_tick(past));
    CHECK(strstr(lives(), "{\"worker\":0,\"pid\":100,\"generation\":0,\"started_ms\":5,") != NULL);
    CHECK_INT(count(lives(), "\"lost\":true"), 1);
    CHECK(!rd_past_tick(past));
    run(0, 101, RD_SCORE_READY);
    rd_past_tick(past);
    rd_score_clear(&board.rows[0]); /* seen, but how it ended is not known any more */
    run(0, 102, RD_SCORE_READY);
    run(0, 102, RD_SCORE_DRAINING);
    rd_score_clear(&board.rows[0]);
    run(0, 103, RD_SCORE_READY);
    CHECK(rd_past_tick(past));
    CHECK_INT(count(lives(), "\"pid\""), 4);
    CHECK_INT(count(lives(), "\"lost\":true"), 1);
    CHECK_INT(count(lives(), "\"ended_ms\":0"), 1);
    end();
}

static void test_more_lives_than_are_kept(void) {
    begin(2);
    run(0, 1, RD_SCORE_READY);
    for (uint64_t pid = 2; pid < 502; pid++) {
        run(1, pid, RD_SCORE_READY);
        rd_past_tick(past);
    }
    CHECK_INT(count(lives(), "\"pid\""), 128);
    CHECK(strstr(lives(), "\"pid\":1,") != NULL); /* it lives */
    CHECK(strstr(lives(), "\"pid\":501,") != NULL);
    CHECK(strstr(lives(), "\"pid\":2,") == NULL);
    end();
}

int main(void) {
    test_samples();
    test_more_samples_than_are_kept();
    test_a_life();
    test_a_life_that_nobody_has_seen();
    test_more_lives_than_are_kept();
    return check_summary();
}

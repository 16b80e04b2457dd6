/* SPDX-License-Identifier: MIT
 *
 * The scoreboard: numbers by name, the same memory in a forked process and behind a descriptor,
 * foreign descriptors refused, histogram bounds.
 */
#include "cluster/scoreboard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void numbers_by_name(void) {
    rd_scoreboard board;
    CHECK_INT(rd_scoreboard_create(&board, 3), 0);
    CHECK_INT(board.row_count, 3);
    for (size_t i = 0; i < rd_score_count; i++) {
        const rd_score_info *info = &rd_score_table[i];
        CHECK(rd_score_find(info->name, strlen(info->name)) == info);
        rd_score_set(&board.rows[1], info, i + 7);
    }
    for (size_t i = 0; i < rd_score_count; i++) {
        CHECK_INT(rd_score_get(&board.rows[1], &rd_score_table[i]), i + 7);
        CHECK_INT(rd_score_get(&board.rows[0], &rd_score_table[i]), 0);
        CHECK_INT(rd_score_get(&board.rows[2], &rd_score_table[i]), 0);
    }
    rd_histogram_add(&board.rows[1].wait, 5);
    rd_score_clear(&board.rows[1]);
    CHECK_INT(board.rows[1].wait.buckets[0], 0);
    CHECK_INT(board.rows[1].pid, 0);
    CHECK(rd_score_find("pidd", 4) == NULL);
    rd_scoreboard_close(&board);
}

static void shared_with_others(void) {
    rd_scoreboard board, again;
    CHECK_INT(rd_scoreboard_create(&board, 2), 0);
    pid_t child = fork();
    if (child == 0) {
        board.rows[1].requests = 42;
        _exit(0);
    }
    CHECK_INT(waitpid(child, NULL, 0), child);
    CHECK_INT(board.rows[1].requests, 42);
    CHECK_INT(rd_scoreboard_open(&again, dup(board.fd)), 0);
    CHECK_INT(again.row_count, 2);
    again.rows[0].queue = 9;
    CHECK_INT(board.rows[0].queue, 9);
    rd_scoreboard_close(&again);
    rd_scoreboard_close(&board);
}

static void foreign_memory(void) {
    rd_scoreboard board;
    CHECK_INT(rd_scoreboard_create(&board, 0), -1);
    CHECK_INT(errno, EINVAL);
    CHECK_INT(rd_scoreboard_create(&board, RD_SCOREBOARD_ROWS_MAX + 1), -1);
    CHECK_INT(rd_scoreboard_open(&board, -1), -1);
    CHECK_INT(errno, EBADF);
    char path[] = "/tmp/rondo-test-XXXXXX";
    int fd = mkstemp(path);
    CHECK_INT(rd_scoreboard_open(&board, fd), -1);
    CHECK_INT(errno, EINVAL);
    CHECK_INT(ftruncate(fd, 100000), 0);
    CHECK_INT(rd_scoreboard_open(&board, fd), -1);
    CHECK_INT(errno, EINVAL);
    close(fd);
    unlink(path);
}

static void histogram_bounds(void) {
    rd_histogram histogram = {0};
    for (unsigned i = 0; i + 1 < RD_HISTOGRAM_BUCKETS; i++) {
        uint64_t bound = rd_histogram_bound_us(i);
        rd_histogram_add(&histogram, bound);
        CHECK_INT(histogram.buckets[i], i == 0 ? 1 : 2);
        rd_histogram_add(&histogram, bound + 1);
        CHECK_INT(histogram.buckets[i + 1], 1);
    }
    rd_histogram_add(&histogram, UINT64_MAX / 2);
    CHECK_INT(histogram.buckets[RD_HISTOGRAM_BUCKETS - 1], 2);
    CHECK(rd_histogram_bound_us(RD_HISTOGRAM_BUCKETS - 1) == UINT64_MAX);
    CHECK(strcmp(rd_score_state_name(RD_SCORE_READY), "ready") == 0);
    CHECK(strcmp(rd_score_state_name(99), "unknown") == 0);
}

int main(void) {
    numbers_by_name();
    shared_with_others();
    foreign_memory();
    histogram_bounds();
    return check_summary();
}

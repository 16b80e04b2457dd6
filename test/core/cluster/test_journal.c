/* SPDX-License-Identifier: MIT
 *
 * The journal: lines in order, more of them than it keeps, long ones, writers of several threads,
 * and one that died in the middle.
 */
#include "cluster/journal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"

static rd_journal journal;

static void begin(void) {
    memset(&journal, 0, sizeof(journal));
}

static void say(const char *text) {
    rd_journal_add(&journal, RD_JOURNAL_WARN, 3, text, strlen(text));
}

static void test_lines(void) {
    rd_journal_line line;
    begin();
    CHECK_INT(rd_journal_newest(&journal), 0);
    CHECK(!rd_journal_read(&journal, 0, &line));
    CHECK(!rd_journal_read(&journal, 1, &line));
    say("one");
    rd_journal_add(&journal, RD_JOURNAL_INFO, -1, "", 0);
    CHECK_INT(rd_journal_newest(&journal), 2);
    CHECK_INT(rd_journal_oldest(&journal), 1);
    CHECK(rd_journal_read(&journal, 1, &line));
    CHECK_INT(line.len, 3);
    CHECK(memcmp(line.text, "one", 3) == 0);
    CHECK_INT(line.worker, 3);
    CHECK_INT(line.level, RD_JOURNAL_WARN);
    CHECK_INT(line.pid, getpid());
    CHECK(line.time_ms > 0 && !line.is_cut);
    CHECK(rd_journal_read(&journal, 2, &line));
    CHECK_INT(line.len, 0);
    CHECK_INT(line.worker, -1);
}

static void test_more_than_it_keeps(void) {
    rd_journal_line line;
    char text[16];
    begin();
    for (int i = 1; i <= RD_JOURNAL_LINES + 10; i++) {
        snprintf(text, sizeof(text), "%d", i);
        say(text);
    }
    CHECK_INT(rd_journal_oldest(&journal), 11);
    CHECK(!rd_journal_read(&journal, 10, &line));
    CHECK(rd_journal_read(&journal, 11, &line));
    CHECK(memcmp(line.text, "11", 2) == 0);
    CHECK(rd_journal_read(&journal, RD_JOURNAL_LINES + 10, &line));
}

/* A character of UTF-8 is not cut. */
static void test_long_lines(void) {
    rd_journal_line line;
    char text[RD_JOURNAL_TEXT_MAX + 8];
    for (size_t before = 0; before < 4; before++) {
        begin();
        memset(text, 'a', sizeof(text));
        memcpy(text + RD_JOURNAL_TEXT_MAX - before, "\xf0\x9f\x98\x80", 4);
        rd_journal_add(&journal, RD_JOURNAL_ERROR, 0, text, sizeof(text));
        CHECK(rd_journal_read(&journal, 1, &line));
        CHECK_INT(line.len, RD_JOURNAL_TEXT_MAX - before);
        CHECK(line.is_cut);
    }
    rd_journal_add(&journal, RD_JOURNAL_ERROR, 0, text, RD_JOURNAL_TEXT_MAX);
    CHECK(rd_journal_read(&journal, 2, &line));
    CHECK_INT(line.len, RD_JOURNAL_TEXT_MAX);
    CHECK(!line.is_cut);
    memset(text, 0x80, sizeof(text)); /* no UTF-8 at all */
    rd_journal_add(&journal, RD_JOURNAL_ERROR, 0, text, sizeof(text));
    CHECK(rd_journal_read(&journal, 3, &line));
    CHECK(line.len >= RD_JOURNAL_TEXT_MAX - 4);
}

static void test_a_writer_that_died(void) {
    rd_journal_line line;
    begin();
    say("one");
    atomic_fetch_add(&journal.last, 1); /* it had taken a number */
    say("three");
    CHECK(rd_journal_read(&journal, 1, &line));
    CHECK(!rd_journal_read(&journal, 2, &line));
    CHECK(rd_journal_read(&journal, 3, &line));
}

#define WRITERS 4
#define EACH    400

static void *write_many(void *letter) {
    char text[RD_JOURNAL_TEXT_MAX];
    memset(text, *(const char *)letter, sizeof(text));
    for (int i = 0; i < EACH; i++) {
        rd_journal_add(&journal, RD_JOURNAL_INFO, 0, text, sizeof(text));
    }
    return NULL;
}

static unsigned mixed(const rd_journal_line *line) {
    unsigned count = 0;
    for (unsigned i = 1; i < line->len; i++) count += line->text[i] != line->text[0];
    return count;
}

static void test_several_writers(void) {
    static const char letters[WRITERS] = {'a', 'b', 'c', 'd'};
    pthread_t threads[WRITERS];
    rd_journal_line line;
    unsigned mixes = 0, seen = 0;
    begin();
    for (int i = 0; i < WRITERS; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, write_many, (void *)&letters[i]), 0);
    }
    while (rd_journal_newest(&journal) < WRITERS * EACH) {
        if (!rd_journal_read(&journal, rd_journal_newest(&journal), &line)) continue;
        mixes += mixed(&line);
    }
    for (int i = 0; i < WRITERS; i++) pthread_join(threads[i], NULL);
    for (uint64_t at = rd_journal_oldest(&journal); at <= WRITERS * EACH; at++) {
        if (!rd_journal_read(&journal, at, &line)) continue;
        seen++;
        mixes += mixed(&line);
    }
    CHECK_INT(mixes, 0);
    CHECK(seen > RD_JOURNAL_LINES / 2);
}

int main(void) {
    test_lines();
    test_more_than_it_keeps();
    test_long_lines();
    test_a_writer_that_died();
    test_several_writers();
    return check_summary();
}

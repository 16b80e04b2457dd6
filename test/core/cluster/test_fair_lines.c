/* SPDX-License-Identifier: MIT
 *
 * Lines that share: who takes much waits, who comes later does not wait behind all of that, and who
 * was away has no claim to what it did not use.
 */
#include "check.h"
#include "cluster/fair_lines.h"

static rd_fair_lines lines;
static rd_list nodes[64];

static rd_fair_line *add(const char *who, int node) {
    return rd_fair_lines_add(&lines, rd_slice_of(who, strlen(who)), &nodes[node]);
}

static rd_fair_line *serve(uint64_t bytes) {
    rd_fair_line *line = rd_fair_lines_next(&lines);
    if (line == NULL) return NULL;
    rd_list_shift(&line->waiting);
    rd_fair_line_charge(line, bytes);
    return line;
}

/* Names of two different lines; the key of the hash is different in each run. */
static void begin(char *one, char *other) {
    rd_fair_lines_init(&lines);
    one[0] = 'a';
    other[0] = 'a';
    const rd_fair_line *line = add(one, 0);
    do {
        rd_list_unlink(&nodes[0]);
        other[0]++;
    } while (add(other, 0) == line);
    rd_list_unlink(&nodes[0]);
}

static void test_who_comes_later(void) {
    char many[2] = "", one[2] = "";
    begin(many, one);
    CHECK(rd_fair_lines_next(&lines) == NULL);
    for (int i = 0; i < 20; i++) add(many, i);
    for (int i = 0; i < 10; i++) serve(1000);
    const rd_fair_line *line = add(one, 20);
    serve(1000); /* both lines are level here, so either may be next */
    serve(1000);
    CHECK(rd_list_is_empty(&line->waiting));
    for (int i = 0; i < 9; i++) CHECK(serve(1000) != NULL);
    CHECK(serve(1000) == NULL);
}

static void test_small_ones_go_first(void) {
    char large[2] = "", small[2] = "";
    int count = 0;
    begin(large, small);
    const rd_fair_line *line = add(small, 0);
    for (int i = 1; i < 20; i++) add(small, i);
    for (int i = 20; i < 40; i++) add(large, i);
    for (int i = 0; i < 22; i++) {
        const bool is_small = rd_fair_lines_next(&lines) == line;
        count += is_small;
        serve(is_small ? 10 : 1000);
    }
    CHECK_INT(count, 20);
}

static void test_no_claim_from_before(void) {
    char busy[2] = "", idle[2] = "";
    begin(busy, idle);
    for (int i = 0; i < 20; i++) add(busy, i);
    for (int i = 0; i < 10; i++) serve(1000);
    const rd_fair_line *line = add(idle, 20);
    for (int i = 21; i < 40; i++) add(idle, i);
    int count = 0;
    for (int i = 0; i < 10; i++) count += serve(1000) == line;
    CHECK(count >= 5 && count <= 6);
}

int main(void) {
    for (int i = 0; i < 64; i++) rd_list_init(&nodes[i]);
    test_who_comes_later();
    test_small_ones_go_first();
    test_no_claim_from_before();
    return check_summary();
}

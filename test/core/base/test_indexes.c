/* SPDX-License-Identifier: MIT
 *
 * Indexes: no number twice at once, and none that is larger than there were at once.
 */
#include "base/indexes.h"
#include "check.h"

enum { MANY = 1000 };

static void test_each_only_once(void) {
    rd_indexes indexes = {NULL, 0, 0};
    bool taken[MANY] = {false};
    for (int i = 0; i < MANY; i++) {
        uint32_t index = rd_indexes_acquire(&indexes);
        CHECK(index < MANY && !taken[index]);
        taken[index] = true;
    }
    rd_indexes_clear(&indexes);
}

static void test_what_is_given_back_comes_first(void) {
    rd_indexes indexes = {NULL, 0, 0};
    for (int i = 0; i < MANY; i++) rd_indexes_acquire(&indexes);
    rd_indexes_release(&indexes, 7);
    rd_indexes_release(&indexes, MANY - 1);
    CHECK_INT(rd_indexes_acquire(&indexes), MANY - 1);
    CHECK_INT(rd_indexes_acquire(&indexes), 7);
    CHECK_INT(rd_indexes_acquire(&indexes), MANY);
    rd_indexes_clear(&indexes);
    CHECK_INT(rd_indexes_acquire(&indexes), 0);
    rd_indexes_clear(&indexes);
}

int main(void) {
    test_each_only_once();
    test_what_is_given_back_comes_first();
    return check_summary();
}

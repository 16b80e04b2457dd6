/* SPDX-License-Identifier: MIT
 *
 * Slots: no number twice at once, and none that is larger than there were at once.
 */
#include "base/slots.h"
#include "check.h"

enum { MANY = 1000 };

static void test_each_only_once(void) {
    rd_slots slots = {NULL, 0, 0};
    bool taken[MANY] = {false};
    for (int i = 0; i < MANY; i++) {
        uint32_t slot = rd_slots_take(&slots);
        CHECK(slot < MANY && !taken[slot]);
        taken[slot] = true;
    }
    rd_slots_clear(&slots);
}

static void test_what_is_given_back_comes_first(void) {
    rd_slots slots = {NULL, 0, 0};
    for (int i = 0; i < MANY; i++) rd_slots_take(&slots);
    rd_slots_give(&slots, 7);
    rd_slots_give(&slots, MANY - 1);
    CHECK_INT(rd_slots_take(&slots), MANY - 1);
    CHECK_INT(rd_slots_take(&slots), 7);
    CHECK_INT(rd_slots_take(&slots), MANY);
    rd_slots_clear(&slots);
    CHECK_INT(rd_slots_take(&slots), 0);
    rd_slots_clear(&slots);
}

int main(void) {
    test_each_only_once();
    test_what_is_given_back_comes_first();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Deadlines in a heap: order, moving, cancelling, and what callbacks may do.
 */
#include "loop/deadlines.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "check.h"

#define MANY 1000

typedef struct note {
    rd_deadline deadline;
    rd_deadlines *deadlines;
    uint64_t again_ns; /* is set again for this time, once */
    struct note *cancels;
    int calls;
} note;

static uint64_t last_due;

static void on_due(rd_deadline *deadline) {
    note *own = RD_CONTAINER(deadline, note, deadline);
    CHECK(deadline->due_ns >= last_due);
    CHECK(!rd_deadline_is_set(deadline));
    last_due = deadline->due_ns;
    own->calls++;
    if (own->cancels != NULL) rd_deadline_cancel(own->deadlines, &own->cancels->deadline);
    if (own->again_ns == 0) return;
    const uint64_t again = own->again_ns;
    own->again_ns = 0;
    rd_deadline_set(own->deadlines, deadline, again);
}

static void begin(rd_deadlines *deadlines, note *notes, int count) {
    rd_deadlines_init(deadlines);
    last_due = 0;
    for (int i = 0; i < count; i++) {
        notes[i] = (note){.deadlines = deadlines, .deadline = {.on_due = on_due}};
    }
}

static void test_empty(void) {
    rd_deadlines deadlines;
    note notes[1];
    begin(&deadlines, notes, 1);
    CHECK(rd_deadlines_next(&deadlines) == UINT64_MAX);
    rd_deadline_cancel(&deadlines, &notes[0].deadline);
    rd_deadlines_advance(&deadlines, UINT64_MAX - 1);
    CHECK(notes[0].calls == 0);
    rd_deadlines_clear(&deadlines);
}

static void test_order(void) {
    rd_deadlines deadlines;
    static note notes[MANY];
    begin(&deadlines, notes, MANY);
    srandom(7);
    for (int i = 0; i < MANY; i++) {
        rd_deadline_set(&deadlines, &notes[i].deadline, 1 + (uint64_t)random() % 5000);
    }
    for (int i = 0; i < MANY; i += 3) rd_deadline_cancel(&deadlines, &notes[i].deadline);
    for (int i = 1; i < MANY; i += 3) {
        rd_deadline_set(&deadlines, &notes[i].deadline, 1 + (uint64_t)random() % 9000);
    }
    for (uint64_t now = 0; now <= 9000; now += 50) {
        rd_deadlines_advance(&deadlines, now);
        CHECK(rd_deadlines_next(&deadlines) > now);
    }
    for (int i = 0; i < MANY; i++) CHECK(notes[i].calls == (i % 3 == 0 ? 0 : 1));
    CHECK(rd_deadlines_next(&deadlines) == UINT64_MAX);
    rd_deadlines_clear(&deadlines);
}

static void test_callbacks(void) {
    rd_deadlines deadlines;
    note notes[3];
    begin(&deadlines, notes, 3);
    notes[0].cancels = &notes[1];
    notes[0].again_ns = 20;
    rd_deadline_set(&deadlines, &notes[0].deadline, 10);
    rd_deadline_set(&deadlines, &notes[1].deadline, 11);
    rd_deadline_set(&deadlines, &notes[2].deadline, 30);
    rd_deadlines_advance(&deadlines, 10);
    CHECK(notes[0].calls == 1 && rd_deadlines_next(&deadlines) == 20);
    rd_deadlines_advance(&deadlines, 25);
    CHECK(notes[0].calls == 2 && notes[1].calls == 0 && notes[2].calls == 0);
    rd_deadlines_clear(&deadlines);
    CHECK(!rd_deadline_is_set(&notes[2].deadline));
}

int main(void) {
    test_empty();
    test_order();
    test_callbacks();
    return check_summary();
}

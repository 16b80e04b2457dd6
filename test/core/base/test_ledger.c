/* SPDX-License-Identifier: MIT
 *
 * What is taken, refused and given back; the descriptors that only bodies may have; how often the
 * log is told.
 */
#include "base/ledger.h"
#include "check.h"

static rd_ledger ledger;

static uint64_t held(rd_ledger_kind kind) {
    return ledger.rows[kind].held;
}

static uint64_t refused(rd_ledger_kind kind) {
    return ledger.rows[kind].refused;
}

static void test_take_and_give(void) {
    rd_ledger_init(&ledger);
    CHECK(rd_ledger_reserve(&ledger, RD_LEDGER_BODY_DISK, UINT64_MAX)); /* no limit */
    rd_ledger_init(&ledger);
    rd_ledger_limit(&ledger, RD_LEDGER_BODY_DISK, 100);
    CHECK(rd_ledger_reserve(&ledger, RD_LEDGER_BODY_DISK, 60));
    CHECK(!rd_ledger_reserve(&ledger, RD_LEDGER_BODY_DISK, 41));
    CHECK(!rd_ledger_reserve(&ledger, RD_LEDGER_BODY_DISK, UINT64_MAX));
    CHECK(rd_ledger_reserve(&ledger, RD_LEDGER_BODY_DISK, 40));
    CHECK(rd_ledger_reserve(&ledger, RD_LEDGER_BODY_DISK, 0));
    CHECK_INT(held(RD_LEDGER_BODY_DISK), 100);
    CHECK_INT(refused(RD_LEDGER_BODY_DISK), 2);
    rd_ledger_release(&ledger, RD_LEDGER_BODY_DISK, 100);
    CHECK_INT(held(RD_LEDGER_BODY_DISK), 0);
    CHECK_INT(refused(RD_LEDGER_BODY_FILES), 0);
}

/* What exists already counts, even beyond the limit. */
static void test_add(void) {
    rd_ledger_init(&ledger);
    rd_ledger_limit(&ledger, RD_LEDGER_DESCRIPTORS, 2);
    rd_ledger_add(&ledger, RD_LEDGER_DESCRIPTORS, 3);
    CHECK_INT(held(RD_LEDGER_DESCRIPTORS), 3);
    CHECK(!rd_ledger_has_room(&ledger, RD_LEDGER_DESCRIPTORS, 0));
    CHECK(!rd_ledger_reserve(&ledger, RD_LEDGER_DESCRIPTORS, 1));
}

/* The first bytes of each client are free. */
static void test_resize(void) {
    size_t first = 0, second = 0;
    rd_ledger_init(&ledger);
    rd_ledger_limit(&ledger, RD_LEDGER_INPUT, 1000);
    CHECK(rd_ledger_keep(&ledger, RD_LEDGER_INPUT, &first, RD_LEDGER_FREE));
    CHECK_INT(held(RD_LEDGER_INPUT), 0);
    CHECK(rd_ledger_keep(&ledger, RD_LEDGER_INPUT, &first, RD_LEDGER_FREE + 600));
    CHECK(!rd_ledger_keep(&ledger, RD_LEDGER_INPUT, &second, RD_LEDGER_FREE + 401));
    CHECK_INT(second, 0);
    CHECK(rd_ledger_keep(&ledger, RD_LEDGER_INPUT, &second, RD_LEDGER_FREE + 400));
    CHECK(!rd_ledger_keep(&ledger, RD_LEDGER_INPUT, &second, RD_LEDGER_FREE + 500));
    CHECK_INT(second, 400); /* as it was */
    CHECK_INT(held(RD_LEDGER_INPUT), 1000);
    rd_ledger_recount(&ledger, RD_LEDGER_INPUT, &second, RD_LEDGER_FREE + 500);
    CHECK_INT(held(RD_LEDGER_INPUT), 1100);
    CHECK(rd_ledger_keep(&ledger, RD_LEDGER_INPUT, &second, RD_LEDGER_FREE + 450)); /* less fits */
    CHECK(rd_ledger_keep(&ledger, RD_LEDGER_INPUT, &second, 0));
    CHECK(rd_ledger_keep(&ledger, RD_LEDGER_INPUT, &first, 10));
    CHECK_INT(held(RD_LEDGER_INPUT), 0);
    CHECK_INT(refused(RD_LEDGER_INPUT), 2);
}

static void test_change_is_seen(void) {
    rd_ledger_init(&ledger);
    CHECK(ledger.changed);
    ledger.changed = false;
    rd_ledger_has_room(&ledger, RD_LEDGER_BODY_DISK, 1);
    CHECK(!ledger.changed);
    rd_ledger_reserve(&ledger, RD_LEDGER_BODY_DISK, 1);
    CHECK(ledger.changed);
    ledger.changed = false;
    rd_ledger_release(&ledger, RD_LEDGER_BODY_DISK, 1);
    CHECK(ledger.changed);
    ledger.changed = false;
    rd_ledger_limit(&ledger, RD_LEDGER_BODY_DISK, 0);
    rd_ledger_reserve(&ledger, RD_LEDGER_BODY_DISK, 1);
    CHECK(ledger.changed);
}

/* Of 10 descriptors, 2 are reserved for bodies, and bodies may have 4. */
static const struct {
    unsigned others, bodies; /* descriptors in use */
    bool another, body;      /* whether one more is allowed */
} descriptors[] = {
    {0, 0, true, true},   {7, 0, true, true},  {8, 0, false, true},  {8, 1, false, true},
    {8, 2, false, false}, {7, 1, true, true},  {7, 2, true, true},   {7, 3, false, false},
    {6, 3, true, true},   {5, 4, true, false}, {6, 4, false, false}, {0, 4, true, false},
};

static void test_descriptors(void) {
    for (size_t i = 0; i < sizeof(descriptors) / sizeof(descriptors[0]); i++) {
        rd_ledger_init(&ledger);
        rd_ledger_limit(&ledger, RD_LEDGER_DESCRIPTORS, 10);
        rd_ledger_limit(&ledger, RD_LEDGER_BODY_FILES, 4);
        ledger.body_files_kept = 2;
        rd_ledger_add(&ledger, RD_LEDGER_DESCRIPTORS, descriptors[i].others);
        for (unsigned j = 0; j < descriptors[i].bodies; j++) {
            CHECK(rd_ledger_reserve_body_file(&ledger));
        }
        CHECK_INT(!rd_ledger_lacks_descriptors(&ledger), descriptors[i].another);
        CHECK_INT(rd_ledger_reserve_body_file(&ledger), descriptors[i].body);
        CHECK_INT(refused(RD_LEDGER_BODY_FILES), !descriptors[i].body);
        CHECK_INT(held(RD_LEDGER_BODY_FILES), descriptors[i].bodies + descriptors[i].body);
        while (held(RD_LEDGER_BODY_FILES) > 0) rd_ledger_release_body_file(&ledger);
        CHECK_INT(held(RD_LEDGER_DESCRIPTORS), descriptors[i].others);
    }
}

static void test_the_log_is_told_once_a_second(void) {
    rd_ledger_init(&ledger);
    CHECK(rd_ledger_may_log(&ledger, RD_LEDGER_BODY_DISK, 5000));
    CHECK(!rd_ledger_may_log(&ledger, RD_LEDGER_BODY_DISK, 5999));
    CHECK(rd_ledger_may_log(&ledger, RD_LEDGER_BODY_FILES, 5999));
    CHECK(rd_ledger_may_log(&ledger, RD_LEDGER_BODY_DISK, 6000));
    CHECK(!rd_ledger_may_log(&ledger, RD_LEDGER_BODY_DISK, 6000));
}

int main(void) {
    test_take_and_give();
    test_add();
    test_resize();
    test_change_is_seen();
    test_descriptors();
    test_the_log_is_told_once_a_second();
    return check_summary();
}

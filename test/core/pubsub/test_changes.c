/* SPDX-License-Identifier: MIT
 *
 * Changes of subscriptions as state: the last word wins, what comes and goes leaves nothing, and
 * whoever takes them in any order of events ends up knowing exactly what there is.
 */
#include <stdlib.h>

#include "check.h"
#include "pubsub/changes.h"

enum { NAMES = 16, ROUNDS = 20000 };

static rd_changes changes;

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

/* Takes the next change and returns it as text. */
static const char *take(void) {
    static char word[64];
    rd_change *change = rd_changes_first(&changes);
    if (change == NULL) return "nothing";
    const rd_slice name = rd_change_name(change);
    (void)snprintf(word, sizeof(word), "%c%s%.*s", change->is_wanted ? '+' : '-',
                   change->is_pattern ? "*" : "", (int)name.len, name.ptr);
    rd_changes_remove(&changes, change);
    return word;
}

static void test_the_last_word_wins(void) {
    rd_changes_init(&changes);
    rd_changes_note(&changes, text("a"), false, true);
    rd_changes_note(&changes, text("a"), true, true);
    rd_changes_note(&changes, text("b"), false, true);
    rd_changes_note(&changes, text("a"), false, false);
    CHECK_STR(take(), "+*a");
    CHECK_STR(take(), "+b");
    CHECK_STR(take(), "nothing");
    rd_changes_note(&changes, text("b"), false, false);
    rd_changes_note(&changes, text("b"), false, true);
    CHECK_STR(take(), "nothing");
    rd_changes_note(&changes, text("b"), false, false);
    CHECK(rd_changes_has(&changes, text("b"), false) && !rd_changes_has(&changes, text("b"), true));
    rd_changes_forget(&changes, text("b"), false);
    CHECK(!rd_changes_has(&changes, text("b"), false));
    rd_changes_forget(&changes, text("b"), false);
    CHECK(rd_changes_is_empty(&changes));
    rd_changes_note(&changes, text("c"), false, true);
    rd_changes_reset(&changes);
    CHECK_STR(take(), "nothing");
    rd_change *noted = rd_changes_note(&changes, text("d"), true, true);
    CHECK(noted == rd_changes_first(&changes) && noted->after == 0);
    CHECK(rd_changes_note(&changes, text("d"), true, true) == NULL); /* told already */
    CHECK(rd_changes_note(&changes, text("d"), true, false) == NULL);
    rd_changes_note(&changes, text("d"), true, true);
    rd_changes_clear(&changes);
}

/* Names come and go at random. From time to time the other side takes some changes. */
static void test_the_other_side_ends_up_right(void) {
    bool is_here[NAMES] = {false}, is_known[NAMES] = {false};
    char name[2] = "a";
    srand(7);
    rd_changes_init(&changes);
    for (int round = 0; round < ROUNDS; round++) {
        const int at = rand() % NAMES;
        is_here[at] = !is_here[at];
        name[0] = (char)('a' + at);
        rd_changes_note(&changes, text(name), at % 2 == 0, is_here[at]);
        for (int takes = rand() % 4 == 0 ? rand() % NAMES : 0; takes > 0; takes--) {
            rd_change *change = rd_changes_first(&changes);
            if (change == NULL) break;
            const int told = rd_change_name(change).ptr[0] - 'a';
            CHECK(is_known[told] != change->is_wanted);
            is_known[told] = change->is_wanted;
            rd_changes_remove(&changes, change);
        }
        CHECK(changes.names.count + changes.patterns.count <= NAMES);
    }
    for (rd_change *change; (change = rd_changes_first(&changes)) != NULL;) {
        is_known[rd_change_name(change).ptr[0] - 'a'] = change->is_wanted;
        rd_changes_remove(&changes, change);
    }
    for (int i = 0; i < NAMES; i++) CHECK(is_known[i] == is_here[i]);
    rd_changes_clear(&changes);
}

int main(void) {
    test_the_last_word_wins();
    test_the_other_side_ends_up_right();
    return check_summary();
}

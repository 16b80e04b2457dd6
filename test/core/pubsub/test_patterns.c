/* SPDX-License-Identifier: MIT
 *
 * Many patterns: random ones that come and go, against trying each of them by a naive matcher; and
 * what a publish costs, counted in steps, with the worst patterns that one client may have.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "check.h"
#include "naive_glob.h"
#include "pubsub/channel.h"
#include "pubsub/patterns.h"

enum { MANY = 200, ROUNDS = 40000, CLIENT = 1000 };

typedef struct entry {
    rd_pattern pattern;
    bool is_here;
    unsigned visits;
    char text[RD_GLOB_MAX + 1];
} entry;

static rd_patterns patterns;
static entry entries[CLIENT];

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

static void visit(void *with, rd_pattern *pattern) {
    *(unsigned *)with += 1;
    RD_CONTAINER(pattern, entry, pattern)->visits++;
}

static unsigned match(rd_slice name) {
    unsigned count = 0;
    rd_patterns_match(&patterns, name, visit, &count);
    return count;
}

static void spell(char *out, unsigned max, const char *alphabet) {
    const unsigned len = 1 + (unsigned)rand() % max;
    for (unsigned i = 0; i < len; i++) out[i] = alphabet[(size_t)rand() % strlen(alphabet)];
    out[len] = '\0';
}

static void toggle(entry *entry) {
    entry->is_here = !entry->is_here;
    if (!entry->is_here) {
        rd_patterns_remove(&patterns, &entry->pattern);
        return;
    }
    spell(entry->text, 6, "aaabbb*?[]^-\\");
    rd_patterns_add(&patterns, &entry->pattern, text(entry->text));
}

static void check_all(const char *name) {
    unsigned expected = 0;
    for (int i = 0; i < MANY; i++) entries[i].visits = 0;
    const unsigned count = match(text(name));
    for (int i = 0; i < MANY; i++) {
        const bool matches =
            entries[i].is_here && naive_glob_matches(text(entries[i].text), text(name));
        CHECK(entries[i].visits == (matches ? 1 : 0));
        expected += matches;
    }
    CHECK_INT(count, expected);
}

static void test_against_a_naive_one(void) {
    char name[8];
    srand(11);
    rd_patterns_init(&patterns);
    for (int round = 0; round < ROUNDS; round++) {
        toggle(&entries[rand() % MANY]);
        if (rand() % 4 > 0) continue;
        spell(name, 6, "ab");
        check_all(name);
    }
    for (int i = 0; i < MANY; i++) {
        if (entries[i].is_here) toggle(&entries[i]);
    }
    CHECK_INT(patterns.names.count + patterns.groups.count + patterns.found, 0);
    rd_patterns_clear(&patterns);
}

/* All are different, so that nothing is shared. */
static void add_client(void (*spell_one)(char *out, int number)) {
    rd_patterns_init(&patterns);
    for (int i = 0; i < CLIENT; i++) {
        memset(entries[i].text, 0, sizeof(entries[i].text));
        spell_one(entries[i].text, i);
        CHECK(strlen(entries[i].text) <= RD_GLOB_MAX);
        rd_patterns_add(&patterns, &entries[i].pattern, text(entries[i].text));
    }
}

static void remove_client(void) {
    for (int i = 0; i < CLIENT; i++) rd_patterns_remove(&patterns, &entries[i].pattern);
    rd_patterns_clear(&patterns);
}

static uint64_t steps_of(rd_slice name) {
    const uint64_t before = patterns.text.steps;
    match(name);
    return patterns.text.steps - before;
}

static void put_number(char *out, int number) {
    for (int i = 4; i >= 0; i--, number /= 10) out[i] = (char)('0' + number % 10);
}

/* Everything matches except the end, from every position on. */
static void spell_repeated(char *out, int number) {
    memset(out, 'a', RD_GLOB_MAX);
    out[0] = '*';
    put_number(out + RD_GLOB_MAX - 5, number);
}

/* The longest classes. */
static void spell_classes(char *out, int number) {
    memset(out, 'b', RD_GLOB_MAX);
    memcpy(out, "*?*[", 4);
    put_number(out + 4, number);
    out[RD_GLOB_MAX - 1] = ']';
}

static void spell_stars(char *out, int number) {
    for (int i = 0; i < RD_GLOB_MAX; i++) out[i] = i % 2 == 0 ? 'a' : '*';
    put_number(out + RD_GLOB_MAX - 5, number);
}

static void test_the_steps_of_a_publish(void) {
    static void (*const hostile[])(char *, int) = {spell_repeated, spell_classes, spell_stars};
    static char long_name[RD_CHANNEL_NAME_MAX];
    memset(long_name, 'a', sizeof(long_name));
    const rd_slice longest = rd_slice_of(long_name, sizeof(long_name));
    const uint64_t words = RD_CHANNEL_NAME_MAX / 64 + 1;
    for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
        add_client(hostile[i]);
        CHECK(steps_of(longest) <= (2 * RD_GLOB_MAX * CLIENT + 257) * words);
        CHECK(steps_of(text("aaaaaaaaaaaaaaaaaaaa")) <= 2 * RD_GLOB_MAX * CLIENT + 257);
        /* Then the result is known. */
        CHECK_INT(steps_of(longest), 0);
        CHECK_INT(steps_of(text("aaaaaaaaaaaaaaaaaaaa")), 0);
        /* A new pattern is tried alone. */
        const uint64_t tried = patterns.tried;
        rd_patterns_remove(&patterns, &entries[0].pattern);
        rd_patterns_add(&patterns, &entries[0].pattern, text(entries[0].text));
        CHECK(steps_of(longest) <= (2 * RD_GLOB_MAX + 257) * words);
        CHECK_INT(patterns.tried - tried, 1);
        remove_client();
    }
}

static void spell_ordinary(char *out, int number) {
    (void)snprintf(out, 32, "user:%d:*", number);
}

static void test_what_cannot_match_is_not_tried(void) {
    add_client(spell_ordinary);
    CHECK_INT(match(text("user:17:mail")), 1);
    CHECK_INT(patterns.tried, 1);
    CHECK_INT(match(text("room:17")), 0);
    CHECK_INT(patterns.tried, 1);
    remove_client();
}

static void spell_every(char *out, int number) {
    (void)snprintf(out, 32, "n*%.*s", number % 10, "**********");
}

static void test_what_is_known_is_bounded(void) {
    char name[32];
    add_client(spell_every);
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        CHECK_INT(match(text(name)), CLIENT);
        CHECK(patterns.found <= RD_PATTERNS_FOUND);
        CHECK(patterns.names.count <= RD_PATTERNS_NAMES);
    }
    remove_client();
}

static void spell_star(char *out, int number) {
    (void)snprintf(out, 32, "%.*s", number % 10 + 1, "**********");
}

static void test_the_channels_of_the_server(void) {
    add_client(spell_star);
    CHECK_INT(match(RD_SLICE("\0rondo:cable:secret:room")), 0);
    CHECK_INT(match(RD_SLICE("\0rondo/cable/secret")), 0);
    CHECK_INT(match(RD_SLICE("\0rond")), CLIENT);
    remove_client();
}

int main(void) {
    test_the_channels_of_the_server();
    test_against_a_naive_one();
    test_the_steps_of_a_publish();
    test_what_cannot_match_is_not_tried();
    test_what_is_known_is_bounded();
    return check_summary();
}

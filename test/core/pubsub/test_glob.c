/* SPDX-License-Identifier: MIT
 *
 * Globs: a table of what matches, all short patterns against all short strings by a naive matcher,
 * and patterns made to take for ever, which an alarm ends if they do.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "naive_glob.h"
#include "pubsub/glob.h"

static bool matches(const char *pattern, const char *string) {
    return rd_glob_matches(rd_slice_of(pattern, strlen(pattern)),
                           rd_slice_of(string, strlen(string)));
}

static void test_table(void) {
    static const struct {
        const char *pattern, *string;
        bool matches;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"*", "", true},
        {"*", "anything", true},
        {"**", "x", true},
        {"?", "x", true},
        {"?", "", false},
        {"?", "xy", false},
        {"news", "news", true},
        {"news", "News", false},
        {"news.*", "news.", true},
        {"news.*", "news.sport", true},
        {"news.*", "new.sport", false},
        {"*.sport", "news.sport", true},
        {"*.sport", "news.sports", false},
        {"a*b*c", "a-b-b-c", true},
        {"a*b*c", "a-b-b-cd", false},
        {"h?llo", "hallo", true},
        {"h[ae]llo", "hello", true},
        {"h[ae]llo", "hillo", false},
        {"h[^e]llo", "hallo", true},
        {"h[^e]llo", "hello", false},
        {"h[a-c]llo", "hbllo", true},
        {"h[c-a]llo", "hbllo", true},
        {"h[a-c]llo", "hdllo", false},
        {"[a-cx-z]", "y", true},
        {"[a-cx-z]", "-", false},
        {"[-a]", "-", true},
        {"[^]", "x", true},
        {"[]", "x", false},
        {"[]a]", "a]", false},
        {"[\\]]", "]", true},
        {"[\\^]", "^", true},
        {"[a^]", "^", true},
        {"[\\-a]", "-", true},
        {"[abc", "b", true},
        {"[abc", "[abc", false},
        {"[", "x", false},
        {"[", "[", false},
        {"[^", "x", true},
        {"[*]", "*", true},
        {"[*]", "x", false},
        {"[?]x", "?x", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"\\?\\[\\\\", "?[\\", true},
        {"a\\", "a\\", true},
        {"a\\b", "ab", true},
        {"*\\", "xx\\", true},
        {"\xc3[\x80-\xbf]", "\xc3\xa9", true},
        {"?", "\xc3\xa9", false},
        {"[\x01-\xff]", "\xff", true},
        {"*a*a*", "bab", false},
        {"*[0-9]?", "abc7x", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK_SAYS(matches(rows[i].pattern, rows[i].string) == rows[i].matches, "%s with %s",
                   rows[i].pattern, rows[i].string);
    }
}

static void test_bytes_of_zero(void) {
    CHECK(rd_glob_matches(rd_slice_of("a?c", 3), rd_slice_of("a\0c", 3)));
    CHECK(rd_glob_matches(rd_slice_of("a\0*", 3), rd_slice_of("a\0c", 3)));
    CHECK(!rd_glob_matches(rd_slice_of("a\0", 2), rd_slice_of("a", 1)));
    CHECK(rd_glob_matches(rd_slice_of("[\0]", 3), rd_slice_of("\0", 1)));
}

/* The number in digits of the alphabet, without leading zeros; returns its length. */
static size_t spell(unsigned number, const char *alphabet, unsigned base, char *out) {
    size_t len = 0;
    for (; number > 0; number = (number - 1) / base) out[len++] = alphabet[(number - 1) % base];
    return len;
}

static void test_all_short_ones(void) {
    static const char special[] = "ab*?[]^-\\", plain[] = "ab]-";
    for (unsigned p = 0; p < 9 * 9 * 9 * 9 * 2; p++) {
        char pattern[16], string[16];
        const rd_slice pattern_slice = {pattern, spell(p, special, 9, pattern)};
        for (unsigned s = 0; s < 1 + 4 + 16 + 64; s++) {
            const rd_slice string_slice = {string, spell(s, plain, 4, string)};
            const bool naive = naive_glob_matches(pattern_slice, string_slice);
            if (rd_glob_matches(pattern_slice, string_slice) == naive) continue;
            CHECK_SAYS(false, "%.*s with %.*s", (int)pattern_slice.len, pattern,
                       (int)string_slice.len, string);
        }
    }
    CHECK(true);
}

/* An exponential matcher would take longer than the sun will burn. */
static void test_hostile_patterns(void) {
    enum { LEN = 64 * 1024 };
    static char string[LEN], pattern[512];
    memset(string, 'a', sizeof(string));
    const rd_slice all = {string, LEN};
    CHECK(!rd_glob_matches(RD_SLICE("a*a*a*a*b"), all));
    for (int i = 0; i < 511; i += 2) memcpy(pattern + i, "a*", 2);
    pattern[511] = 'b';
    CHECK(!rd_glob_matches(rd_slice_of(pattern, 512), all));
    CHECK(rd_glob_matches(rd_slice_of(pattern, 511), all));
    memset(pattern, '*', 511);
    CHECK(!rd_glob_matches(rd_slice_of(pattern, 512), all));
    /* The most work for its length: all bytes after the star match, except the last one. */
    memset(pattern + 1, 'a', 510);
    CHECK(!rd_glob_matches(rd_slice_of(pattern, 512), all));
    CHECK(!rd_glob_matches(RD_SLICE("*[^b][^b][^b]*[a-z][a-z]*?*?*[b]"), all));
}

int main(void) {
    alarm(120);
    test_table();
    test_bytes_of_zero();
    test_all_short_ones();
    test_hostile_patterns();
    return check_summary();
}

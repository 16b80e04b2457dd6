/* SPDX-License-Identifier: MIT
 *
 * Globs; see glob.h. All ways to match are followed at once. A set of places, one bit for each,
 * says how much of the text the elements so far may have consumed. An element keeps the places
 * where its byte stands and moves them on by one; a * adds all places behind the first one.
 *
 *   text   a b a c        below[b]  1 0 1 0 0    places of bytes lower than b
 *   place  0 1 2 3 4      below[c]  1 1 1 0 0    so b stands where these two differ
 *
 * The places of any range of bytes are the difference of two rows. So a class takes as many steps
 * as it has members, however many bytes these stand for.
 */
#include "pubsub/glob.h"

#include <string.h>

#include "base/alloc.h"

enum { ROWS = 257, WORD = 64, PLAIN_BYTES = 16 /* of the text, searched in a step */ };

static uint8_t byte_at(rd_slice slice, size_t at) {
    return (uint8_t)slice.ptr[at];
}

/* ---- elements ---- */

/* Reads the next member of a class from *at. Returns false at the end of the class; *at is behind
 * it then. */
static bool next_member(rd_slice pattern, size_t *at, uint8_t *low, uint8_t *high) {
    size_t i = *at;
    if (i >= pattern.len || pattern.ptr[i] == ']') {
        *at = i < pattern.len ? i + 1 : i;
        return false;
    }
    if (pattern.ptr[i] == '\\' && i + 1 < pattern.len) {
        *low = *high = byte_at(pattern, i + 1);
        *at = i + 2;
    } else if (i + 2 < pattern.len && pattern.ptr[i + 1] == '-') {
        const uint8_t a = byte_at(pattern, i), b = byte_at(pattern, i + 2);
        *low = a < b ? a : b;
        *high = a < b ? b : a;
        *at = i + 3;
    } else {
        *low = *high = byte_at(pattern, i);
        *at = i + 1;
    }
    return true;
}

static bool is_literal(char byte) {
    return byte != '*' && byte != '?' && byte != '[' && byte != '\\';
}

size_t rd_glob_literal(rd_slice pattern) {
    size_t len = 0;
    while (len < pattern.len && is_literal(pattern.ptr[len])) len++;
    return len;
}

size_t rd_glob_least(rd_slice pattern) {
    size_t least = 0;
    for (size_t at = 0; at < pattern.len;) {
        const char first = pattern.ptr[at++];
        uint8_t low, high;
        if (first == '*') continue;
        least++;
        if (first == '\\' && at < pattern.len) at++;
        if (first != '[') continue;
        if (at < pattern.len && pattern.ptr[at] == '^') at++;
        while (next_member(pattern, &at, &low, &high)) continue;
    }
    return least;
}

/* ---- the text ---- */

void rd_glob_text_init(rd_glob_text *text) {
    *text = (rd_glob_text){.below = NULL};
}

void rd_glob_text_clear(rd_glob_text *text) {
    rd_free(text->below);
    text->below = NULL;
    text->capacity = 0;
}

void rd_glob_text_set(rd_glob_text *text, rd_slice bytes) {
    text->text = bytes;
    text->words = bytes.len / WORD + 1;
    text->is_indexed = false;
}

/* Makes room for the rows and two sets behind them. */
static void index_text(rd_glob_text *text) {
    const size_t words = text->words, wanted = (ROWS + 2) * words;
    if (text->below == NULL || wanted > text->capacity) {
        rd_free(text->below);
        text->below = rd_alloc(wanted * sizeof(uint64_t));
        text->capacity = wanted;
    }
    memset(text->below, 0, ROWS * words * sizeof(uint64_t));
    for (size_t i = 0; i < text->text.len; i++) {
        text->below[((size_t)byte_at(text->text, i) + 1) * words + i / WORD] |= 1ULL << i % WORD;
    }
    for (size_t i = words; i < ROWS * words; i++) text->below[i] |= text->below[i - words];
    text->steps += ROWS * words;
    text->is_indexed = true;
}

/* ---- sets of places ---- */

typedef struct rd_glob_run {
    rd_glob_text *text;
    uint64_t *places, *kept;
    size_t first; /* the words before this one are zero */
} rd_glob_run;

static void count_steps(const rd_glob_run *run) {
    run->text->steps += run->text->words - run->first;
}

/* Adds the places where a byte of this range stands to `kept`. */
static void keep_range(const rd_glob_run *run, uint8_t low, uint8_t high) {
    const size_t words = run->text->words;
    const uint64_t *from = run->text->below + (size_t)low * words;
    const uint64_t *to = run->text->below + ((size_t)high + 1) * words;
    for (size_t i = run->first; i < words; i++) run->kept[i] |= to[i] & ~from[i];
    count_steps(run);
}

/* Reads the class whose [ is before *at. */
static void keep_class(const rd_glob_run *run, rd_slice pattern, size_t *at) {
    const uint64_t *every = run->text->below + (ROWS - 1) * run->text->words;
    const bool is_negated = *at < pattern.len && pattern.ptr[*at] == '^';
    uint8_t low, high;
    if (is_negated) ++*at;
    while (next_member(pattern, at, &low, &high)) keep_range(run, low, high);
    if (!is_negated) return;
    for (size_t i = run->first; i < run->text->words; i++) run->kept[i] = every[i] & ~run->kept[i];
    count_steps(run);
}

/* Moves the places that have a byte of this range, or of the class in `kept`, on by one. Returns
 * false when no place is left. */
static bool move_on(rd_glob_run *run, const uint64_t *from, const uint64_t *to) {
    const size_t words = run->text->words;
    uint64_t carry = 0, any = 0;
    for (size_t i = run->first; i < words; i++) {
        const uint64_t kept = run->places[i] & to[i] & ~from[i];
        run->places[i] = kept << 1 | carry;
        carry = kept >> (WORD - 1);
        any |= run->places[i];
    }
    while (run->first < words && run->places[run->first] == 0) run->first++;
    count_steps(run);
    return any != 0;
}

static bool take_range(rd_glob_run *run, uint8_t low, uint8_t high) {
    const size_t words = run->text->words;
    const uint64_t *below = run->text->below;
    return move_on(run, below + (size_t)low * words, below + ((size_t)high + 1) * words);
}

static bool take_class(rd_glob_run *run, rd_slice pattern, size_t *at) {
    memset(run->kept, 0, run->text->words * sizeof(uint64_t));
    keep_class(run, pattern, at);
    return move_on(run, run->text->below, run->kept); /* row 0 is empty: no byte is below the
                                                       * lowest */
}

/* Takes the element at *at, which is not a *, and moves *at behind it. */
static bool take_element(rd_glob_run *run, rd_slice pattern, size_t *at) {
    const uint8_t first = byte_at(pattern, (*at)++);
    if (first == '?') return take_range(run, 0, UINT8_MAX);
    if (first == '[') return take_class(run, pattern, at);
    if (first != '\\' || *at == pattern.len) return take_range(run, first, first);
    const uint8_t escaped = byte_at(pattern, (*at)++);
    return take_range(run, escaped, escaped);
}

/* Places behind the end of the text do no harm: no byte stands there, so they never move on. */
static void add_all_behind(const rd_glob_run *run) {
    const uint64_t word = run->places[run->first];
    run->places[run->first] = ~((word & (~word + 1)) - 1);
    for (size_t i = run->first + 1; i < run->text->words; i++) run->places[i] = UINT64_MAX;
    count_steps(run);
}

static bool follow(rd_glob_text *text, rd_slice pattern, size_t at) {
    const size_t words = text->words, end = text->text.len;
    rd_glob_run run = {.text = text, .places = text->below + ROWS * words, .first = at / WORD};
    run.kept = run.places + words;
    memset(run.places, 0, words * sizeof(uint64_t));
    run.places[run.first] = 1ULL << at % WORD;
    while (at < pattern.len) {
        if (pattern.ptr[at] == '*') {
            while (at < pattern.len && pattern.ptr[at] == '*') at++;
            if (at == pattern.len) return true;
            add_all_behind(&run);
        } else if (!take_element(&run, pattern, &at)) {
            return false;
        }
    }
    return (run.places[end / WORD] >> end % WORD & 1) != 0;
}

/* ---- plain patterns ---- */

/* Whether the pattern has bytes and * only, from this place on. */
static bool is_plain(rd_slice pattern, size_t at) {
    while (at < pattern.len && (pattern.ptr[at] == '*' || is_literal(pattern.ptr[at]))) at++;
    return at == pattern.len;
}

/* Matches such a pattern, whose part before `at` ends at the same place of the text. The bytes
 * between two * are looked for as early as possible, those behind the last one at the end. */
static bool follow_plain(rd_glob_text *text, rd_slice pattern, size_t at) {
    const char *from = text->text.ptr + at, *end = text->text.ptr + text->text.len;
    text->steps += text->text.len / PLAIN_BYTES;
    for (;;) {
        while (at < pattern.len && pattern.ptr[at] == '*') at++;
        const rd_slice rest = rd_slice_of(pattern.ptr + at, pattern.len - at);
        const size_t len = rd_glob_literal(rest), left = (size_t)(end - from);
        text->steps++;
        if (len > left) return false;
        if (len == rest.len) return len == 0 || memcmp(end - len, rest.ptr, len) == 0;
        if (len > 1) text->steps += left; /* a hostile text makes memmem compare at each byte */
        const char *found = memmem(from, left, rest.ptr, len);
        if (found == NULL) return false;
        from = found + len;
        at += len;
    }
}

bool rd_glob_text_matches(rd_glob_text *text, rd_slice pattern) {
    const rd_slice bytes = text->text;
    const size_t literal = rd_glob_literal(pattern);
    text->steps++;
    if (literal > bytes.len) return false;
    if (literal > 0 && memcmp(pattern.ptr, bytes.ptr, literal) != 0) return false;
    if (literal == pattern.len) return literal == bytes.len;
    if (literal + 1 == pattern.len && pattern.ptr[literal] == '*') return true;
    if (text->is_indexed) return follow(text, pattern, literal);
    if (is_plain(pattern, literal)) return follow_plain(text, pattern, literal);
    if (rd_glob_least(pattern) > bytes.len) return false;
    index_text(text);
    return follow(text, pattern, literal);
}

bool rd_glob_matches(rd_slice pattern, rd_slice bytes) {
    rd_glob_text text;
    rd_glob_text_init(&text);
    rd_glob_text_set(&text, bytes);
    const bool matches = rd_glob_text_matches(&text, pattern);
    rd_glob_text_clear(&text);
    return matches;
}

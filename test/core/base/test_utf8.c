/* SPDX-License-Identifier: MIT
 *
 * base/utf8: texts and the byte at which each stops being one; whole, byte by byte, cut in two at
 * each offset. What a code point is worth is checked against a plain decoder for all of them.
 */
#include "check.h"

#include <stdlib.h>

#include "base/utf8.h"

enum { VALID = -1, CUT = -2 };

typedef struct row {
    const char *text;
    size_t len;
    int fails; /* offset of the byte that makes it invalid, VALID, or CUT if it may continue */
} row;

#define ROW(text, fails)                                                                           \
    { (text), sizeof(text) - 1, (fails) }

static const row rows[] = {
    ROW("", VALID),
    ROW("Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!", VALID),
    ROW("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5", VALID),
    /* incomplete texts */
    ROW("\xce", CUT),
    ROW("\xce\xba\xe1", CUT),
    ROW("\xce\xba\xe1\xbd", CUT),
    ROW("\xf0\x90\x80", CUT),
    ROW("\xf4\x8f\xbf", CUT),
    /* the first and the last of each length */
    ROW("\0", VALID),
    ROW("\x7f", VALID),
    ROW("\xc2\x80", VALID),
    ROW("\xdf\xbf", VALID),
    ROW("\xe0\xa0\x80", VALID),
    ROW("\xef\xbf\xbf", VALID),
    ROW("\xf0\x90\x80\x80", VALID),
    ROW("\xf4\x8f\xbf\xbf", VALID),
    ROW("\xf4\x90\x80\x80", 1),
    ROW("\xf7\xbf\xbf\xbf", 0),
    ROW("\xf8\x88\x80\x80\x80", 0),
    ROW("\xfb\xbf\xbf\xbf\xbf", 0),
    ROW("\xfc\x84\x80\x80\x80\x80", 0),
    ROW("\xfd\xbf\xbf\xbf\xbf\xbf", 0),
    ROW("\xed\x9f\xbf", VALID),
    ROW("\xee\x80\x80", VALID),
    ROW("\xef\xbf\xbd", VALID),
    /* continuations without a start, starts without a continuation */
    ROW("\x80", 0),
    ROW("\xbf", 0),
    ROW("ab\x80\xbf\x80", 2),
    ROW("\xc0 \xc1 ", 0),
    ROW("\xc3 \xc4 ", 1),
    ROW("\xe1 \xe2 ", 1),
    ROW("\xe1\x80 ", 2),
    ROW("\xf1 ", 1),
    ROW("\xf1\x80 ", 2),
    ROW("\xf1\x80\x80 ", 3),
    ROW("\xf1\x80\x80\xc2\x80", 3),
    ROW("\xfe", 0),
    ROW("\xff", 0),
    ROW("\xfe\xfe\xff\xff", 0),
    /* overlong forms */
    ROW("\xc0\xaf", 0),
    ROW("\xc1\xbf", 0),
    ROW("\xe0\x80\xaf", 1),
    ROW("\xe0\x9f\xbf", 1),
    ROW("\xf0\x80\x80\xaf", 1),
    ROW("\xf0\x8f\xbf\xbf", 1),
    ROW("\xf8\x80\x80\x80\xaf", 0),
    ROW("\xc0\x80", 0),
    /* surrogates, single and paired */
    ROW("\xed\xa0\x80", 1),
    ROW("\xed\xad\xbf", 1),
    ROW("\xed\xbf\xbf", 1),
    ROW("\xed\xa0\x80\xed\xb0\x80", 1),
    /* non-characters are characters here */
    ROW("\xef\xb7\x90\xef\xb7\xaf\xef\xbf\xbe\xf0\x9f\xbf\xbe\xf4\x8f\xbf\xbf", VALID),
    /* after words of ASCII */
    ROW("0123456789abcdef0123456\xf4\x90", 24),
    ROW("0123456789abcdef\xe2\x82\xac"
        "0123456789\xff",
        29),
};

/* Feeds pieces of `step` bytes (the first one `first`); the offset that failed, VALID or CUT. */
static int outcome_of(const char *text, size_t len, size_t first, size_t step) {
    rd_utf8 utf8 = {0};
    size_t at = 0, piece = first;

    do {
        char *copy = malloc(piece ? piece : 1);
        size_t taken;

        memcpy(copy, text + at, piece);
        taken = rd_utf8_feed(&utf8, copy, piece);
        free(copy);
        if (taken < piece) return (int)(at + taken);
        at += piece;
        piece = len - at < step ? len - at : step;
    } while (at < len);
    return rd_utf8_is_boundary(&utf8) ? VALID : CUT;
}

static void check_row(const row *row) {
    for (size_t i = 0; i <= row->len; i++)
        CHECK_INT(outcome_of(row->text, row->len, i, row->len), row->fails);
    CHECK_INT(outcome_of(row->text, row->len, 0, 1), row->fails);
}

/* RFC 3629, section 3, for all numbers below 2^21. */
static size_t encode(uint32_t point, char *text) {
    if (point < 0x80) {
        text[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        text[0] = (char)(0xc0 | point >> 6);
        text[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        text[0] = (char)(0xe0 | point >> 12);
        text[1] = (char)(0x80 | (point >> 6 & 0x3f));
        text[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    text[0] = (char)(0xf0 | point >> 18);
    text[1] = (char)(0x80 | (point >> 12 & 0x3f));
    text[2] = (char)(0x80 | (point >> 6 & 0x3f));
    text[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* At every place of a text of each length there is one character, or none, beyond ASCII. */
static void test_ascii(void) {
    for (size_t len = 1; len <= 80; len++) {
        for (size_t at = 0; at < len; at++) {
            char *text = malloc(len);
            rd_utf8 utf8 = {0};

            memset(text, 'x', len);
            CHECK_INT(rd_utf8_feed(&utf8, text, len), len);
            CHECK(!utf8.has_more);
            text[at] = '\xff';
            CHECK_INT(rd_utf8_feed(&utf8, text, len), at);
            if (at > 0) memcpy(text + at - 1, "\xce\xba", 2);
            CHECK_INT(rd_utf8_feed(&utf8, text, len), at > 0 ? len : 0);
            CHECK(utf8.has_more == (at > 0));
            free(text);
        }
    }
}

static bool is_text(const char *text, size_t len) {
    rd_utf8 utf8 = {0};

    return rd_utf8_feed(&utf8, text, len) == len && rd_utf8_is_boundary(&utf8);
}

/* At the end of a text, and before more of it, where the text is checked in one go. */
static void test_every_code_point(void) {
    unsigned wrong = 0;
    char text[8];

    for (uint32_t point = 0; point < 0x200000; point++) {
        const bool valid = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
        const size_t len = encode(point, text);

        memset(text + len, 'a', 4);
        wrong += is_text(text, len) != valid;
        wrong += is_text(text, len + 4) != valid;
    }
    CHECK_INT(wrong, 0);
}

/* Four bytes at the edges of all ranges: the check in one go fails where the check byte by byte
 * fails. */
static void test_all_cuts_agree(void) {
    static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
                                    0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef,
                                    0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xfe, 0xff};
    enum { EDGES = sizeof edges };
    unsigned wrong = 0;
    char text[5] = {0};

    for (unsigned i = 0; i < EDGES * EDGES * EDGES * EDGES; i++) {
        rd_utf8 whole = {0}, single = {0};
        size_t at = 0;

        for (unsigned j = 0, rest = i; j < 4; j++, rest /= EDGES)
            text[j] = (char)edges[rest % EDGES];
        while (at < sizeof text && rd_utf8_feed(&single, text + at, 1) == 1) at++;
        wrong += rd_utf8_feed(&whole, text, sizeof text) != at;
    }
    CHECK_INT(wrong, 0);
}

/* A bad byte is found at every position relative to the words. */
static void test_every_offset(void) {
    char text[64];

    for (size_t i = 0; i < sizeof text; i++) {
        memset(text, 'a', sizeof text);
        text[i] = (char)0x80;
        for (size_t from = 0; from <= i; from++)
            CHECK_INT(outcome_of(text + from, sizeof text - from, 0, sizeof text), i - from);
    }
}

int main(void) {
    test_ascii();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
    test_every_code_point();
    test_all_cuts_agree();
    test_every_offset();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * http/sections: what is kept and what never is, and that a head whose fields came before is the
 * one that parsing them makes.
 */
#include "check.h"
#include "default_limits.h"
#include "same_head.h"

#include <stdlib.h>

#include "http/sections.h"
#include "protocol/http1_parser.h"

#define LINE   "GET /a?b=c HTTP/1.1\r\n"
#define FIELDS "Host: example.org:81\r\nAccept: */*\r\nX-Own: 1\r\nX-Own: 2\r\n\r\n"

static rd_sections sections;

static int parse(rd_head *head, const rd_section *expected, const char *text, size_t len) {
    rd_http1_parser parser;

    rd_http1_parser_init(&parser);
    parser.expected = expected;
    rd_head_init(head);
    return rd_http1_parse(&parser, head, &default_limits, text, len);
}

/* Parses and learns the head this many times; returns its place. */
static uint8_t learn(rd_head *head, const char *text, int times) {
    uint8_t place = 0;

    for (int i = 0; i < times; i++) {
        CHECK_INT(parse(head, NULL, text, strlen(text)), (int)strlen(text));
        place = rd_sections_learn(&sections, head, text);
        if (i < times - 1) rd_head_clear(head);
    }
    return place;
}

static void test_kept_when_it_comes_again(void) {
    rd_head head;

    learn(&head, LINE FIELDS, 1);
    CHECK_INT(head.section, 0);
    rd_head_clear(&head);
    learn(&head, LINE FIELDS, 1);
    CHECK_INT(head.section, 1);
    rd_head_clear(&head);
    learn(&head, "DELETE /other HTTP/1.1\r\n" FIELDS, 1);
    CHECK_INT(head.section, 1);
    rd_head_clear(&head);
    rd_sections_clear(&sections);
}

/* After another request line, at another position, with the next request behind it. */
static void test_the_same_head(void) {
    static const char *const lines[] = {LINE, "\r\n\r\nPOST / HTTP/1.1\r\n",
                                        "PROPFIND /%20x?y HTTP/1.1\r\n"};
    rd_head head, parsed, known;
    uint8_t place = learn(&head, LINE FIELDS, 2);

    rd_head_clear(&head);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char text[256];
        int len = snprintf(text, sizeof(text), "%s" FIELDS, lines[i]);
        snprintf(text + len, sizeof(text) - (size_t)len, "GET");
        CHECK_INT(parse(&parsed, NULL, text, (size_t)len + 3), len);
        CHECK_INT(parse(&known, &sections.entries[place], text, (size_t)len + 3), len);
        CHECK_INT(known.section, 1);
        CHECK(same_head(&parsed, &known));
        rd_head_clear(&parsed);
        rd_head_clear(&known);
    }
    rd_sections_clear(&sections);
}

/* One byte less, another byte, another line after it: all of these are parsed. */
static void test_not_the_same(void) {
    static const char text[] = LINE FIELDS;
    rd_head head;
    uint8_t place = learn(&head, text, 2);

    rd_head_clear(&head);
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        char *cut = malloc(len + 1);
        memcpy(cut, text, len);
        CHECK_INT(parse(&head, &sections.entries[place], cut, len), 0);
        CHECK_INT(head.section, 0);
        rd_head_clear(&head);
        free(cut);
    }
    for (size_t at = sizeof(LINE) - 1; at < sizeof(text) - 1; at++) {
        char other[sizeof(text)];
        memcpy(other, text, sizeof(text));
        other[at] ^= 1;
        parse(&head, &sections.entries[place], other, sizeof(text) - 1);
        CHECK_INT(head.section, 0);
        rd_head_clear(&head);
    }
    rd_sections_clear(&sections);
}

/* Only a request of HTTP/1.1 whose target is a path takes its authority from Host. */
static void test_other_request_lines(void) {
    static const char *const texts[] = {"GET http://b/ HTTP/1.1\r\n" FIELDS,
                                        "OPTIONS * HTTP/1.1\r\n" FIELDS,
                                        "GET / HTTP/1.0\r\n" FIELDS};
    rd_head head, known;
    uint8_t place = learn(&head, LINE FIELDS, 2);

    rd_head_clear(&head);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int len = (int)strlen(texts[i]);
        CHECK_INT(parse(&head, NULL, texts[i], (size_t)len), len);
        CHECK_INT(parse(&known, &sections.entries[place], texts[i], (size_t)len), len);
        rd_sections_learn(&sections, &known, texts[i]);
        CHECK_INT(known.section, 0);
        CHECK(same_head(&head, &known));
        rd_head_clear(&head);
        rd_head_clear(&known);
    }
    rd_sections_clear(&sections);
}

/* ---- secrets ---- */

#define AROUND(value) "Host: example.org:81\r\nCookie: " value "\r\nX-Own: 1\r\n\r\n"

/* Another value of any length that is valid; Host before the gap and behind it. */
static void test_another_secret(void) {
    static const char *const forms[] = {
        "Host: example.org:81\r\nCookie: %s\r\nX-Own: 1\r\n\r\n",
        "Cookie:  %s\r\nAccept: */*\r\nHost: [::1]:82\r\nX-Own: 1\r\nX-Own: 2\r\n\r\n",
        "X-Own: 1\r\nHost: a\r\nAUTHORIZATION:%s\r\n\r\n", "X-CSRF-Token: %s\r\nHost: b\r\n\r\n"};
    static const char *const values[] = {"a=b", "c", "session=0123456789abcdef; theme=a,b \t c",
                                         "gr\xc3\xbc\xc3\x9f"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char text[256] = LINE;
        rd_head head, parsed, known;
        const size_t line = strlen(text);
        snprintf(text + line, sizeof text - line, forms[i], "secret=1");
        const uint8_t place = learn(&head, text, 2);
        CHECK(head.section != 0);
        rd_head_clear(&head);
        for (size_t j = 0; j < sizeof values / sizeof *values; j++) {
            const size_t len =
                line + (size_t)snprintf(text + line, sizeof text - line, forms[i], values[j]);
            CHECK_INT(parse(&parsed, NULL, text, len), (int)len);
            CHECK_INT(parse(&known, &sections.entries[place], text, len), (int)len);
            CHECK_INT(known.section, (int)i + 1);
            CHECK(same_head(&parsed, &known));
            rd_head_clear(&parsed);
            rd_head_clear(&known);
        }
    }
    rd_sections_clear(&sections);
}

/* Wherever it is cut, and whatever byte is another one: the parser decides. */
static void test_another_secret_cut_and_changed(void) {
    static const char text[] = LINE AROUND("session=0123456789");
    rd_head head, parsed, known;
    const uint8_t place = learn(&head, LINE AROUND("a"), 2);
    const rd_section *section = &sections.entries[place];

    rd_head_clear(&head);
    for (size_t len = 0; len < sizeof text - 1; len++) {
        char *cut = malloc(len + 1);
        memcpy(cut, text, len);
        CHECK_INT(parse(&head, section, cut, len), 0);
        CHECK_INT(head.section, 0);
        rd_head_clear(&head);
        free(cut);
    }
    for (size_t at = sizeof LINE - 1; at < sizeof text - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            char other[sizeof text];
            memcpy(other, text, sizeof text);
            other[at] = (char)byte;
            const int rc = parse(&parsed, NULL, other, sizeof text - 1);
            CHECK_INT(parse(&known, section, other, sizeof text - 1), rc);
            CHECK(rc <= 0 || same_head(&parsed, &known));
            rd_head_clear(&parsed);
            rd_head_clear(&known);
        }
    }
    rd_sections_clear(&sections);
}

/* The limit of a value counts the blanks before it. */
static void test_a_secret_at_the_limit(void) {
    rd_head head;
    const uint8_t place = learn(&head, LINE AROUND("a"), 2);
    const size_t most = default_limits.header_value_bytes - 1;

    rd_head_clear(&head);
    for (size_t extra = 0; extra < 2; extra++) {
        char *text = malloc(most + 256);
        size_t len = (size_t)sprintf(text, LINE "Host: example.org:81\r\nCookie: ");
        memset(text + len, 'x', most + extra);
        len += most + extra;
        len += (size_t)sprintf(text + len, "\r\nX-Own: 1\r\n\r\n");
        CHECK_INT(parse(&head, &sections.entries[place], text, len),
                  extra == 0 ? (int)len : RD_ERR_FIELD_VALUE_TOO_LONG);
        CHECK_INT(head.section, extra == 0 ? 1 : 0);
        rd_head_clear(&head);
        free(text);
    }
    rd_sections_clear(&sections);
}

/* Nothing of the value stays anywhere in the table. */
static void test_secrets_are_not_kept(void) {
    rd_head head;
    const uint8_t place = learn(&head, LINE AROUND("session=0123456789"), 3);
    const rd_section *section = &sections.entries[place];

    rd_head_clear(&head);
    CHECK_INT(section->id, 1);
    CHECK_INT(section->len, (int)strlen(AROUND("")));
    CHECK(memcmp(section->bytes, AROUND(""), section->len) == 0);
    learn(&head, LINE AROUND("another"), 1);
    CHECK_INT(head.section, 1);
    rd_head_clear(&head);
    rd_sections_clear(&sections);
}

static void check_never_kept(const char *text) {
    rd_head head;

    learn(&head, text, 3);
    CHECK_SAYS(head.section == 0, "kept: %s", text);
    rd_head_clear(&head);
}

static void test_never_kept(void) {
    char text[8192] = LINE "Host: a\r\nX-Long: ";

    check_never_kept(LINE "Host: a\r\nAuthorization: Basic eDp5\r\nCookie: a=b\r\n\r\n");
    check_never_kept(LINE "Host: a\r\nCookie: a=b\r\nCookie: a=b\r\n\r\n");
    check_never_kept(LINE "Host: a\r\nCookie: a=b\r\nX_Api_Key: 1\r\n\r\n");
    check_never_kept(LINE "Host: a\r\nCookie:\r\n\r\n");
    check_never_kept(LINE "Host: a\r\nCookie: a=b \r\n\r\n");
    check_never_kept(LINE "Host: a\r\nSec-WebSocket-Key: 1\r\n\r\n");
    check_never_kept(LINE "Host: a\r\nX_Api_Key: 1\r\n\r\n"); /* dropped, but it did come */
    check_never_kept(LINE "Host: a\r\nProxy: 1\r\n\r\n");
    check_never_kept("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    check_never_kept("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    memset(text + strlen(text), 'x', 4096);
    strcat(text, "\r\n\r\n");
    check_never_kept(text);
    strcpy(text, LINE "Host: a\r\n");
    for (int i = 0; i < 128; i++) sprintf(text + strlen(text), "X-%d: 1\r\n", i);
    strcat(text, "\r\n");
    default_limits.header_count = 200;
    check_never_kept(text);
    default_limits.header_count = 128;
    rd_sections_clear(&sections);
}

/* More sections than places: a section that is pushed out is no longer known, and each number is
 * used once. */
static void test_pushed_out(void) {
    uint64_t last = 0;
    rd_head head;

    for (int i = 0; i < 4 * RD_SECTIONS_SIZE; i++) {
        char text[128];
        snprintf(text, sizeof(text), LINE "Host: a\r\nX-Number: %d\r\n\r\n", i);
        uint8_t place = learn(&head, text, 2);
        CHECK(head.section > last);
        last = head.section;
        CHECK(sections.entries[place].id == last && sections.last == place);
        rd_head_clear(&head);
    }
    rd_sections_clear(&sections);
}

int main(void) {
    rd_sections_init(&sections);
    test_kept_when_it_comes_again();
    test_the_same_head();
    test_not_the_same();
    test_other_request_lines();
    test_another_secret();
    test_another_secret_cut_and_changed();
    test_a_secret_at_the_limit();
    test_secrets_are_not_kept();
    test_never_kept();
    test_pushed_out();
    return check_summary();
}

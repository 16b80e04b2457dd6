/* SPDX-License-Identifier: MIT
 *
 * Request heads. First byte: how many bytes at a time, and which leniencies. Holds: no crash; any
 * cutting gives the same answer and the same head; an accepted head, written out again from what
 * was understood, is understood the same; so is one whose fields came before, also with another
 * secret among them.
 */
#include "fuzz.h"
#include "default_limits.h"
#include "protocol/http1_parser.h"

/* Three sizes of limits, so that small inputs reach them too. */
static rd_head_limits limits_for(uint8_t choice) {
    rd_head_limits limits = default_limits;

    limits.lenient_line_feeds = choice & 0x10;
    limits.lenient_target_bytes = choice & 0x20;
    limits.lenient_duplicate_length = choice & 0x20;
    limits.allow_underscore = choice & 0x40;
    limits.allow_connect = choice & 0x40;
    if (choice & 0x80) {
        limits.head_bytes = 256;
        limits.target_bytes = 32;
        limits.header_name_bytes = 20;
        limits.header_value_bytes = 40;
        limits.header_count = 6;
    }
    return limits;
}

static rd_sections sections;

typedef struct outcome {
    rd_head head;
    int rc;
} outcome;

static void parse(outcome *out, const rd_head_limits *limits, const rd_section *expected,
                  const char *buf, size_t len, size_t step) {
    rd_http1_parser parser;
    size_t given = 0;

    rd_http1_parser_init(&parser);
    parser.expected = expected;
    rd_head_init(&out->head);
    out->rc = 0;
    do {
        given = len - given < step ? len : given + step;
        char *copy = fuzz_copy(buf, given);
        out->rc = rd_http1_parse(&parser, &out->head, limits, copy, given);
        free(copy);
    } while (out->rc == 0 && given < len);
    FUZZ_CHECK(out->rc <= (int)given);
}

static void check_same(const outcome *a, const outcome *b) {
    FUZZ_CHECK(a->rc == b->rc);
    if (a->rc <= 0) return;
    FUZZ_CHECK(memcmp(&a->head, &b->head, offsetof(rd_head, header_count)) == 0);
    FUZZ_CHECK(a->head.header_count == b->head.header_count);
    FUZZ_CHECK(memcmp(a->head.headers, b->head.headers, a->head.header_count * sizeof(rd_header)) ==
               0);
}

static void check_span(rd_span span, const rd_head *head) {
    FUZZ_CHECK(span.at <= head->length && span.len <= head->length - span.at);
}

static void check_bounds(const outcome *out) {
    const rd_head *head = &out->head;

    FUZZ_CHECK((uint32_t)out->rc == head->length);
    check_span(head->method, head);
    check_span(head->target, head);
    check_span(head->path, head);
    check_span(head->query, head);
    check_span(head->authority, head);
    check_span(head->host, head);
    FUZZ_CHECK(head->method.len > 0 && head->target.len > 0);
    for (unsigned i = 0; i < head->header_count; i++) {
        check_span((rd_span){head->headers[i].name_at, head->headers[i].name_len}, head);
        check_span((rd_span){head->headers[i].value_at, head->headers[i].value_len}, head);
        FUZZ_CHECK(head->headers[i].name_len > 0 && head->headers[i].id != RD_HEADER_PROXY);
    }
}

static size_t put(char *out, size_t at, const char *buf, rd_span span) {
    memcpy(out + at, buf + span.at, span.len);
    return at + span.len;
}

static size_t put_text(char *out, size_t at, const char *text) {
    memcpy(out + at, text, strlen(text));
    return at + strlen(text);
}

/* The canonical form: one space, CRLF, no blanks around values, dropped fields left out. */
static size_t write_head(char *out, const char *buf, const rd_head *head) {
    size_t at = put(out, 0, buf, head->method);

    at = put_text(out, at, " ");
    at = put(out, at, buf, head->target);
    at = put_text(out, at, head->version == RD_HTTP_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    for (unsigned i = 0; i < head->header_count; i++) {
        const rd_header *header = &head->headers[i];

        at = put(out, at, buf, (rd_span){header->name_at, header->name_len});
        at = put_text(out, at, ": ");
        at = put(out, at, buf, (rd_span){header->value_at, header->value_len});
        at = put_text(out, at, "\r\n");
    }
    return put_text(out, at, "\r\n");
}

static void check_text(const char *a, rd_span span_a, const char *b, rd_span span_b) {
    FUZZ_CHECK(rd_slice_equal(rd_span_slice(span_a, a), rd_span_slice(span_b, b)));
}

static void check_meaning(const char *a, const rd_head *x, const char *b, const rd_head *y) {
    check_text(a, x->method, b, y->method);
    check_text(a, x->path, b, y->path);
    check_text(a, x->query, b, y->query);
    check_text(a, x->authority, b, y->authority);
    check_text(a, x->host, b, y->host);
    FUZZ_CHECK(x->content_length == y->content_length && x->port == y->port);
    FUZZ_CHECK(x->method_id == y->method_id && x->version == y->version && x->form == y->form);
    FUZZ_CHECK(x->framing == y->framing && x->keep_alive == y->keep_alive);
    FUZZ_CHECK(x->expect_continue == y->expect_continue);
    FUZZ_CHECK(x->repeated == y->repeated);
    FUZZ_CHECK(memcmp(x->seen, y->seen, sizeof x->seen) == 0);
    FUZZ_CHECK(x->header_count == y->header_count);
    for (unsigned i = 0; i < x->header_count; i++) {
        FUZZ_CHECK(x->headers[i].id == y->headers[i].id);
        FUZZ_CHECK(
            rd_slice_equal(rd_header_name(&x->headers[i], a), rd_header_name(&y->headers[i], b)));
        FUZZ_CHECK(
            rd_slice_equal(rd_header_value(&x->headers[i], a), rd_header_value(&y->headers[i], b)));
    }
}

/* Blanks count towards the limits, so a written head may only be judged under the usual ones. */
static void check_rewritten(const outcome *out, rd_head_limits limits, const char *buf) {
    char *text = malloc(out->head.length + 4u * out->head.header_count + 32u);
    size_t len;
    outcome again;

    FUZZ_CHECK(text);
    len = write_head(text, buf, &out->head);
    limits.head_bytes = limits.target_bytes = limits.header_value_bytes = 1u << 24;
    parse(&again, &limits, NULL, text, len, len);
    FUZZ_CHECK(again.rc == (int)len);
    check_meaning(buf, &out->head, text, &again.head);
    rd_head_clear(&again.head);
    free(text);
}

/* The same head with this value instead of the secret's: compared and parsed it is the same. */
static void check_secret(const outcome *out, const rd_head_limits *limits, const char *buf,
                         const rd_section *section, rd_slice value) {
    const rd_header *secret = rd_head_secret(&out->head);
    const size_t behind = secret->value_at + secret->value_len;
    const size_t len = out->head.length - secret->value_len + value.len;
    char *text = malloc(len);
    outcome parsed, known;

    memcpy(text, buf, secret->value_at);
    memcpy(text + secret->value_at, value.ptr, value.len);
    memcpy(text + secret->value_at + value.len, buf + behind, out->head.length - behind);
    parse(&parsed, limits, NULL, text, len, len);
    parse(&known, limits, section, text, len, len);
    parsed.head.section = known.head.section;
    check_same(&parsed, &known);
    rd_head_clear(&parsed.head);
    rd_head_clear(&known.head);
    free(text);
}

static void check_secrets(const outcome *out, const rd_head_limits *limits, const char *buf,
                          const rd_section *section) {
    static const char *const values[] = {
        "x",    "another one, longer than limits may allow it to be",
        "",     " blank",
        "b\t",  "a\rb",
        "a\nb", "a\001b",
        "\xff", "a\r\n\r\n"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        check_secret(out, limits, buf, section, rd_slice_of(values[i], strlen(values[i])));
}

/* Fields that are compared instead of parsed make the same head. */
static void check_expected(outcome *out, const rd_head_limits *limits, const char *buf, size_t len,
                           size_t step) {
    outcome known, cut;
    uint8_t place = rd_sections_learn(&sections, &out->head, buf);
    uint64_t section = out->head.section;

    if (section == 0) place = rd_sections_learn(&sections, &out->head, buf);
    section = out->head.section;
    parse(&known, limits, &sections.entries[place], buf, len, len);
    parse(&cut, limits, &sections.entries[place], buf, len, step);
    FUZZ_CHECK(known.head.section == section);
    FUZZ_CHECK(cut.head.section == section || cut.head.section == 0);
    cut.head.section = section;
    check_same(out, &known);
    check_same(out, &cut);
    if (section != 0 && rd_head_secret(&out->head))
        check_secrets(out, limits, buf, &sections.entries[place]);
    rd_head_clear(&known.head);
    rd_head_clear(&cut.head);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    const uint8_t choice = len ? bytes[0] : 0;
    const rd_head_limits limits = limits_for(choice);
    outcome whole, pieces;
    char *buf;

    if (len < 2 || len > 4096) return 0;
    len--;
    buf = fuzz_copy(bytes + 1, len);
    rd_sections_clear(&sections);
    parse(&whole, &limits, NULL, buf, len, len);
    parse(&pieces, &limits, NULL, buf, len, (choice & 0x0f) + 1u);
    check_same(&whole, &pieces);
    if (whole.rc > 0) {
        check_bounds(&whole);
        check_rewritten(&whole, limits, buf);
        check_expected(&whole, &limits, buf, len, (choice & 0x0f) + 1u);
    }
    rd_head_clear(&whole.head);
    rd_head_clear(&pieces.head);
    free(buf);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * The request head, line by line; see http1_parser.h. One function for each state. Each reads every
 * byte once and in order. A limit is decided by the position of the byte that exceeds it, so that
 * the answer does not depend on how the bytes were cut. Under the loop lock.
 *
 *   START ─▶ METHOD ─▶ TARGET ─▶ VERSION ─▶ LINE ─▶ NAME ─▶ VALUE
 *     ↺ empty lines                          │ ▲               │
 *                                            ▼ ╰───────────────╯
 *                                      (empty line: complete)
 */
#include "protocol/http1_parser.h"

#include <limits.h>

#include "base/apart.h"
#include "http/target.h"
#include "http/field.h"
#include "protocol/http1_framing.h"
#include "protocol/http1_scan.h"

enum { START, METHOD, TARGET, VERSION, LINE, NAME, VALUE };

/* Results of a state function: more bytes are needed, go on to the state it has set, or the head is
 * complete. */
enum { MORE = 0, NEXT = 1, COMPLETE = 2 };

enum { METHOD_MAX = 24, EMPTY_LINES_MAX = 4, VERSION_LEN = 8 };

/* Bytes of a target: 1 always allowed, 2 only when lenient. Brackets are common in queries, so they
 * are allowed. */
static const uint8_t target_bytes[256] = {
    ['!'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1, ['('] = 1, [')'] = 1, ['*'] = 1,
    ['+'] = 1, [','] = 1, ['-'] = 1, ['.'] = 1, ['/'] = 1,  ['0'] = 1, ['1'] = 1, ['2'] = 1,
    ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1,  ['8'] = 1, ['9'] = 1, [':'] = 1,
    [';'] = 1, ['='] = 1, ['?'] = 1, ['@'] = 1, ['A'] = 1,  ['B'] = 1, ['C'] = 1, ['D'] = 1,
    ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1, ['I'] = 1,  ['J'] = 1, ['K'] = 1, ['L'] = 1,
    ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1, ['Q'] = 1,  ['R'] = 1, ['S'] = 1, ['T'] = 1,
    ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1, ['Y'] = 1,  ['Z'] = 1, ['['] = 1, [']'] = 1,
    ['_'] = 1, ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1,  ['e'] = 1, ['f'] = 1, ['g'] = 1,
    ['h'] = 1, ['i'] = 1, ['j'] = 1, ['k'] = 1, ['l'] = 1,  ['m'] = 1, ['n'] = 1, ['o'] = 1,
    ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1,  ['u'] = 1, ['v'] = 1, ['w'] = 1,
    ['x'] = 1, ['y'] = 1, ['z'] = 1, ['~'] = 1, ['"'] = 2,  ['<'] = 2, ['>'] = 2, ['\\'] = 2,
    ['^'] = 2, ['`'] = 2, ['{'] = 2, ['|'] = 2, ['}'] = 2,
};

/* The state of one call. The parser is a copy, so that the compiler may keep it in registers. */
typedef struct run {
    rd_http1_parser parser;
    rd_head *head;
    const rd_head_limits *limits;
    const char *buf;
    uint32_t end;
} run;

static inline unsigned char byte_at(const run *run, uint32_t at) {
    return (unsigned char)run->buf[at];
}

/* Takes the line end at `at`. Returns NEXT with `at` behind it, MORE, or an error. */
static inline int take_line_end(run *run) {
    uint32_t at = run->parser.at;

    if (byte_at(run, at) == '\n') {
        if (!run->limits->lenient_line_feeds) return RD_ERR_BARE_LF;
        run->parser.at = at + 1;
        return NEXT;
    }
    if (at + 1 == run->end) return MORE; /* the next call reads the CR again, one byte */
    if (byte_at(run, at + 1) != '\n') return RD_ERR_BARE_CR;
    run->parser.at = at + 2;
    return NEXT;
}

static inline bool is_line_end(unsigned char byte) {
    return byte == '\r' || byte == '\n';
}

/* Skips empty lines before a request (RFC 9112, section 2.2); a few are allowed. */
static inline int read_start(run *run) {
    int rc;

    while (run->parser.at < run->end) {
        if (!is_line_end(byte_at(run, run->parser.at))) {
            run->head->start = run->parser.token = run->parser.at;
            run->parser.state = METHOD;
            return NEXT;
        }
        if (run->parser.empty_lines == EMPTY_LINES_MAX) return RD_ERR_EMPTY_LINES;
        rc = take_line_end(run);
        if (rc <= 0) return rc;
        run->parser.empty_lines++;
    }
    return MORE;
}

static inline int read_method(run *run) {
    uint32_t at = run->parser.at;
    const uint32_t token = run->parser.token;

    while (at < run->end && rd_field_name_bytes[byte_at(run, at)]) at++;
    run->parser.at = at;
    if (at - token > METHOD_MAX) return RD_ERR_METHOD_TOO_LONG;
    if (at == run->end) return MORE;
    if (at == token) return RD_ERR_METHOD_INVALID;
    if (byte_at(run, at) != ' ')
        return is_line_end(byte_at(run, at)) ? RD_ERR_TARGET_MISSING : RD_ERR_METHOD_INVALID;
    run->head->method = (rd_span){token, at - token};
    run->head->method_id = rd_method_id(run->buf + token, at - token);
    run->parser.at = run->parser.token = at + 1;
    run->parser.state = TARGET;
    return NEXT;
}

static inline bool is_target_byte(const run *run, unsigned char byte) {
    if (target_bytes[byte] == 1) return true;
    return run->limits->lenient_target_bytes && (target_bytes[byte] == 2 || byte >= 0x80);
}

static inline int read_target(run *run) {
    uint32_t at = rd_scan_plain_target(run->buf, run->parser.at, run->end);
    const uint32_t token = run->parser.token;

    while (at < run->end && is_target_byte(run, byte_at(run, at))) at++;
    run->parser.at = at;
    if (at - token > run->limits->target_bytes) return RD_ERR_TARGET_TOO_LONG;
    if (at == run->end) return MORE;
    if (byte_at(run, at) != ' ' && !is_line_end(byte_at(run, at))) return RD_ERR_TARGET_BYTE;
    if (at == token) return RD_ERR_TARGET_MISSING;
    if (byte_at(run, at) != ' ') return RD_ERR_VERSION_MISSING; /* HTTP/0.9 */
    run->head->target = (rd_span){token, at - token};
    run->parser.at = run->parser.token = at + 1;
    run->parser.state = VERSION;
    return NEXT;
}

static inline bool is_digit(unsigned char byte) {
    return byte >= '0' && byte <= '9';
}

/* Reads the eight bytes of HTTP/d.d and the line end, as far as they have been received. */
static int read_version_bytes(run *run) {
    static const char pattern[VERSION_LEN] = "HTTP/0.0";

    while (run->parser.at < run->end) {
        const uint32_t i = run->parser.at - run->parser.token;
        const unsigned char byte = byte_at(run, run->parser.at);

        if (i == VERSION_LEN)
            return is_line_end(byte) ? take_line_end(run) : RD_ERR_VERSION_INVALID;
        if (pattern[i] == '0' ? !is_digit(byte) : byte != (unsigned char)pattern[i])
            return i == 0 && is_line_end(byte) ? RD_ERR_VERSION_MISSING : RD_ERR_VERSION_INVALID;
        run->parser.at++;
    }
    return MORE;
}

/* The target is checked only here, so that the preface of HTTP/2 gets the error about the
 * version. */
static inline int read_version(run *run) {
    const uint32_t token = run->parser.token;
    int rc;

    if (run->parser.at == token && run->end - token >= 10 &&
        memcmp(run->buf + token, "HTTP/1.1\r\n", 10) == 0) {
        run->parser.at = token + 10;
    } else {
        rc = read_version_bytes(run);
        if (rc <= 0) return rc;
        if (run->buf[token + 5] != '1') return RD_ERR_VERSION_UNSUPPORTED;
    }
    run->head->version = run->buf[token + 7] == '0' ? RD_HTTP_1_0 : RD_HTTP_1_1;
    rc = rd_target_parse(run->head, run->buf, run->limits->allow_connect);
    if (rc < 0) return rc;
    run->head->fields = run->parser.at;
    run->parser.state = LINE;
    return NEXT;
}

/* Bytes of the value that stands where the section has its gap. 0: none, or none that needs no
 * closer look. */
RD_APART static uint32_t read_secret(const run *run, const rd_section *section) {
    const rd_header *header = &section->headers[section->before_gap - 1];
    const uint32_t blanks = section->gap - header->name_at - header->name_len - 1u;
    const uint32_t at = run->head->fields + section->gap;
    const char *fields = run->buf + run->head->fields;
    uint32_t end;

    if (!rd_section_leads(section, fields, run->end - run->head->fields)) return 0;
    end = rd_scan_value(run->buf, at, run->end);
    if (end == at || end - at + blanks > run->limits->header_value_bytes) return 0;
    if (rd_field_is_blank(byte_at(run, at)) || rd_field_is_blank(byte_at(run, end - 1))) return 0;
    return end - at;
}

static inline bool are_expected(const run *run) {
    const rd_section *expected = run->parser.expected;
    uint32_t secret = 0;

    if (!expected) return false;
    if (expected->gap != 0) {
        secret = read_secret(run, expected);
        if (secret == 0) return false;
    }
    return rd_section_apply(expected, run->head, run->buf, run->end, secret);
}

static inline int read_line(run *run) {
    unsigned char byte;
    int rc;

    if (run->parser.at == run->end) return MORE;
    byte = byte_at(run, run->parser.at);
    if (is_line_end(byte)) {
        rc = take_line_end(run);
        return rc <= 0 ? rc : COMPLETE;
    }
    if (byte == ' ' || byte == '\t') return RD_ERR_FIELD_FOLDED;
    if (byte == ':') return RD_ERR_FIELD_NAME_EMPTY;
    if (run->parser.field_count >= run->limits->header_count) return RD_ERR_FIELD_COUNT;
    run->parser.field_count++;
    run->parser.token = run->parser.at;
    run->parser.underscore = false;
    run->parser.state = NAME;
    return NEXT;
}

static inline int read_name(run *run) {
    unsigned kinds = 0;
    const uint32_t at = rd_scan_name(run->buf, run->parser.at, run->end, &kinds);
    const uint32_t token = run->parser.token;
    rd_header *header;

    run->parser.at = at;
    run->parser.underscore |= (kinds & RD_NAME_UNDERSCORE) != 0;
    if (at - token > rd_field_name_limit(run->limits)) return RD_ERR_FIELD_NAME_TOO_LONG;
    if (at == run->end) return MORE;
    if (byte_at(run, at) != ':') return rd_field_name_error(byte_at(run, at));

    header = rd_head_next_header(run->head);
    header->name_at = token;
    header->name_len = (uint16_t)(at - token);
    run->parser.at = run->parser.token = at + 1;
    run->parser.state = VALUE;
    return NEXT;
}

/* Puts the header whose value ends at `end` into the array, unless it must be dropped. */
static inline void keep_header(run *run, uint32_t end) {
    rd_head *head = run->head;
    rd_header *header = &head->headers[head->header_count];
    uint32_t at = run->parser.token;
    unsigned id;

    head->doubtful |= run->parser.underscore;
    if (run->parser.underscore && !run->limits->allow_underscore) return;
    id = run->parser.underscore ? RD_HEADER_OTHER
                                : rd_header_id(run->buf + header->name_at, header->name_len);
    if (id == RD_HEADER_PROXY) {
        head->doubtful = true;
        return;
    }
    if (at < end && byte_at(run, at) == ' ') at++; /* the only blank in nearly every line */
    if (at < end && (byte_at(run, at) <= ' ' || byte_at(run, end - 1) <= ' ')) {
        while (at < end && rd_field_is_blank(byte_at(run, at))) at++;
        while (at < end && rd_field_is_blank(byte_at(run, end - 1))) end--;
    }
    header->value_at = at;
    header->value_len = end - at;
    header->id = (uint16_t)id;
    if (id != RD_HEADER_OTHER) {
        head->repeated |= rd_head_has(head, id);
        head->seen[id / 64] |= UINT64_C(1) << (id % 64);
    }
    head->header_count++;
}

static inline int read_value(run *run) {
    const uint32_t at = rd_scan_value(run->buf, run->parser.at, run->end);
    int rc;

    run->parser.at = at;
    if (at - run->parser.token > run->limits->header_value_bytes)
        return RD_ERR_FIELD_VALUE_TOO_LONG;
    if (at == run->end) return MORE;
    if (!is_line_end(byte_at(run, at))) return RD_ERR_FIELD_VALUE_BYTE;
    rc = take_line_end(run);
    if (rc <= 0) return rc;
    keep_header(run, at);
    run->parser.state = LINE;
    return NEXT;
}

/* Reads field lines until the empty one. `state` says where in a line the last call stopped. */
static inline int read_fields(run *run) {
    int rc;

    for (;;) {
        if (run->parser.state == LINE) {
            rc = read_line(run);
            if (rc != NEXT) return rc;
        }
        if (run->parser.state == NAME) {
            rc = read_name(run);
            if (rc != NEXT) return rc;
        }
        rc = read_value(run);
        if (rc != NEXT) return rc;
    }
}

/* Each state leads to the next: to resume, jump in and fall through. */
static inline int run_states(run *run) {
    int rc;

    switch (run->parser.state) {
    case START:
        rc = read_start(run);
        if (rc != NEXT) return rc;
        /* fall through */
    case METHOD:
        rc = read_method(run);
        if (rc != NEXT) return rc;
        /* fall through */
    case TARGET:
        rc = read_target(run);
        if (rc != NEXT) return rc;
        /* fall through */
    case VERSION:
        rc = read_version(run);
        if (rc != NEXT) return rc;
        if (are_expected(run)) return COMPLETE;
        /* fall through */
    default:
        return read_fields(run);
    }
}

void rd_http1_parser_init(rd_http1_parser *parser) {
    memset(parser, 0, sizeof *parser);
}

bool rd_http1_parser_is_idle(const rd_http1_parser *parser) {
    return parser->state == START;
}

int rd_http1_parse(rd_http1_parser *parser, rd_head *head, const rd_head_limits *limits,
                   const char *buf, size_t len) {
    const size_t most = limits->head_bytes < INT_MAX ? limits->head_bytes : INT_MAX;
    run run = {*parser, head, limits, buf, (uint32_t)(len < most ? len : most)};
    int rc = run_states(&run);

    *parser = run.parser;
    if (rc < 0) return rc;
    if (rc == MORE) return len >= most ? RD_ERR_HEAD_TOO_LARGE : 0;
    if (head->section != 0) return (int)head->length;
    if (head->doubtful && limits->allow_underscore) rd_field_drop_twins(head, buf);
    rc = rd_http1_framing_decide(head, limits, buf);
    if (rc < 0) return rc;
    head->length = run.parser.at;
    return (int)head->length;
}

/* SPDX-License-Identifier: MIT
 *
 * The reader of answers, see load_answer.h. */
#include "load/load_answer.h"

#include "base/ascii.h"

#include <string.h>

enum { MAX_HEAD = 65536 };

/* Whether the text begins with these letters in any case; they are given in lower case. */
static bool begins_with(const char *text, size_t len, const char *lower) {
    size_t lower_len = strlen(lower);
    return len >= lower_len &&
           rd_ascii_is(rd_slice_of(text, lower_len), rd_slice_of(lower, lower_len));
}

static bool header_is(const char *line, size_t len, const char *name) {
    size_t name_len = strlen(name);
    return len > name_len && line[name_len] == ':' && begins_with(line, len, name);
}

static bool value_has(const char *line, size_t len, const char *word) {
    for (size_t i = 0; i < len; i++)
        if (begins_with(line + i, len - i, word)) return true;
    return false;
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* The number in front of the line's end; behind it the bytes may be anything. */
static bool length_read(const char *line, size_t len, uint64_t *length) {
    size_t at = strlen("content-length:");
    while (at < len && (line[at] == ' ' || line[at] == '\t')) at++;
    if (at == len || !is_digit(line[at])) return false;
    for (*length = 0; at < len && is_digit(line[at]); at++) {
        const uint64_t digit = (uint64_t)(line[at] - '0');
        *length = *length > (UINT64_MAX - 9) / 10 ? UINT64_MAX : *length * 10 + digit;
    }
    return true;
}

static void head_line_read(rd_load_answer_head *head, const char *line, size_t len,
                           bool *has_length) {
    if (header_is(line, len, "content-length")) {
        *has_length = length_read(line, len, &head->length);
    } else if (header_is(line, len, "transfer-encoding") && value_has(line, len, "chunked")) {
        head->framing = RD_CHUNKED;
    } else if (header_is(line, len, "connection") && value_has(line, len, "close")) {
        head->closes = true;
    }
}

/* Returns 1 with *head filled, 0 when the head is not whole yet, -1 when it is no HTTP/1 answer. */
static int head_read(rd_load_answer_head *head, const char *at, size_t len) {
    const char *end = memmem(at, len, "\r\n\r\n", 4);
    if (!end) return len > MAX_HEAD ? -1 : 0;
    if (end - at < 12 || memcmp(at, "HTTP/1.", 7) != 0) return -1;
    if (!is_digit(at[9]) || !is_digit(at[10]) || !is_digit(at[11])) return -1;
    bool has_length = false;
    *head = (rd_load_answer_head){.bytes = (size_t)(end - at) + 4, .framing = RD_BY_LENGTH};
    head->status = (at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0');
    const char *line = memchr(at, '\n', len);
    while (line && line + 1 < end) {
        const char *start = line + 1;
        line = memchr(start, '\n', (size_t)(end + 2 - start));
        if (line) head_line_read(head, start, (size_t)(line - start), &has_length);
    }
    if (head->status < 200 || head->status == 204 || head->status == 304)
        head->framing = RD_BY_LENGTH, head->length = 0;
    else if (head->framing != RD_CHUNKED && !has_length)
        head->framing = RD_UNTIL_CLOSE;
    return 1;
}

static int head_recall(rd_known_answer *known, rd_load_answer_head *head, const char *at,
                       size_t len) {
    size_t bytes = known->head.bytes;
    if (bytes && len >= bytes && memcmp(at, known->bytes, bytes) == 0) {
        *head = known->head;
        return 1;
    }
    int found = head_read(head, at, len);
    if (found == 1 && head->bytes <= sizeof known->bytes) {
        memcpy(known->bytes, at, head->bytes);
        known->head = *head;
    }
    return found;
}

static size_t body_take(rd_load_answer *answer, size_t len) {
    size_t taken = answer->left < len ? (size_t)answer->left : len;
    answer->left -= taken;
    answer->body_bytes += taken;
    return taken;
}

/* Reads one line of the chunked framing, which may come in pieces. Returns the bytes used. */
static size_t chunk_line_take(rd_load_answer *answer, const char *at, size_t len, bool *whole) {
    size_t used = 0;
    *whole = false;
    while (used < len && !*whole) {
        char c = at[used++];
        if (c == '\n')
            *whole = true;
        else if (c != '\r')
            answer->line_bytes++;
        if (answer->stage != RD_CHUNK_LINE || answer->in_extension) continue;
        unsigned digit = 99;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            digit = (unsigned)((c | 32) - 'a') + 10;
        else if (c == ';')
            answer->in_extension = true;
        if (digit < 16) answer->left = answer->left * 16 + digit;
    }
    return used;
}

static void chunk_line_begin(rd_load_answer *answer) {
    answer->stage = RD_CHUNK_LINE;
    answer->left = 0;
    answer->line_bytes = 0;
    answer->in_extension = false;
}

static size_t chunked_take(rd_load_answer *answer, const char *at, size_t len, bool *done) {
    bool whole;
    if (answer->stage == RD_CHUNK_BODY) {
        size_t taken = answer->left ? body_take(answer, len) : 0;
        if (answer->left == 0 && taken < len) {
            taken += chunk_line_take(answer, at + taken, len - taken, &whole); /* its CR LF */
            if (whole) chunk_line_begin(answer);
        }
        return taken;
    }
    size_t taken = chunk_line_take(answer, at, len, &whole);
    if (!whole) return taken;
    unsigned line_bytes = answer->line_bytes;
    answer->line_bytes = 0;
    if (answer->stage == RD_TRAILER)
        *done = line_bytes == 0;
    else
        answer->stage = answer->left ? RD_CHUNK_BODY : RD_TRAILER;
    return taken;
}

/* Returns whether the answer is over with its head. */
static bool body_begin(rd_load_answer *answer) {
    answer->body_bytes = 0;
    if (answer->head.framing == RD_CHUNKED) {
        chunk_line_begin(answer);
        return false;
    }
    answer->stage = RD_BODY;
    answer->left = answer->head.framing == RD_UNTIL_CLOSE ? UINT64_MAX : answer->head.length;
    return answer->left == 0;
}

rd_load_answer_progress rd_load_answer_take(rd_load_answer *answer, rd_known_answer *known,
                                            const char *at, size_t len, size_t *used) {
    bool done = false;
    *used = 0;
    while (*used < len && !done) {
        const char *rest = at + *used;
        size_t rest_len = len - *used;
        if (answer->stage == RD_HEAD) {
            int found = head_recall(known, &answer->head, rest, rest_len);
            if (found <= 0) return found == 0 ? RD_HEAD_CUT : RD_NO_ANSWER;
            *used += answer->head.bytes;
            done = body_begin(answer);
        } else if (answer->stage == RD_BODY) {
            *used += body_take(answer, rest_len);
            done = answer->left == 0;
        } else {
            *used += chunked_take(answer, rest, rest_len, &done);
        }
    }
    if (done) answer->stage = RD_HEAD;
    return done ? RD_DONE : RD_MORE;
}

size_t rd_load_answer_plain_left(const rd_load_answer *answer) {
    bool is_plain = answer->stage == RD_BODY && answer->head.framing == RD_BY_LENGTH;
    return is_plain ? (size_t)answer->left : 0;
}

rd_load_answer_progress rd_load_answer_skip(rd_load_answer *answer, size_t len) {
    body_take(answer, len);
    if (answer->left > 0) return RD_MORE;
    answer->stage = RD_HEAD;
    return RD_DONE;
}

bool rd_load_answer_ends_with_close(const rd_load_answer *answer) {
    return answer->stage == RD_BODY && answer->head.framing == RD_UNTIL_CLOSE;
}

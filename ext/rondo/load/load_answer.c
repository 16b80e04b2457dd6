/* SPDX-License-Identifier: MIT
 *
 * The reader of answers, see load_answer.h. */
#include "load/load_answer.h"

#include "base/ascii.h"

#include <string.h>

enum { MAX_HEAD = 65536, MAX_LINE = 65536 };

/* Chunks and bodies are smaller; 16 times this is still a number. */
static const uint64_t MAX_SIZE = UINT64_C(1) << 59;

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

static bool is_space(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* The value of Content-Length: digits, and spaces around them. */
static bool length_read(const char *value, size_t len, uint64_t *length) {
    while (len > 0 && is_space(*value)) value++, len--;
    while (len > 0 && is_space(value[len - 1])) len--;
    *length = 0;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(value[i]) || *length > MAX_SIZE) return false;
        *length = *length * 10 + (uint64_t)(value[i] - '0');
    }
    return len > 0;
}

/* Returns false if the line makes the end of the answer unknowable. */
static bool head_line_read(rd_load_answer_head *head, const char *line, size_t len,
                           bool *has_length) {
    if (header_is(line, len, "content-length")) {
        uint64_t length;
        if (!length_read(line + 15, len - 15, &length)) return false;
        if (*has_length && length != head->length) return false;
        head->length = length;
        *has_length = true;
    } else if (header_is(line, len, "transfer-encoding") && value_has(line, len, "chunked")) {
        head->framing = RD_CHUNKED;
    } else if (header_is(line, len, "connection") && value_has(line, len, "close")) {
        head->closes = true;
    }
    return true;
}

static bool status_read(rd_load_answer_head *head, const char *at, size_t len) {
    if (len < 12 || memcmp(at, "HTTP/1.", 7) != 0 || at[8] != ' ') return false;
    if (!is_digit(at[9]) || !is_digit(at[10]) || !is_digit(at[11])) return false;
    head->status = (at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0');
    return head->status >= 100;
}

/* Returns 1 with *head filled, 0 when the head is not whole yet, -1 when it is no HTTP/1 answer. */
static int head_read(rd_load_answer_head *head, const char *at, size_t len) {
    const char *end = memmem(at, len, "\r\n\r\n", 4);
    if (!end) return len >= MAX_HEAD ? -1 : 0;
    bool has_length = false;
    *head = (rd_load_answer_head){.bytes = (size_t)(end - at) + 4, .framing = RD_BY_LENGTH};
    if (head->bytes > MAX_HEAD || !status_read(head, at, (size_t)(end - at))) return -1;
    const char *line = memchr(at, '\n', len);
    while (line && line + 1 < end) {
        const char *start = line + 1;
        line = memchr(start, '\n', (size_t)(end + 2 - start));
        if (line && !head_line_read(head, start, (size_t)(line - start), &has_length)) return -1;
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

/* Takes a byte of a chunk's size. */
static bool size_take(rd_load_answer *answer, char c) {
    unsigned digit;
    if (is_digit(c))
        digit = (unsigned)(c - '0');
    else if ((c | 32) >= 'a' && (c | 32) <= 'f')
        digit = (unsigned)((c | 32) - 'a') + 10;
    else
        return answer->in_extension = answer->line_bytes > 1; /* a digit came first */
    if (answer->left > MAX_SIZE) return false;
    answer->left = answer->left * 16 + digit;
    return true;
}

/* Reads one line of the chunked framing, which may come in pieces, up to its end. Returns RD_DONE
 * with the line. */
static rd_load_answer_progress chunk_line_take(rd_load_answer *answer, const char *at, size_t len,
                                               size_t *used) {
    while (*used < len) {
        char c = at[(*used)++];
        if (c == '\n') return RD_DONE;
        if (c == '\r') continue;
        if (++answer->line_bytes > MAX_LINE) return RD_NO_ANSWER;
        if (answer->stage != RD_CHUNK_LINE || answer->in_extension) continue;
        if (!size_take(answer, c)) return RD_NO_ANSWER;
    }
    return RD_MORE;
}

static void chunk_line_begin(rd_load_answer *answer) {
    answer->stage = RD_CHUNK_LINE;
    answer->left = 0;
    answer->line_bytes = 0;
    answer->in_extension = false;
}

/* Goes on behind a line. Returns RD_DONE if the body ended with it. */
static rd_load_answer_progress chunk_line_end(rd_load_answer *answer) {
    const bool is_empty = answer->line_bytes == 0;
    answer->line_bytes = 0;
    if (answer->stage == RD_TRAILER) return is_empty ? RD_DONE : RD_MORE;
    /* A chunk's size is one line, and so is the CR LF behind its bytes. */
    if (is_empty != (answer->stage == RD_CHUNK_BODY)) return RD_NO_ANSWER;
    if (answer->stage == RD_CHUNK_BODY)
        chunk_line_begin(answer);
    else
        answer->stage = answer->left ? RD_CHUNK_BODY : RD_TRAILER;
    return RD_MORE;
}

static rd_load_answer_progress chunked_take(rd_load_answer *answer, const char *at, size_t len,
                                            size_t *used) {
    if (answer->stage == RD_CHUNK_BODY) *used += body_take(answer, len);
    const rd_load_answer_progress line = chunk_line_take(answer, at, len, used);
    return line == RD_DONE ? chunk_line_end(answer) : line;
}

static rd_load_answer_progress body_begin(rd_load_answer *answer) {
    answer->body_bytes = 0;
    if (answer->head.framing == RD_CHUNKED) {
        chunk_line_begin(answer);
        return RD_MORE;
    }
    answer->stage = RD_BODY;
    answer->left = answer->head.framing == RD_UNTIL_CLOSE ? UINT64_MAX : answer->head.length;
    return answer->left == 0 ? RD_DONE : RD_MORE;
}

/* Takes a part of an answer: its head, a body, or a chunk with the line behind it. */
static rd_load_answer_progress part_take(rd_load_answer *answer, rd_known_answer *known,
                                         const char *at, size_t len, size_t *used) {
    if (answer->stage == RD_HEAD) {
        int found = head_recall(known, &answer->head, at, len);
        if (found <= 0) return found == 0 ? RD_HEAD_CUT : RD_NO_ANSWER;
        *used = answer->head.bytes;
        return body_begin(answer);
    }
    if (answer->stage != RD_BODY) return chunked_take(answer, at, len, used);
    *used = body_take(answer, len);
    return answer->left == 0 ? RD_DONE : RD_MORE;
}

rd_load_answer_progress rd_load_answer_take(rd_load_answer *answer, rd_known_answer *known,
                                            const char *at, size_t len, size_t *used) {
    rd_load_answer_progress progress = RD_MORE;
    *used = 0;
    while (*used < len && progress == RD_MORE) {
        size_t part = 0;
        progress = part_take(answer, known, at + *used, len - *used, &part);
        *used += part;
    }
    if (progress == RD_DONE) answer->stage = RD_HEAD;
    return progress;
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

/* SPDX-License-Identifier: MIT
 *
 * Reads answers line by line; see http1_reply.h.
 */
#include "protocol/http1_reply.h"

#include "base/ascii.h"
#include "base/error.h"
#include "http/field.h"
#include "http/status.h"

#define VERSION     "HTTP/1.1 "
#define VERSION_LEN (sizeof(VERSION) - 1)

void rd_http1_reply_init(rd_http1_reply *reply, bool to_head) {
    *reply = (rd_http1_reply){.length = -1, .to_head = to_head};
}

/* ---- lines ---- */

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* "HTTP/1.1 200 OK"; the reason may be empty, the blank before it may not be missing. */
static bool read_status_line(rd_http1_reply *reply, rd_slice line) {
    if (line.len <= VERSION_LEN + 3 || memcmp(line.ptr, VERSION, VERSION_LEN) != 0) return false;
    const char *digits = line.ptr + VERSION_LEN;
    for (int i = 0; i < 3; i++) {
        if (!is_digit(digits[i])) return false;
        reply->status = reply->status * 10 + (digits[i] - '0');
    }
    return digits[3] == ' ' && reply->status >= 100;
}

static bool read_length(rd_http1_reply *reply, rd_slice value) {
    int64_t length = 0;
    if (reply->length >= 0 || value.len == 0 || value.len > 18) return false;
    for (size_t i = 0; i < value.len; i++) {
        if (!is_digit(value.ptr[i])) return false;
        length = length * 10 + (value.ptr[i] - '0');
    }
    reply->length = length;
    return true;
}

static bool read_coding(rd_http1_reply *reply, rd_slice value) {
    if (reply->is_chunked || !rd_ascii_is(value, RD_SLICE("chunked"))) return false;
    return reply->is_chunked = true;
}

/* What the hop between the two workers needs, and the client does not. */
static bool is_of_hop(rd_slice name, rd_slice value) {
    switch (name.len) {
    case 10:
        return rd_ascii_is(name, RD_SLICE("connection")) &&
               (rd_ascii_is(value, RD_SLICE("close")) ||
                rd_ascii_is(value, RD_SLICE("keep-alive")));
    case 14:
        return rd_ascii_is(name, RD_SLICE("content-length"));
    case 17:
        return rd_ascii_is(name, RD_SLICE("transfer-encoding"));
    default:
        return false;
    }
}

static bool read_special(rd_http1_reply *reply, rd_slice name, rd_slice value) {
    switch (name.len) {
    case 4:
        if (rd_ascii_is(name, RD_SLICE("date"))) reply->has_date = true;
        return true;
    case 10:
        if (!rd_ascii_is(name, RD_SLICE("connection"))) return true;
        if (rd_ascii_is(value, RD_SLICE("close"))) reply->closes = true;
        return true;
    case 14:
        return !rd_ascii_is(name, RD_SLICE("content-length")) || read_length(reply, value);
    case 17:
        return !rd_ascii_is(name, RD_SLICE("transfer-encoding")) || read_coding(reply, value);
    default:
        return true;
    }
}

/* "name: value", as http1_responder.c writes it. The caller has found a colon. */
static rd_field field_of(rd_slice line) {
    const char *colon = memchr(line.ptr, ':', line.len);
    const size_t name = (size_t)(colon - line.ptr);
    return (rd_field){{line.ptr, name}, {colon + 2, line.len - name - 2}};
}

static bool is_name(rd_slice name) {
    for (size_t i = 0; i < name.len; i++) {
        if (!rd_field_name_bytes[(unsigned char)name.ptr[i]]) return false;
    }
    return name.len > 0;
}

static bool read_field(rd_http1_reply *reply, rd_slice line) {
    const char *colon = memchr(line.ptr, ':', line.len);
    if (colon == NULL || colon + 1 == line.ptr + line.len || colon[1] != ' ') return false;
    const rd_field field = field_of(line);
    if (!is_name(field.name)) return false;
    if (memchr(field.value.ptr, '\0', field.value.len) != NULL) return false;
    if (memchr(field.value.ptr, '\r', field.value.len) != NULL) return false;
    if (reply->count == RD_REPLY_FIELDS_MAX) return false;
    reply->count++;
    return read_special(reply, field.name, field.value);
}

/* ---- the head ---- */

static rd_reply_body body_of(const rd_http1_reply *reply) {
    if (reply->status != 101) {
        if (reply->to_head || !rd_status_has_body(reply->status)) return RD_REPLY_NONE;
        if (reply->is_chunked) return RD_REPLY_CHUNKED;
        if (reply->length >= 0) return reply->length == 0 ? RD_REPLY_NONE : RD_REPLY_LENGTH;
    }
    return RD_REPLY_RAW;
}

/* Decides from the status and the fields. False: they contradict each other. */
static bool decide_body(rd_http1_reply *reply) {
    if (reply->length >= 0 && reply->is_chunked) return false;
    if (rd_http1_reply_is_interim(reply) || reply->status == RD_REPLY_TAKEN_STATUS) {
        return reply->length < 0 && !reply->is_chunked;
    }
    reply->body = (uint8_t)body_of(reply);
    reply->left = reply->length > 0 ? (uint64_t)reply->length : 0;
    rd_http1_chunked_init(&reply->chunked);
    return true;
}

/* The line that begins at reply->line and ends at `end`, the place of its LF. */
static bool read_line(rd_http1_reply *reply, const char *buf, const char *end) {
    const char *begin = buf + reply->line;
    if (end == begin || end[-1] != '\r') return false;
    const rd_slice line = rd_slice_of(begin, (size_t)(end - 1 - begin));
    return reply->line == 0 ? read_status_line(reply, line) : read_field(reply, line);
}

static bool is_empty_line(const rd_http1_reply *reply, const char *buf, const char *end) {
    return reply->line > 0 && end == buf + reply->line + 1 && end[-1] == '\r';
}

/* Whether the first bytes can still become a status line. */
static bool can_begin(const char *buf, size_t len) {
    return memcmp(buf, VERSION, len < VERSION_LEN ? len : VERSION_LEN) == 0;
}

int rd_http1_reply_head(rd_http1_reply *reply, const char *buf, size_t len) {
    const size_t most = len < RD_REPLY_HEAD_MAX ? len : RD_REPLY_HEAD_MAX;
    if (len > 0 && !can_begin(buf, len)) return RD_ERR_REPLY_INVALID;
    while (reply->searched < most) {
        const char *end = memchr(buf + reply->searched, '\n', most - reply->searched);
        reply->searched = end == NULL ? (uint32_t)most : (uint32_t)(end + 1 - buf);
        if (end == NULL) break;
        if (is_empty_line(reply, buf, end)) {
            return decide_body(reply) ? (int)reply->searched : RD_ERR_REPLY_INVALID;
        }
        if (!read_line(reply, buf, end)) return RD_ERR_REPLY_INVALID;
        reply->line = reply->searched;
    }
    return len >= RD_REPLY_HEAD_MAX ? RD_ERR_REPLY_TOO_LARGE : 0;
}

size_t rd_http1_reply_fields(const rd_http1_reply *reply, const char *buf, rd_field *fields) {
    size_t kept = 0;
    const char *at = (const char *)memchr(buf, '\n', reply->searched) + 1;
    for (uint32_t i = 0; i < reply->count; i++) {
        const char *end = memchr(at, '\n', (size_t)(buf + reply->searched - at));
        fields[kept] = field_of(rd_slice_of(at, (size_t)(end - 1 - at)));
        const bool is_kept =
            reply->body == RD_REPLY_RAW || !is_of_hop(fields[kept].name, fields[kept].value);
        if (is_kept) kept++;
        at = end + 1;
    }
    return kept;
}

/* ---- the body ---- */

/* Without trailers and extensions, because this server writes none. The empty line at the end
 * counts as part of the trailers. */
static const rd_head_limits limits = {.chunk_line_bytes = 16, .trailer_bytes = 2};

static int read_chunked(rd_http1_reply *reply, const char *buf, size_t len, size_t *used,
                        rd_slice *data) {
    reply->chunked.overhead = 0; /* the chunks are as small as the application made them */
    const int result = rd_http1_chunked_next(&reply->chunked, &limits, buf, len, used, data);
    if (result < 0) return RD_ERR_REPLY_INVALID;
    return result == RD_CHUNKED_MORE   ? RD_REPLY_MORE
           : result == RD_CHUNKED_DATA ? RD_REPLY_DATA
                                       : RD_REPLY_DONE;
}

int rd_http1_reply_body(rd_http1_reply *reply, const char *buf, size_t len, size_t *used,
                        rd_slice *data) {
    *used = 0;
    *data = rd_slice_of(buf, 0);
    if (reply->body == RD_REPLY_CHUNKED) return read_chunked(reply, buf, len, used, data);
    if (reply->left == 0) return RD_REPLY_DONE;
    if (len == 0) return RD_REPLY_MORE;
    *used = len < reply->left ? len : (size_t)reply->left;
    *data = rd_slice_of(buf, *used);
    reply->left -= *used;
    return RD_REPLY_DATA;
}

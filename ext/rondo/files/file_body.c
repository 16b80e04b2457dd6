/* SPDX-License-Identifier: MIT
 *
 * Files as bodies; see file_body.h.
 */
#include "files/file_body.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/text.h"
#include "http/field_list.h"
#include "files/file_range.h"

#define CONTENT_RANGE_MAX 80
#define PARTS_TEXT_MAX    (1 << 20) /* far more than all heads of parts */

rd_boundaries rd_boundaries_random(void) {
    return (rd_boundaries){.key = rd_hash_key_random()};
}

uint64_t rd_boundary_next(rd_boundaries *boundaries) {
    const uint64_t number = ++boundaries->count;
    return rd_hash(boundaries->key, rd_slice_of((const char *)&number, sizeof(number)));
}

static int send_part(rd_request *request, const rd_file_body *body, uint64_t first, uint64_t len) {
    const rd_responder *to = request->responder;
    if (body->file == NULL) return to->write(request, body->bytes + first, (size_t)len);
    return to->send_file(request, body->file, (off_t)first, (size_t)len);
}

int rd_file_body_send(rd_request *request, rd_response_head *head, const rd_file_body *body) {
    head->length = (int64_t)body->size;
    int code = request->responder->start(request, head);
    if (code == 0 && body->size > 0) code = send_part(request, body, 0, body->size);
    if (code == 0) code = request->responder->finish(request);
    return code;
}

static size_t content_range(char text[CONTENT_RANGE_MAX], const rd_file_range *range,
                            uint64_t size) {
    int len = snprintf(text, CONTENT_RANGE_MAX, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                       range->first, range->first + range->len - 1, size);
    return (size_t)len;
}

static int send_one_range(rd_request *request, rd_response_head *head, rd_field *fields,
                          const rd_file_body *body, const rd_file_range *range) {
    char text[CONTENT_RANGE_MAX];
    size_t len = content_range(text, range, body->size);
    fields[head->count++] = (rd_field){RD_SLICE("content-range"), rd_slice_of(text, len)};
    head->length = (int64_t)range->len;
    int code = request->responder->start(request, head);
    if (code == 0) code = send_part(request, body, range->first, range->len);
    if (code == 0) code = request->responder->finish(request);
    return code;
}

/* ---- several ranges ---- */

static rd_field *find_field(rd_field *fields, size_t count, rd_slice name) {
    for (size_t i = 0; i < count; i++) {
        if (rd_field_is_word(fields[i].name, name)) return &fields[i];
    }
    return NULL;
}

/* Whether the ranges can be sent as parts. Not for encoded content: Content-Encoding would then
 * also apply to the text around the parts. And not if all parts together are longer than a length
 * can say. */
static bool can_be_parts(const rd_response_head *head, rd_field *fields,
                         const rd_file_range *ranges, int count) {
    uint64_t room = INT64_MAX - PARTS_TEXT_MAX;
    if (find_field(fields, head->count, RD_SLICE("content-encoding")) != NULL) return false;
    for (int i = 0; i < count; i++) {
        if (ranges[i].len > room) return false;
        room -= ranges[i].len;
    }
    return true;
}

/* Writes the lines before a part. The CRLF is allowed before the first part, too (RFC 2046
 * 5.1.1). */
static void put_part_head(rd_buffer *text, const rd_field *type, const rd_file_range *range,
                          uint64_t size, uint64_t boundary) {
    char value[CONTENT_RANGE_MAX];
    content_range(value, range, size);
    rd_text_add(text, "\r\n--%020" PRIu64 "\r\n", boundary);
    if (type != NULL) {
        rd_text_add(text, "content-type: %.*s\r\n", (int)type->value.len, type->value.ptr);
    }
    rd_text_add(text, "content-range: %s\r\n\r\n", value);
}

/* Writes the heads of all parts and the end into one text. The head of part i ends at ends[i]. */
static void put_part_heads(rd_buffer *text, size_t ends[RD_RANGES_MAX], const rd_field *type,
                           uint64_t size, const rd_file_range *ranges, int count,
                           uint64_t boundary) {
    for (int i = 0; i < count; i++) {
        put_part_head(text, type, &ranges[i], size, boundary);
        ends[i] = rd_buffer_len(text);
    }
    rd_text_add(text, "\r\n--%020" PRIu64 "--\r\n", boundary);
}

static int send_parts(rd_request *request, const rd_file_body *body, const rd_file_range *ranges,
                      int count, const rd_buffer *text, const size_t ends[RD_RANGES_MAX]) {
    const rd_responder *to = request->responder;
    const char *bytes = rd_buffer_ptr(text);
    size_t begin = 0;
    int code = 0;
    for (int i = 0; i < count && code == 0; i++) {
        code = to->write(request, bytes + begin, ends[i] - begin);
        if (code == 0) code = send_part(request, body, ranges[i].first, ranges[i].len);
        begin = ends[i];
    }
    if (code == 0) code = to->write(request, bytes + begin, rd_buffer_len(text) - begin);
    if (code == 0) code = to->finish(request);
    return code;
}

static int send_ranges(rd_request *request, rd_response_head *head, rd_field *fields,
                       const rd_file_body *body, const rd_file_range *ranges, int count,
                       uint64_t boundary) {
    rd_buffer text = {0};
    size_t ends[RD_RANGES_MAX];
    char value[64];
    rd_field *type = find_field(fields, head->count, RD_SLICE("content-type"));
    put_part_heads(&text, ends, type, body->size, ranges, count, boundary);
    int len =
        snprintf(value, sizeof(value), "multipart/byteranges; boundary=%020" PRIu64, boundary);
    if (type == NULL) {
        type = &fields[head->count++];
        type->name = RD_SLICE("content-type");
    }
    type->value = rd_slice_of(value, (size_t)len);
    head->length = (int64_t)rd_buffer_len(&text);
    for (int i = 0; i < count; i++) head->length += (int64_t)ranges[i].len;
    int code = request->responder->start(request, head);
    if (code == 0) code = send_parts(request, body, ranges, count, &text, ends);
    rd_buffer_clear(&text);
    return code;
}

/* ---- what the request wants ---- */

/* Uses only fields of its own: this answer must not be cached. */
static int refuse_range(rd_request *request, const rd_response_head *whole, uint64_t size) {
    char text[CONTENT_RANGE_MAX];
    int len = snprintf(text, sizeof(text), "bytes */%" PRIu64, size);
    const rd_field fields[] = {
        {RD_SLICE("accept-ranges"), RD_SLICE("bytes")},
        {RD_SLICE("content-range"), rd_slice_of(text, (size_t)len)},
    };
    const rd_response_head head = {
        .status = 416, .fields = fields, .count = 2, .length = 0, .close = whole->close};
    int code = request->responder->start(request, &head);
    if (code == 0) code = request->responder->finish(request);
    return code;
}

/* As rd_file_ranges_parse(). More than one Range line is ignored, RFC 9110 section 5.3. */
static int wanted_ranges(const rd_request *request, const rd_validators *validators, uint64_t size,
                         rd_file_range ranges[RD_RANGES_MAX]) {
    const rd_header *only = NULL;
    if (!rd_head_has(&request->head, RD_HEADER_RANGE)) return 0;
    if (request->head.method_id != RD_METHOD_GET) return 0;
    for (uint16_t i = 0; i < request->head.header_count; i++) {
        const rd_header *header = &request->head.headers[i];
        if (header->id != RD_HEADER_RANGE) continue;
        if (only != NULL) return 0;
        only = header;
    }
    if (only == NULL || !rd_file_range_applies(request, validators)) return 0;
    return rd_file_ranges_parse(rd_request_header_value(request, only), size, ranges);
}

int rd_file_body_send_wanted(rd_request *request, rd_response_head *head, rd_field *fields,
                             const rd_file_body *body, const rd_validators *validators,
                             rd_boundaries *boundaries) {
    rd_file_range ranges[RD_RANGES_MAX];
    int count = wanted_ranges(request, validators, body->size, ranges);
    if (count > 1 && !can_be_parts(head, fields, ranges, count)) count = 0;
    if (count == 0) return rd_file_body_send(request, head, body);
    if (count < 0) return refuse_range(request, head, body->size);
    head->status = 206;
    if (count == 1) return send_one_range(request, head, fields, body, ranges);
    return send_ranges(request, head, fields, body, ranges, count, rd_boundary_next(boundaries));
}

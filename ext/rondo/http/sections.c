/* SPDX-License-Identifier: MIT
 *
 * Compares, keeps and applies header sections; see sections.h. A section is kept only if it has the
 * same meaning after every request line of HTTP/1.1 with a path: it has no body and no other
 * authority than Host's.
 */
#include "http/sections.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { BYTES_MAX = 4096, HEADERS_MAX = 64 };

_Static_assert(RD_SECTIONS_SIZE - 1 <= UINT8_MAX, "a place is one byte");

void rd_sections_init(rd_sections *sections) {
    memset(sections, 0, sizeof(*sections));
}

void rd_sections_clear(rd_sections *sections) {
    for (size_t i = 0; i < RD_SECTIONS_SIZE; i++) rd_free(sections->entries[i].headers);
    rd_sections_init(sections);
}

static bool may_come_again(const rd_head *head) {
    return head->framing == RD_FRAMING_NONE && head->form == RD_TARGET_ORIGIN &&
           head->version != RD_HTTP_1_0;
}

/* ---- applying ---- */

/* Moves a span to its place in another message. `by` may be the two's complement of a negative
 * number. */
static rd_span shifted(rd_span span, uint32_t by) {
    return (rd_span){span.at + by, span.len};
}

static void shift_headers(rd_header *to, const rd_header *from, unsigned count, uint32_t by) {
    for (unsigned i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].name_at += by;
        to[i].value_at += by;
    }
}

bool rd_section_apply(const rd_section *section, rd_head *head, const char *buf, size_t len) {
    if (section->len == 0 || len - head->fields < section->len || !may_come_again(head))
        return false;
    if (memcmp(buf + head->fields, section->bytes, section->len) != 0) return false;
    while (head->header_capacity < section->header_count) rd_head_grow(head);
    shift_headers(head->headers, section->headers, section->header_count, head->fields);
    head->header_count = section->header_count;
    head->seen[0] = section->seen[0];
    head->seen[1] = section->seen[1];
    head->authority = shifted(section->authority, head->fields);
    head->host = shifted(section->host, head->fields);
    head->port = section->port;
    head->keep_alive = section->keep_alive;
    head->repeated = section->repeated;
    head->section = section->id;
    head->length = head->fields + section->len;
    return true;
}

/* ---- keeping ---- */

static void keep(rd_section *section, const rd_head *head, rd_slice bytes) {
    const uint32_t back = 0u - head->fields;
    size_t size = head->header_count * sizeof(rd_header);
    rd_free(section->headers);
    rd_header *headers = rd_alloc(size + bytes.len);
    char *copy = (char *)headers + size;
    shift_headers(headers, head->headers, head->header_count, back);
    memcpy(copy, bytes.ptr, bytes.len);
    *section = (rd_section){
        .headers = headers,
        .bytes = copy,
        .len = (uint32_t)bytes.len,
        .seen = {head->seen[0], head->seen[1]},
        .authority = shifted(head->authority, back),
        .host = shifted(head->host, back),
        .port = head->port,
        .header_count = head->header_count,
        .keep_alive = head->keep_alive,
        .repeated = head->repeated,
    };
}

/* A name with '_' may be that of a secret in another spelling. */
static bool may_be_secret(const rd_head *head) {
    return rd_head_has_secret(head) || head->doubtful;
}

static bool came_before(rd_sections *sections, uint32_t hash) {
    uint32_t *seen = &sections->seen[hash % RD_SECTIONS_SEEN_SIZE];
    bool before = *seen == hash;
    *seen = hash;
    return before;
}

uint8_t rd_sections_learn(rd_sections *sections, rd_head *head, const char *buf) {
    rd_slice bytes = rd_slice_of(buf + head->fields, head->length - head->fields);
    if (!may_come_again(head) || may_be_secret(head)) return sections->last;
    if (bytes.len > BYTES_MAX || head->header_count > HEADERS_MAX) return sections->last;
    uint32_t hash = rd_hash_weak(bytes);
    uint8_t at = (uint8_t)(hash % RD_SECTIONS_SIZE);
    rd_section *section = &sections->entries[at];
    if (section->len != bytes.len || memcmp(section->bytes, bytes.ptr, bytes.len) != 0) {
        if (!came_before(sections, hash)) return sections->last;
        keep(section, head, bytes);
        section->id = ++sections->last_id;
    }
    head->section = section->id;
    sections->last = at;
    return at;
}

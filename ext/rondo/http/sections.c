/* SPDX-License-Identifier: MIT
 *
 * Compares, keeps and applies header sections; see sections.h. A section is kept only if it has the
 * same meaning after every request line of HTTP/1.1 with a path: it has no body and no other
 * authority than Host's. Whatever the value of its secret is, the other fields mean the same.
 */
#include "http/sections.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/apart.h"
#include "base/hash.h"
#include "http/field.h"

enum { BYTES_MAX = 4096, HEADERS_MAX = 128 };

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

static rd_span shifted_behind(uint32_t gap, rd_span span, uint32_t by) {
    return span.len > 0 && span.at > gap ? shifted(span, by) : span;
}

/* What stands before the gap has been compared. */
static bool is_around(const rd_section *section, const char *fields, uint32_t secret) {
    const uint32_t gap = section->gap;
    assert(memcmp(fields, section->bytes, gap) == 0);
    return memcmp(fields + gap + secret, section->bytes + gap, section->len - gap) == 0;
}

/* Makes room for the value of the secret. */
RD_APART static void open_gap(const rd_section *section, rd_head *head, uint32_t secret) {
    const unsigned before = section->before_gap;
    const uint32_t gap = head->fields + section->gap;
    rd_header *behind = head->headers + before;
    head->headers[before - 1].value_len = secret;
    shift_headers(behind, behind, head->header_count - before, secret);
    head->authority = shifted_behind(gap, head->authority, secret);
    head->host = shifted_behind(gap, head->host, secret);
    head->length += secret;
}

bool rd_section_apply(const rd_section *section, rd_head *head, const char *buf, size_t len,
                      uint32_t secret) {
    const char *fields = buf + head->fields;
    if (section->len == 0 || len - head->fields < (size_t)section->len + secret) return false;
    if (!may_come_again(head)) return false;
    if (section->gap == 0 ? memcmp(fields, section->bytes, section->len) != 0
                          : !is_around(section, fields, secret))
        return false;
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
    if (section->gap != 0) open_gap(section, head, secret);
    return true;
}

/* ---- keeping ---- */

/* What would be kept of a head. */
typedef struct rd_keepable {
    rd_slice bytes; /* without the secret */
    const rd_header *secret;
    uint32_t gap; /* as in rd_section */
} rd_keepable;

/* What open_gap() undoes. */
static void close_gap(rd_section *section, const rd_header *secret) {
    const uint32_t back = 0u - secret->value_len;
    const unsigned before = section->before_gap;
    rd_header *behind = section->headers + before;
    section->headers[before - 1].value_len = 0;
    shift_headers(behind, behind, section->header_count - before, back);
    section->authority = shifted_behind(section->gap, section->authority, back);
    section->host = shifted_behind(section->gap, section->host, back);
}

static void keep(rd_section *section, const rd_head *head, const rd_keepable *keepable) {
    const uint32_t back = 0u - head->fields;
    const rd_slice bytes = keepable->bytes;
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
        .gap = keepable->gap,
        .seen = {head->seen[0], head->seen[1]},
        .authority = shifted(head->authority, back),
        .host = shifted(head->host, back),
        .port = head->port,
        .header_count = head->header_count,
        .keep_alive = head->keep_alive,
        .repeated = head->repeated,
    };
    if (keepable->gap == 0) return;
    section->before_gap = (uint16_t)(keepable->secret + 1 - head->headers);
    close_gap(section, keepable->secret);
}

/* One secret may have a gap, but not one that is empty or has a blank behind it, and not a key that
 * never comes again. */
static bool may_have_gap(const rd_head *head, const char *buf, const rd_header *secret) {
    if (secret->value_len == 0 || secret->id == RD_HEADER_SEC_WEBSOCKET_KEY) return false;
    if (rd_field_is_blank((unsigned char)buf[secret->value_at + secret->value_len])) return false;
    for (const rd_header *other = secret + 1; other < head->headers + head->header_count; other++) {
        if (rd_header_id_is_secret(other->id)) return false;
    }
    return true;
}

/* Copies the section around the value of the secret. */
static void cut_out(rd_keepable *keepable, char *room) {
    const rd_slice bytes = keepable->bytes;
    const size_t gap = keepable->gap, after = gap + keepable->secret->value_len;
    memcpy(room, bytes.ptr, gap);
    memcpy(room + gap, bytes.ptr + after, bytes.len - after);
    keepable->bytes = rd_slice_of(room, gap + bytes.len - after);
}

/* A name with '_' may be that of a secret in another spelling. */
static bool may_be_kept(rd_keepable *keepable, const rd_head *head, const char *buf, char *room) {
    if (!may_come_again(head) || head->doubtful || head->header_count > HEADERS_MAX) return false;
    const rd_header *secret = rd_head_secret(head);
    const uint32_t len = head->length - head->fields;
    if (len - (secret == NULL ? 0 : secret->value_len) > BYTES_MAX) return false;
    *keepable = (rd_keepable){.bytes = rd_slice_of(buf + head->fields, len), .secret = secret};
    if (secret == NULL) return true;
    if (!may_have_gap(head, buf, secret)) return false;
    keepable->gap = secret->value_at - head->fields;
    cut_out(keepable, room);
    return true;
}

static bool came_before(rd_sections *sections, uint32_t hash) {
    uint32_t *seen = &sections->seen[hash % RD_SECTIONS_SEEN_SIZE];
    bool before = *seen == hash;
    *seen = hash;
    return before;
}

static bool is_kept(const rd_section *section, const rd_keepable *keepable) {
    return section->len == keepable->bytes.len && section->gap == keepable->gap &&
           memcmp(section->bytes, keepable->bytes.ptr, section->len) == 0;
}

uint8_t rd_sections_learn(rd_sections *sections, rd_head *head, const char *buf) {
    char room[BYTES_MAX];
    rd_keepable keepable;
    if (!may_be_kept(&keepable, head, buf, room)) return sections->last;
    uint32_t hash = rd_hash_weak(keepable.bytes);
    uint8_t at = (uint8_t)(hash % RD_SECTIONS_SIZE);
    rd_section *section = &sections->entries[at];
    if (!is_kept(section, &keepable)) {
        if (!came_before(sections, hash)) return sections->last;
        keep(section, head, &keepable);
        section->id = ++sections->last_id;
    }
    head->section = section->id;
    sections->last = at;
    return at;
}

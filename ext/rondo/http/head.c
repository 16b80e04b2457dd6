/* SPDX-License-Identifier: MIT
 *
 * Limits, the life of a request head and lookups in it; see head.h. One owner, no lock.
 */
#include "http/head.h"

#include <assert.h>

#include "base/alloc.h"

void rd_head_limits_init(rd_head_limits *limits, const rd_settings *settings) {
    *limits = (rd_head_limits){
        .head_bytes = (uint32_t)settings->max_head_bytes,
        .target_bytes = (uint32_t)settings->max_target_bytes,
        .header_name_bytes = (uint32_t)settings->max_header_name_bytes,
        .header_value_bytes = (uint32_t)settings->max_header_value_bytes,
        .header_count = (uint32_t)settings->max_header_count,
        .trailer_bytes = (uint32_t)settings->max_trailer_bytes,
        .chunk_line_bytes = (uint32_t)settings->max_chunk_line_bytes,
        .chunk_extension_bytes = (uint32_t)settings->max_chunk_extension_bytes,
        .lenient_line_feeds = settings->lenient_line_feeds != 0,
        .lenient_target_bytes = settings->lenient_target_bytes != 0,
        .lenient_duplicate_length = settings->lenient_duplicate_length != 0,
        .allow_underscore = settings->allow_underscore_headers != 0,
        .allow_connect = settings->allow_connect != 0,
    };
}

void rd_head_init(rd_head *head) {
    head->headers = head->first;
    head->header_capacity = RD_HEAD_INLINE_HEADERS;
    rd_head_reset(head);
}

/* Leaves the headers themselves as they are: they are most of the struct, and written before
 * read. */
void rd_head_reset(rd_head *head) {
    memset(head, 0, offsetof(rd_head, header_count));
    head->header_count = 0;
}

void rd_head_clear(rd_head *head) {
    if (head->headers != head->first) rd_free(head->headers);
    rd_head_init(head);
}

void rd_head_grow(rd_head *head) {
    size_t capacity = (size_t)head->header_capacity * 2;
    size_t used = head->header_count * sizeof(rd_header);

    assert(capacity <= UINT16_MAX);
    if (head->headers == head->first) {
        head->headers = rd_alloc(capacity * sizeof(rd_header));
        memcpy(head->headers, head->first, used);
    } else {
        head->headers = rd_realloc(head->headers, capacity * sizeof(rd_header));
    }
    head->header_capacity = (uint16_t)capacity;
}

const rd_header *rd_head_find(const rd_head *head, unsigned id) {
    if (id >= RD_HEADER_COUNT || !rd_head_has(head, id)) return NULL;
    for (unsigned i = 0; i < head->header_count; i++)
        if (head->headers[i].id == id) return &head->headers[i];
    return NULL;
}

#define BIT(id, word) ((id) / 64 == (word) ? UINT64_C(1) << (id) % 64 : 0)
#define SECRETS(word)                                                                              \
    (BIT(RD_HEADER_AUTHORIZATION, word) | BIT(RD_HEADER_COOKIE, word) |                            \
     BIT(RD_HEADER_PROXY_AUTHORIZATION, word) | BIT(RD_HEADER_X_API_KEY, word) |                   \
     BIT(RD_HEADER_X_CSRF_TOKEN, word) | BIT(RD_HEADER_SEC_WEBSOCKET_KEY, word))

static const uint64_t secrets[2] = {SECRETS(0), SECRETS(1)}; /* as in rd_head.seen */

bool rd_header_id_is_secret(unsigned id) {
    return (secrets[id / 64] >> id % 64) & 1;
}

const rd_header *rd_head_secret(const rd_head *head) {
    if (((head->seen[0] & secrets[0]) | (head->seen[1] & secrets[1])) == 0) return NULL;
    for (unsigned i = 0; i < head->header_count; i++)
        if (rd_header_id_is_secret(head->headers[i].id)) return &head->headers[i];
    return NULL;
}

uint8_t rd_method_id(const char *name, size_t len) {
    switch (len) {
    case 3:
        if (memcmp(name, "GET", 3) == 0) return RD_METHOD_GET;
        if (memcmp(name, "PUT", 3) == 0) return RD_METHOD_PUT;
        break;
    case 4:
        if (memcmp(name, "POST", 4) == 0) return RD_METHOD_POST;
        if (memcmp(name, "HEAD", 4) == 0) return RD_METHOD_HEAD;
        break;
    case 5:
        if (memcmp(name, "PATCH", 5) == 0) return RD_METHOD_PATCH;
        if (memcmp(name, "TRACE", 5) == 0) return RD_METHOD_TRACE;
        break;
    case 6:
        if (memcmp(name, "DELETE", 6) == 0) return RD_METHOD_DELETE;
        break;
    case 7:
        if (memcmp(name, "OPTIONS", 7) == 0) return RD_METHOD_OPTIONS;
        if (memcmp(name, "CONNECT", 7) == 0) return RD_METHOD_CONNECT;
        break;
    default:
        break;
    }
    return RD_METHOD_OTHER;
}

/* SPDX-License-Identifier: MIT
 *
 * Whether two parses understood the same, wherever they kept it.
 */
#ifndef SAME_HEAD_H
#define SAME_HEAD_H

#include <string.h>

#include "http/head.h"

static bool same_span(rd_span a, rd_span b) {
    return a.at == b.at && a.len == b.len;
}

static bool same_head(const rd_head *a, const rd_head *b) {
    return same_span(a->method, b->method) && same_span(a->target, b->target) &&
           same_span(a->path, b->path) && same_span(a->query, b->query) &&
           same_span(a->authority, b->authority) && same_span(a->host, b->host) &&
           a->content_length == b->content_length && a->start == b->start &&
           a->length == b->length && a->port == b->port && a->method_id == b->method_id &&
           a->version == b->version && a->form == b->form && a->framing == b->framing &&
           a->keep_alive == b->keep_alive && a->expect_continue == b->expect_continue &&
           a->repeated == b->repeated && memcmp(a->seen, b->seen, sizeof a->seen) == 0 &&
           a->header_count == b->header_count &&
           memcmp(a->headers, b->headers, a->header_count * sizeof(rd_header)) == 0;
}

#endif

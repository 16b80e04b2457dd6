/* SPDX-License-Identifier: MIT
 *
 * The HTTP/1.x request head (RFC 9112). Called by protocol/http1.c with all bytes a message has so
 * far; stops at any byte and goes on at that byte, so a head that comes byte by byte costs no more
 * than a whole one. What it answers depends on the bytes alone, never on how they were cut. The
 * meaning of the fields is http1_framing's. Holder of the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_PARSER_H
#define RD_PROTOCOL_HTTP1_PARSER_H

#include "base/error.h"
#include "http/sections.h"

typedef struct rd_http1_parser {
    const rd_section *expected; /* what the fields probably are, or NULL; saves parsing them */
    uint32_t at;                /* bytes before this one are dealt with */
    uint32_t token;             /* where the part being read begins */
    uint16_t field_count;       /* fields so far, dropped ones included */
    uint8_t state;
    uint8_t empty_lines;
    bool underscore; /* the name being read has one */
} rd_http1_parser;

void rd_http1_parser_init(rd_http1_parser *parser);

/*
 * `buf` is the message from its first byte: the bytes of earlier calls unchanged, though they may
 * have moved. `head` has been initialised or reset before the first call of a message and belongs
 * to the parser until it returns something other than 0.
 *
 * Returns > 0: the head is complete and took so many bytes (what follows is body or next request);
 * 0: more is needed; < 0: RD_ERR_*, and neither parser nor head are to be used again before they
 * are initialised and reset.
 */
int rd_http1_parse(rd_http1_parser *parser, rd_head *head, const rd_head_limits *limits,
                   const char *buf, size_t len);

/* True while nothing but empty lines has come: no request has begun, so no 408 is due. */
bool rd_http1_parser_is_idle(const rd_http1_parser *parser);

#endif

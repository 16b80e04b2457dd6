/* SPDX-License-Identifier: MIT
 *
 * The HTTP/1.x request head (RFC 9112). Called by protocol/http1.c with all bytes of a message so
 * far. It can stop at any byte and continues there, so a head that comes byte by byte costs no more
 * than a whole one. The result depends only on the bytes, never on how they were cut.
 * http1_framing.c handles the meaning of the fields. Under the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_PARSER_H
#define RD_PROTOCOL_HTTP1_PARSER_H

#include "base/error.h"
#include "http/sections.h"

typedef struct rd_http1_parser {
    const rd_section *expected; /* what the fields probably are, or NULL; saves parsing them */
    uint32_t at;                /* bytes before this one are done */
    uint32_t token;             /* where the part being read begins */
    uint16_t field_count;       /* fields so far, including dropped ones */
    uint8_t state;
    uint8_t empty_lines;
    bool underscore; /* the name being read has an underscore */
} rd_http1_parser;

void rd_http1_parser_init(rd_http1_parser *parser);

/*
 * `buf` is the message from its first byte; the bytes of earlier calls must be unchanged, but may
 * have moved. `head` must be initialised or reset before the first call for a message, and belongs
 * to the parser until this returns something other than 0.
 *
 * Returns > 0: the head is complete and took this many bytes (body or next request follow); 0: more
 * is needed; < 0: RD_ERR_*, and parser and head must not be used again before they are initialised
 * and reset.
 */
int rd_http1_parse(rd_http1_parser *parser, rd_head *head, const rd_head_limits *limits,
                   const char *buf, size_t len);

/* Whether nothing but empty lines was received: no request has begun, so no 408 is due. */
bool rd_http1_parser_is_idle(const rd_http1_parser *parser);

#endif

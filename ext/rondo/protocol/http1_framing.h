/* SPDX-License-Identifier: MIT
 *
 * What the fields of a complete HTTP/1.x head mean: Host, how the body is framed, whether the
 * connection stays open, expectations and upgrades (RFC 9112, sections 3.2, 6 and 9; RFC 9110,
 * sections 7.8 and 10.1.1). Called once for each head by http1_parser.c. Under the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_FRAMING_H
#define RD_PROTOCOL_HTTP1_FRAMING_H

#include "http/head.h"

/* Fills the second half of `head` from the request line and the headers. Returns 0 or an error. */
int rd_http1_framing_decide(rd_head *head, const rd_head_limits *limits, const char *buf);

#endif

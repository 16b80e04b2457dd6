/* SPDX-License-Identifier: MIT
 *
 * Which requests want an event stream, by their Accept fields, RFC 9110 section 12.5.1. Any thread.
 */
#ifndef RD_ENDPOINT_SSE_ACCEPT_H
#define RD_ENDPOINT_SSE_ACCEPT_H

#include "http/head.h"

/* Whether text/event-stream is on the list by name, with a weight above 0. */
bool rd_sse_is_accepted(const rd_head *head, const char *buf);

#endif

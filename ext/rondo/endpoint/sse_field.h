/* SPDX-License-Identifier: MIT
 *
 * Events as lines of text (WHATWG HTML, section 9.2, Server-sent events). CR, LF and CRLF all end a
 * line there: data is split at each of them, and a name or an id must not contain one, because what
 * follows would be a line of its own. Pure functions: the caller decides where the bytes go. Any
 * thread.
 */
#ifndef RD_ENDPOINT_SSE_FIELD_H
#define RD_ENDPOINT_SSE_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "endpoint/endpoint.h"

typedef struct rd_message rd_message;

typedef void rd_sse_put(void *to, const char *bytes, size_t len);

/* Passes the event to `put`, piece by piece. Every end of a line in the data becomes LF. */
void rd_sse_write(const rd_named_event *event, rd_sse_put *put, void *to);

/* The number of bytes that rd_sse_write() makes: up to seven times that of the data, if all its
 * lines are empty. */
size_t rd_sse_size(const rd_named_event *event);

/* Implements rd_encode: the message as an event with its id. Refuses a message that is not text. */
int rd_sse_encode(const rd_message *message, void *with, rd_buffer *out);

#endif

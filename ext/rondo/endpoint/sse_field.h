/* SPDX-License-Identifier: MIT
 *
 * Events as lines of text (WHATWG HTML, section 9.2, Server-sent events). CR, LF and CRLF all end a
 * line there: data is split at each of them, and a name or an id that has one would be somebody
 * else's lines. Pure: where the bytes go is the caller's business. Any thread.
 */
#ifndef RD_ENDPOINT_SSE_FIELD_H
#define RD_ENDPOINT_SSE_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "http/push.h"

typedef struct rd_message rd_message;

typedef void rd_sse_put(void *to, const char *bytes, size_t len);

/* Gives the event to `put`, piece by piece. Data arrives with LF for every end of a line. */
void rd_sse_write(const rd_named_event *event, rd_sse_put *put, void *to);

/* How many bytes rd_sse_write() gives: up to seven times those of the data, if it is empty lines.
 */
size_t rd_sse_size(const rd_named_event *event);

/* An rd_encode: the message as an event with its id. Refuses what is not text. */
int rd_sse_encode(const rd_message *message, void *with, rd_buffer *out);

#endif

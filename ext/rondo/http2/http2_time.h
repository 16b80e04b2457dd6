/* SPDX-License-Identifier: MIT
 *
 * What the time does to a connection of HTTP/2: a head that does not end, a client that has nothing
 * to ask, one that is not there any more, and an end in two steps (RFC 9113, section 6.8): the
 * first GOAWAY only asks for no more streams, and those that are on their way are served. The
 * answer to a PING behind it says that all of them have come. Then the second one says which was
 * the last. Under the loop lock.
 */
#ifndef RD_HTTP2_HTTP2_TIME_H
#define RD_HTTP2_HTTP2_TIME_H

#include "http2/http2_session.h"

/* Sets the deadline of the connection: for the head that has begun, for the next one, or for a
 * sign of life while streams are open. */
void rd_http2_expect(rd_http2 *http2);

/* Something has come from the client. */
void rd_http2_hear(rd_http2 *http2);

/* It has answered a PING. */
void rd_http2_take_pong(rd_http2 *http2, const uint8_t *payload);

/* Begins the end. Nothing if it has begun. */
void rd_http2_warn(rd_http2 *http2);

/* The deadline is over. */
void rd_http2_time_out(rd_http2 *http2);

#endif

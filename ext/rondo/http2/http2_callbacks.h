/* SPDX-License-Identifier: MIT
 *
 * The session of the library for a connection of HTTP/2; see http2_callbacks.c.
 */
#ifndef RD_HTTP2_HTTP2_CALLBACKS_H
#define RD_HTTP2_HTTP2_CALLBACKS_H

#include "http2/http2_session.h"

/* NULL: there is no memory. */
nghttp2_session *rd_http2_new_session(rd_http2 *http2);

/* The client has spent more than it may. */
void rd_http2_fail_for_flood(rd_http2 *http2);

#endif

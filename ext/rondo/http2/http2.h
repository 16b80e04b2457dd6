/* SPDX-License-Identifier: MIT
 *
 * The protocol HTTP/2 (RFC 9113); see http2_session.h. A build without libnghttp2 lacks it.
 */
#ifndef RD_HTTP2_HTTP2_H
#define RD_HTTP2_HTTP2_H

#include <stddef.h>

#include "transport/protocol.h"

#ifdef RD_WITHOUT_HTTP2

static inline const rd_protocol *rd_http2_protocol(void) {
    return NULL;
}

static inline const char *rd_http2_library(void) {
    return NULL;
}

#else

/* HTTP/2 as a protocol of connections; NULL in a build without it. */
const rd_protocol *rd_http2_protocol(void);

/* The version of the library, "1.52.0"; NULL in a build without it. */
const char *rd_http2_library(void);

#endif

#endif

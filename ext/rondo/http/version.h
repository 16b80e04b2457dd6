/* SPDX-License-Identifier: MIT
 *
 * The versions of HTTP that a request can have, and how they differ outside the parsers. A version
 * is a small number, like a method; its row says what it allows. A newer version is one more row at
 * the end.
 */
#ifndef RD_HTTP_VERSION_H
#define RD_HTTP_VERSION_H

#include <stdbool.h>

#include "base/slice.h"

/* X(name, text, keeps_alive, has_chunked, has_interim): the members of rd_http_version. */
#define RD_HTTP_VERSIONS(X)                                                                        \
    X(1_0, "HTTP/1.0", false, false, false)                                                        \
    X(1_1, "HTTP/1.1", true, true, true)                                                           \
    X(2, "HTTP/2", true, false, true)

enum {
#define RD_HTTP_VERSION_ROW(name, ...) RD_HTTP_##name,
    RD_HTTP_VERSIONS(RD_HTTP_VERSION_ROW)
#undef RD_HTTP_VERSION_ROW
        RD_HTTP_VERSION_COUNT
};

typedef struct rd_http_version {
    rd_slice text;    /* SERVER_PROTOCOL, and in the request log */
    bool keeps_alive; /* the connection stays open unless one side says that it ends */
    bool has_chunked; /* a body without a length is sent in chunks */
    bool has_interim; /* the client understands 1xx, RFC 9110 section 15.2 */
} rd_http_version;

/* Indexed by RD_HTTP_1_0, RD_HTTP_1_1, RD_HTTP_2. */
extern const rd_http_version rd_http_versions[RD_HTTP_VERSION_COUNT];

#endif

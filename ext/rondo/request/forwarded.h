/* SPDX-License-Identifier: MIT
 *
 * What trusted proxies report about the client, in X-Forwarded-* or in Forwarded (RFC 7239). A
 * setting chooses the family of fields. The other family is never read: a proxy passes on fields
 * that it does not know, so the client may have written them. Elements are read from the nearest
 * proxy outwards, so that nothing a client wrote before them counts. The caller has checked that
 * the peer itself is trusted. Any thread.
 */
#ifndef RD_REQUEST_FORWARDED_H
#define RD_REQUEST_FORWARDED_H

#include <stdbool.h>
#include <stdint.h>

#include "request/request.h"

enum { RD_FORWARDED_NO_SCHEME, RD_FORWARDED_HTTP, RD_FORWARDED_HTTPS };

/* The setting trusted_proxy_fields. */
enum { RD_FORWARDED_FIELDS_X, RD_FORWARDED_FIELDS_STANDARD };

typedef struct rd_forwarded {
    rd_address client;
    bool has_client;
    uint8_t scheme; /* RD_FORWARDED_* */
    uint16_t port;  /* of the server as the client sees it; 0: not reported */
} rd_forwarded;

/* `fields`: RD_FORWARDED_FIELDS_*, the family that all trusted proxies write. */
void rd_forwarded_read(rd_forwarded *said, const rd_request *request, unsigned fields,
                       const rd_network *trusted, size_t trusted_count);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What trusted proxies say of the client: Forwarded (RFC 7239) where present, else the
 * X-Forwarded-* fields. Read from the nearest proxy outwards, so that nothing a client wrote in
 * front of them counts. The caller has checked that the peer itself is trusted. Any thread.
 */
#ifndef RD_HTTP_FORWARDED_H
#define RD_HTTP_FORWARDED_H

#include <stdbool.h>
#include <stdint.h>

#include "http/request.h"

enum { RD_FORWARDED_NO_SCHEME, RD_FORWARDED_HTTP, RD_FORWARDED_HTTPS };

typedef struct rd_forwarded {
    rd_address client;
    bool has_client;
    uint8_t scheme; /* RD_FORWARDED_* */
    uint16_t port;  /* of the server as the client sees it; 0: nothing said */
} rd_forwarded;

void rd_forwarded_read(rd_forwarded *said, const rd_request *request, const rd_network *trusted,
                       size_t trusted_count);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The PROXY protocol header, versions 1 and 2, which a load balancer sends before the first byte of
 * a connection to name the real client. protocol/opening.c parses it once per connection, and only
 * if the peer is trusted to send it. Any thread.
 */
#ifndef RD_PROTOCOL_PROXY_HEADER_H
#define RD_PROTOCOL_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/error.h"

enum {
    RD_PROXY_V1_MAX = 107,          /* with CRLF, fixed by the protocol */
    RD_PROXY_V2_MAX = 16 + 4 * 1024 /* addresses and TLVs; more is refused */
};

typedef struct rd_proxy_header {
    /* False for LOCAL (health checks), UNKNOWN and unix sockets: the peer's own address counts. */
    bool has_addresses;
    struct sockaddr_storage source;
    struct sockaddr_storage destination;
} rd_proxy_header;

/*
 * `buf` is everything since the connection began. Returns > 0: the length of the header; 0: more is
 * needed (never above the maxima); < 0: error, there is no header. A connection that begins
 * otherwise is also an error: a peer that is trusted to send a header must send one.
 */
int rd_proxy_header_parse(const char *buf, size_t len, rd_proxy_header *out);

/* Whether the connection begins with something else than a header. */
bool rd_proxy_header_is_absent(const char *buf, size_t len);

#endif

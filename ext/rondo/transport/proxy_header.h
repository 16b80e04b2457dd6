/* SPDX-License-Identifier: MIT
 *
 * The PROXY protocol header, versions 1 and 2, that a load balancer puts before the first byte of
 * a connection to name the real client. protocol/opening.c asks for it once per connection, and
 * only where the peer is trusted to say such things. Any thread.
 */
#ifndef RD_TRANSPORT_PROXY_HEADER_H
#define RD_TRANSPORT_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/error.h"

enum {
    RD_PROXY_V1_MAX = 107,          /* with CRLF, fixed by the protocol */
    RD_PROXY_V2_MAX = 16 + 4 * 1024 /* addresses and TLVs; more is refused */
};

typedef struct rd_proxy_header {
    /* False for LOCAL (health checks), UNKNOWN and unix sockets: the peer's own address stands. */
    bool has_addresses;
    struct sockaddr_storage source;
    struct sockaddr_storage destination;
} rd_proxy_header;

/*
 * `buf` is everything since the connection began. Returns > 0: so many bytes were the header; 0:
 * more is needed (never above the maxima); < 0: error, there is no header. A connection that begins
 * otherwise is an error too: what is trusted to send one must send one.
 */
int rd_proxy_header_parse(const char *buf, size_t len, rd_proxy_header *out);

#endif

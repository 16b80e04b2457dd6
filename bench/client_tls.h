/* SPDX-License-Identifier: MIT
 *
 * TLS for the clients: receives and sends like recv(2) and send(2). All connections offer the one
 * cipher of TLS 1.3, so that all servers encrypt alike. Certificates are not checked. Belongs to
 * client.c, client_bystander.c, http2_client.c and restart_client.c. */
#ifndef BENCH_CLIENT_TLS_H
#define BENCH_CLIENT_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ssl_st rd_tls_client;

typedef enum rd_tls_mode {
    RD_TLS_OFF,
    RD_TLS_FULL,   /* each connection shakes hands anew */
    RD_TLS_RESUMED /* each connection but the first resumes the session of that one */
} rd_tls_mode;

/* Reads the mode, "full" or "resumed". */
rd_tls_mode rd_tls_client_mode(const char *name);

/* Begins TLS on a connected or connecting socket. */
rd_tls_client *rd_tls_client_begin(int fd, rd_tls_mode mode);

/* It says that it speaks HTTP/2, and nothing else (ALPN). */
void rd_tls_client_offer_http2(rd_tls_client *tls);

/* Goes on with the handshake, which the first receive or send does, too. Returns 1 when it is over,
 * 0 while it waits for the peer, -1 with errno. */
int rd_tls_client_shake_hands(rd_tls_client *tls);

/* Return what recv(2) and send(2) return. `flags`: MSG_DONTWAIT, or 0 for a socket that blocks.
 * EAGAIN: the socket is empty or full. EINPROGRESS of send: the handshake waits for the peer, so
 * call it again when something came. */
ssize_t rd_tls_client_receive(rd_tls_client *tls, void *bytes, size_t len, int flags);
ssize_t rd_tls_client_send(rd_tls_client *tls, const void *bytes, size_t len);

/* Frees it; does not close the socket. */
void rd_tls_client_end(rd_tls_client *tls);

/* How many handshakes resumed a session. */
uint64_t rd_tls_client_resumed(void);

#endif

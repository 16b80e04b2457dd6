/* SPDX-License-Identifier: MIT
 *
 * A peer or local address in 20 bytes (a sockaddr_storage has 128, and every connection keeps
 * one), with its text and its membership in networks. Any thread.
 */
#ifndef RD_TRANSPORT_ADDRESS_H
#define RD_TRANSPORT_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { RD_ADDRESS_NONE = 0, RD_ADDRESS_V4 = 4, RD_ADDRESS_V6 = 6, RD_ADDRESS_UNIX = 1 };

#define RD_ADDRESS_TEXT_MAX 48

typedef struct rd_address {
    uint8_t kind;
    uint8_t bytes[16]; /* network order; a V4-mapped V6 address becomes V4 */
    uint16_t port;     /* host order */
} rd_address;

/* A network for trust lists: an address and how many of its leading bits count. */
typedef struct rd_network {
    rd_address address;
    uint8_t bits;
} rd_network;

void rd_address_from_sockaddr(rd_address *address, const struct sockaddr *from);

/* Writes the address without its port ("127.0.0.1", "::1", "127.0.0.1" for unix). Returns its
 * length. */
size_t rd_address_text(const rd_address *address, char text[RD_ADDRESS_TEXT_MAX]);

/* Parses "1.2.3.4", "::1", "[::1]". False: it is neither. The port stays 0. */
bool rd_address_parse(rd_address *address, const char *text, size_t len);

/* Parses "10.0.0.0/8", "::1", "unix". False: it is none of them. */
bool rd_network_parse(rd_network *network, const char *text, size_t len);

bool rd_network_contains(const rd_network *network, const rd_address *address);

/* Whether any of the networks contains the address. */
bool rd_networks_contain(const rd_network *networks, size_t count, const rd_address *address);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Compact addresses and networks; see address.h.
 */
#include "transport/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

static void from_v6(rd_address *address, const struct sockaddr_in6 *from) {
    address->port = ntohs(from->sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&from->sin6_addr)) {
        address->kind = RD_ADDRESS_V4;
        memcpy(address->bytes, from->sin6_addr.s6_addr + 12, 4);
    } else {
        address->kind = RD_ADDRESS_V6;
        memcpy(address->bytes, from->sin6_addr.s6_addr, 16);
    }
}

/* Copies out of `from` by memcpy: it was written as another type, so a compiler that sees both
 * accesses may assume that they do not alias. */
void rd_address_from_sockaddr(rd_address *address, const struct sockaddr *from) {
    sa_family_t family;
    memcpy(&family, (const char *)from + offsetof(struct sockaddr, sa_family), sizeof(family));
    *address = (rd_address){0};
    if (family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof(in));
        address->kind = RD_ADDRESS_V4;
        address->port = ntohs(in.sin_port);
        memcpy(address->bytes, &in.sin_addr, 4);
    } else if (family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, from, sizeof(in));
        from_v6(address, &in);
    } else if (family == AF_UNIX) {
        address->kind = RD_ADDRESS_UNIX;
    }
}

size_t rd_address_text(const rd_address *address, char text[RD_ADDRESS_TEXT_MAX]) {
    int family = address->kind == RD_ADDRESS_V6 ? AF_INET6 : AF_INET;
    if (address->kind == RD_ADDRESS_V4 || address->kind == RD_ADDRESS_V6) {
        inet_ntop(family, address->bytes, text, RD_ADDRESS_TEXT_MAX);
    } else {
        strcpy(text, "127.0.0.1"); /* what applications expect of a local peer */
    }
    return strlen(text);
}

bool rd_address_parse(rd_address *address, const char *text, size_t len) {
    char copy[RD_ADDRESS_TEXT_MAX];
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof(copy)) return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (strlen(copy) != len) return false;

    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, copy, &v4.sin_addr) == 1) {
        rd_address_from_sockaddr(address, (const struct sockaddr *)&v4);
    } else if (inet_pton(AF_INET6, copy, &v6.sin6_addr) == 1) {
        rd_address_from_sockaddr(address, (const struct sockaddr *)&v6);
    } else {
        return false;
    }
    return true;
}

static bool parse_bits(uint8_t *bits, const char *text, size_t len, unsigned most) {
    unsigned value = 0;
    if (len == 0 || len > 3) return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    if (value > most) return false;
    *bits = (uint8_t)value;
    return true;
}

bool rd_network_parse(rd_network *network, const char *text, size_t len) {
    if (len == 4 && memcmp(text, "unix", 4) == 0) {
        *network = (rd_network){.address.kind = RD_ADDRESS_UNIX};
        return true;
    }
    const char *slash = memchr(text, '/', len);
    size_t address_len = slash ? (size_t)(slash - text) : len;
    if (!rd_address_parse(&network->address, text, address_len)) return false;
    unsigned most = network->address.kind == RD_ADDRESS_V4 ? 32 : 128;
    network->bits = (uint8_t)most;
    return slash == NULL || parse_bits(&network->bits, slash + 1, len - address_len - 1, most);
}

bool rd_network_contains(const rd_network *network, const rd_address *address) {
    if (network->address.kind != address->kind) return false;
    unsigned whole = network->bits / 8u, rest = network->bits % 8u;
    if (memcmp(network->address.bytes, address->bytes, whole) != 0) return false;
    if (rest == 0) return true;
    unsigned mask = (0xffu << (8 - rest)) & 0xffu;
    return ((network->address.bytes[whole] ^ address->bytes[whole]) & mask) == 0;
}

bool rd_networks_contain(const rd_network *networks, size_t count, const rd_address *address) {
    for (size_t i = 0; i < count; i++) {
        if (rd_network_contains(&networks[i], address)) return true;
    }
    return false;
}

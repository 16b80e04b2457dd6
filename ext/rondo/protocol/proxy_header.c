/* SPDX-License-Identifier: MIT
 *
 * The PROXY protocol; see proxy_header.h. The header is short, so it is parsed from the beginning
 * whenever more of it has come. Every result also holds for all longer inputs. Any thread.
 */
#include "protocol/proxy_header.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

static const char signature[12] = "\r\n\r\n\0\r\nQUIT\n";

enum { V2_FIXED = 16, V2_LOCAL = 0x20, V2_PROXY = 0x21, V2_TCP4 = 0x11, V2_TCP6 = 0x21 };

static void set_address4(struct sockaddr_storage *out, const void *address, uint16_t port) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&in.sin_addr, address, 4);
    memcpy(out, &in, sizeof(in));
}

static void set_address6(struct sockaddr_storage *out, const void *address, uint16_t port) {
    struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&in.sin6_addr, address, 16);
    memcpy(out, &in, sizeof(in));
}

/* The part of the line up to the next space, or to its end. */
static rd_slice next_part(rd_slice *line) {
    const char *space = memchr(line->ptr, ' ', line->len);
    const size_t len = space ? (size_t)(space - line->ptr) : line->len;
    const rd_slice part = {line->ptr, len};
    const size_t skip = len + (space != NULL);

    *line = (rd_slice){line->ptr + skip, line->len - skip};
    return part;
}

static bool read_port(rd_slice text, uint16_t *port) {
    uint32_t value = 0;

    if (text.len == 0 || text.len > 5 || (text.len > 1 && text.ptr[0] == '0')) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return false;
        value = value * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    *port = (uint16_t)value;
    return value <= UINT16_MAX;
}

static bool read_address(rd_slice text, int family, void *address) {
    char copy[INET6_ADDRSTRLEN];

    if (text.len == 0 || text.len >= sizeof copy || memchr(text.ptr, 0, text.len)) return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return inet_pton(family, copy, address) == 1;
}

/* "source destination source-port destination-port" */
static bool read_addresses(rd_slice line, int family, rd_proxy_header *out) {
    unsigned char source[16], destination[16];
    uint16_t source_port, destination_port;

    if (!read_address(next_part(&line), family, source)) return false;
    if (!read_address(next_part(&line), family, destination)) return false;
    if (!read_port(next_part(&line), &source_port)) return false;
    if (!read_port(line, &destination_port)) return false; /* it must be the rest of the line */
    if (family == AF_INET) {
        set_address4(&out->source, source, source_port);
        set_address4(&out->destination, destination, destination_port);
    } else {
        set_address6(&out->source, source, source_port);
        set_address6(&out->destination, destination, destination_port);
    }
    out->has_addresses = true;
    return true;
}

static bool read_line(rd_slice line, rd_proxy_header *out) {
    const rd_slice kind = next_part(&line);

    if (rd_slice_equal(kind, RD_SLICE("UNKNOWN"))) return true; /* whatever follows is ignored */
    if (rd_slice_equal(kind, RD_SLICE("TCP4"))) return read_addresses(line, AF_INET, out);
    if (rd_slice_equal(kind, RD_SLICE("TCP6"))) return read_addresses(line, AF_INET6, out);
    return false;
}

static int parse_v1(const char *buf, size_t len, rd_proxy_header *out) {
    static const char prefix[6] = "PROXY ";
    const size_t most = len < RD_PROXY_V1_MAX ? len : RD_PROXY_V1_MAX;
    const char *cr;
    size_t end;

    if (memcmp(buf, prefix, most < sizeof prefix ? most : sizeof prefix) != 0)
        return RD_ERR_PROXY_INVALID;
    cr = memchr(buf, '\r', most);
    if (memchr(buf, '\n', cr ? (size_t)(cr - buf) : most)) return RD_ERR_PROXY_INVALID;
    if (!cr) return most == RD_PROXY_V1_MAX ? RD_ERR_PROXY_TOO_LONG : 0;
    end = (size_t)(cr - buf);
    if (end + 2 > RD_PROXY_V1_MAX) return RD_ERR_PROXY_TOO_LONG;
    if (end + 1 == most) return 0;
    if (cr[1] != '\n') return RD_ERR_PROXY_INVALID;
    if (!read_line((rd_slice){buf + sizeof prefix, end - sizeof prefix}, out))
        return RD_ERR_PROXY_INVALID;
    return (int)end + 2;
}

static uint16_t be16(const unsigned char *bytes) {
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

/* The addresses of v2. TLVs after them are skipped. */
static bool read_block(const unsigned char *block, size_t len, int family, rd_proxy_header *out) {
    const size_t size = family == V2_TCP4 ? 4 : 16;

    if (family != V2_TCP4 && family != V2_TCP6) return true; /* UNSPEC, datagrams, unix sockets */
    if (len < 2 * size + 4) return false;
    if (family == V2_TCP4) {
        set_address4(&out->source, block, be16(block + 8));
        set_address4(&out->destination, block + 4, be16(block + 10));
    } else {
        set_address6(&out->source, block, be16(block + 32));
        set_address6(&out->destination, block + 16, be16(block + 34));
    }
    out->has_addresses = true;
    return true;
}

static int parse_v2(const char *buf, size_t len, rd_proxy_header *out) {
    const unsigned char *bytes = (const unsigned char *)buf;
    size_t block;

    if (memcmp(buf, signature, len < sizeof signature ? len : sizeof signature) != 0)
        return RD_ERR_PROXY_INVALID;
    if (len < 13) return 0;
    if (bytes[12] != V2_LOCAL && bytes[12] != V2_PROXY) return RD_ERR_PROXY_VERSION;
    if (len < V2_FIXED) return 0;
    block = be16(bytes + 14);
    if (V2_FIXED + block > RD_PROXY_V2_MAX) return RD_ERR_PROXY_TOO_LONG;
    if (len < V2_FIXED + block) return 0;
    if (bytes[12] == V2_PROXY && !read_block(bytes + V2_FIXED, block, bytes[13], out))
        return RD_ERR_PROXY_INVALID;
    return (int)(V2_FIXED + block);
}

int rd_proxy_header_parse(const char *buf, size_t len, rd_proxy_header *out) {
    memset(out, 0, sizeof *out);
    if (len == 0) return 0;
    return buf[0] == signature[0] ? parse_v2(buf, len, out) : parse_v1(buf, len, out);
}

static bool begins_as(const char *buf, size_t len, const char *with, size_t with_len) {
    return memcmp(buf, with, len < with_len ? len : with_len) == 0;
}

bool rd_proxy_header_is_absent(const char *buf, size_t len) {
    return !begins_as(buf, len, "PROXY ", 6) && !begins_as(buf, len, signature, sizeof signature);
}

/* SPDX-License-Identifier: MIT
 *
 * Request targets and authorities; see target.h. Any thread.
 */
#include "http/target.h"

#include <arpa/inet.h>

#include "base/error.h"
#include "base/hex.h"

/* RFC 3986: unreserved and sub-delims except the comma, which would let two hosts pass as one. */
static const uint8_t host_bytes[256] = {
    ['!'] = 1, ['$'] = 1, ['&'] = 1, ['\''] = 1, ['('] = 1, [')'] = 1, ['*'] = 1, ['+'] = 1,
    ['-'] = 1, ['.'] = 1, [';'] = 1, ['='] = 1,  ['_'] = 1, ['~'] = 1, ['0'] = 1, ['1'] = 1,
    ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1,  ['6'] = 1, ['7'] = 1, ['8'] = 1, ['9'] = 1,
    ['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1,  ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1,
    ['I'] = 1, ['J'] = 1, ['K'] = 1, ['L'] = 1,  ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1,
    ['Q'] = 1, ['R'] = 1, ['S'] = 1, ['T'] = 1,  ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1,
    ['Y'] = 1, ['Z'] = 1, ['a'] = 1, ['b'] = 1,  ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1,
    ['g'] = 1, ['h'] = 1, ['i'] = 1, ['j'] = 1,  ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1,
    ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1,  ['s'] = 1, ['t'] = 1, ['u'] = 1, ['v'] = 1,
    ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1,
};

/* Length of the name or IPv4 address at `ptr`. */
static size_t name_len(const char *ptr, size_t len) {
    size_t i = 0;

    while (i < len) {
        if (host_bytes[(unsigned char)ptr[i]]) {
            i++;
        } else if (ptr[i] == '%' && rd_hex_escape(ptr + i, len - i) >= 0) {
            i += 3;
        } else {
            break;
        }
    }
    return i;
}

/* Length of the [IPv6 address] at `ptr`; 0 if there is none. */
static size_t literal_len(const char *ptr, size_t len) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    const char *end = memchr(ptr, ']', len);
    size_t inner = end ? (size_t)(end - ptr) - 1 : 0;

    if (inner == 0 || inner >= sizeof text || memchr(ptr, 0, len)) return 0;
    memcpy(text, ptr + 1, inner);
    text[inner] = 0;
    return inet_pton(AF_INET6, text, &address) == 1 ? inner + 2 : 0;
}

/* RFC 3986 allows an empty port. */
static int port_parse(const char *ptr, size_t len, uint16_t *port) {
    uint32_t value = 0;

    if (len > 5) return RD_ERR_HOST_INVALID;
    for (size_t i = 0; i < len; i++) {
        if (ptr[i] < '0' || ptr[i] > '9') return RD_ERR_HOST_INVALID;
        value = value * 10 + (uint32_t)(ptr[i] - '0');
    }
    if (value > 65535) return RD_ERR_HOST_INVALID;
    *port = (uint16_t)value;
    return 0;
}

int rd_authority_parse(const char *ptr, size_t len, uint32_t *host_len, uint16_t *port) {
    size_t host;

    if (len == 0) return RD_ERR_HOST_INVALID;
    host = ptr[0] == '[' ? literal_len(ptr, len) : name_len(ptr, len);
    if (host == 0) return RD_ERR_HOST_INVALID;
    *host_len = (uint32_t)host;
    *port = 0;
    if (host == len) return 0;
    if (ptr[host] != ':') return RD_ERR_HOST_INVALID;
    return port_parse(ptr + host + 1, len - host - 1, port);
}

static void split_query(rd_head *head, const char *buf, rd_span rest) {
    const char *mark = memchr(buf + rest.at, '?', rest.len);
    uint32_t path_len = mark ? (uint32_t)(mark - (buf + rest.at)) : rest.len;

    head->path = (rd_span){rest.at, path_len};
    head->query =
        (rd_span){rest.at + path_len + (mark != NULL), rest.len - path_len - (mark != NULL)};
}

static int set_authority(rd_head *head, const char *buf, rd_span authority) {
    uint32_t host_len;

    if (rd_authority_parse(buf + authority.at, authority.len, &host_len, &head->port) < 0)
        return RD_ERR_TARGET_AUTHORITY;
    head->authority = authority;
    head->host = (rd_span){authority.at, host_len};
    return 0;
}

/* Length of "http://" or "https://" at the start of the target, whatever its case; else 0. */
static uint32_t scheme_len(const char *ptr, size_t len) {
    static const char https[] = "https";
    uint32_t i = 0;

    while (i < 5 && i < len && (ptr[i] | 0x20) == https[i]) i++;
    return i >= 4 && len - i >= 3 && memcmp(ptr + i, "://", 3) == 0 ? i + 3 : 0;
}

static int absolute_parse(rd_head *head, const char *buf) {
    const char *ptr = buf + head->target.at;
    uint32_t len = head->target.len;
    uint32_t scheme = scheme_len(ptr, len);
    uint32_t end = scheme;
    int rc;

    if (scheme == 0) return RD_ERR_TARGET_SCHEME;
    while (end < len && ptr[end] != '/' && ptr[end] != '?') end++;
    rc = set_authority(head, buf, (rd_span){head->target.at + scheme, end - scheme});
    if (rc < 0) return rc;
    head->form = RD_TARGET_ABSOLUTE;
    split_query(head, buf, (rd_span){head->target.at + end, len - end});
    return 0;
}

/* CONNECT names both host and port (RFC 9110, section 9.3.6). */
static int connect_parse(rd_head *head, const char *buf, bool allowed) {
    int rc;

    if (!allowed) return RD_ERR_METHOD_CONNECT;
    rc = set_authority(head, buf, head->target);
    if (rc < 0) return rc;
    if (head->port == 0) return RD_ERR_TARGET_AUTHORITY;
    head->form = RD_TARGET_AUTHORITY;
    head->path = (rd_span){head->target.at + head->target.len, 0};
    head->query = head->path;
    return 0;
}

static bool has_scheme(const char *ptr, size_t len) {
    for (size_t i = 0; i + 2 < len && ptr[i] != '/'; i++)
        if (memcmp(ptr + i, "://", 3) == 0) return true;
    return false;
}

int rd_target_parse(rd_head *head, const char *buf, bool allow_connect) {
    const char *ptr = buf + head->target.at;

    if (head->method_id == RD_METHOD_CONNECT) return connect_parse(head, buf, allow_connect);
    if (ptr[0] == '/') {
        head->form = RD_TARGET_ORIGIN;
        split_query(head, buf, head->target);
        return 0;
    }
    if (ptr[0] == '*' && head->target.len == 1) {
        if (head->method_id != RD_METHOD_OPTIONS) return RD_ERR_TARGET_ASTERISK;
        head->form = RD_TARGET_ASTERISK;
        head->path = head->target;
        head->query = (rd_span){head->target.at + 1, 0};
        return 0;
    }
    return has_scheme(ptr, head->target.len) ? absolute_parse(head, buf) : RD_ERR_TARGET_FORM;
}

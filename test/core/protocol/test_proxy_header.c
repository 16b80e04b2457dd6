/* SPDX-License-Identifier: MIT
 *
 * protocol/proxy_header: both versions, with every shorter piece of each before it.
 */
#include "check.h"
#include "error_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "protocol/proxy_header.h"

typedef struct row {
    const char *text;
    size_t len;
    int rc;           /* 0: accepted */
    const char *pair; /* "source port destination port", NULL for no addresses */
} row;

#define OK(text, pair)                                                                             \
    { (text), sizeof(text) - 1, 0, (pair) }
#define BAD(text, error)                                                                           \
    { (text), sizeof(text) - 1, RD_ERR_##error, NULL }
#define V2 "\r\n\r\n\0\r\nQUIT\n"

static const row rows[] = {
    OK("PROXY TCP4 1.2.3.4 5.6.7.8 1000 80\r\n", "1.2.3.4 1000 5.6.7.8 80"),
    OK("PROXY TCP4 1.2.3.4 5.6.7.8 0 65535\r\n", "1.2.3.4 0 5.6.7.8 65535"),
    OK("PROXY TCP6 ::1 2001:db8::2 1000 80\r\n", "::1 1000 2001:db8::2 80"),
    OK("PROXY UNKNOWN\r\n", NULL),
    OK("PROXY UNKNOWN ::1 whatever it says\r\n", NULL),
    OK("PROXY UNKNOWN ffff:f...f:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535 "
       "......................x\r\n",
       NULL),
    BAD("PROXY UNKNOWN ffff:f...f:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535 "
        "......................xy\r\n",
        PROXY_TOO_LONG),
    BAD("PROXY UNKNOWN ffff:f...f:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535 "
        "............................",
        PROXY_TOO_LONG),
    BAD("GET / HTTP/1.1\r\n", PROXY_INVALID),
    BAD("PROXX", PROXY_INVALID),
    BAD("PROXY\r\n", PROXY_INVALID),
    BAD("PROXY \r\n", PROXY_INVALID),
    BAD("PROXY TCP5 1.2.3.4 5.6.7.8 1000 80\r\n", PROXY_INVALID),
    BAD("proxy TCP4 1.2.3.4 5.6.7.8 1000 80\r\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1000 80\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1000 80\rX", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1000\r\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1000 80 \r\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1000 80 1\r\n", PROXY_INVALID),
    BAD("PROXY TCP4  1.2.3.4 5.6.7.8 1000 80\r\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1000 65536\r\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1000 080\r\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 +100 80\r\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.256 5.6.7.8 1000 80\r\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3 5.6.7.8 1000 80\r\n", PROXY_INVALID),
    BAD("PROXY TCP4 ::1 ::2 1000 80\r\n", PROXY_INVALID),
    BAD("PROXY TCP6 1.2.3.4 5.6.7.8 1000 80\r\n", PROXY_INVALID),
    BAD("PROXY TCP4 1.2.3.4\0 5.6.7.8 1000 80\r\n", PROXY_INVALID),
    OK(V2 "\x21\x11\x00\x0c"
          "\1\2\3\4\5\6\7\10\x03\xe8\x00\x50",
       "1.2.3.4 1000 5.6.7.8 80"),
    OK(V2 "\x21\x11\x00\x10"
          "\1\2\3\4\5\6\7\10\x03\xe8\x00\x50"
          "\x04\x00\x01x",
       "1.2.3.4 1000 5.6.7.8 80"),
    OK(V2 "\x21\x21\x00\x24"
          "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
          "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2"
          "\x03\xe8\x00\x50",
       "::1 1000 ::2 80"),
    OK(V2 "\x20\x00\x00\x00", NULL),
    OK(V2 "\x20\x11\x00\x0c"
          "\1\2\3\4\5\6\7\10\x03\xe8\x00\x50",
       NULL),
    OK(V2 "\x21\x00\x00\x00", NULL),
    OK(V2 "\x21\x31\x00\x02xx", NULL),
    BAD(V2 "\x21\x11\x00\x0b"
           "\1\2\3\4\5\6\7\10\x03\xe8\x00",
        PROXY_INVALID),
    BAD(V2 "\x21\x21\x00\x0c"
           "\1\2\3\4\5\6\7\10\x03\xe8\x00\x50",
        PROXY_INVALID),
    BAD(V2 "\x11\x11\x00\x00", PROXY_VERSION),
    BAD(V2 "\x22\x11\x00\x00", PROXY_VERSION),
    BAD(V2 "\x21\x11\x10\x01", PROXY_TOO_LONG),
    BAD("\r\n\r\n\0\r\nQUIX\n", PROXY_INVALID),
    BAD("\r\nGET / HTTP/1.1\r\n", PROXY_INVALID),
};

static int parse_copy(const char *text, size_t len, rd_proxy_header *out) {
    char *copy = malloc(len ? len : 1);
    int rc;

    memcpy(copy, text, len);
    rc = rd_proxy_header_parse(copy, len, out);
    free(copy);
    return rc;
}

static void print_address(const struct sockaddr_storage *address, char *text, size_t size) {
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;

    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;

        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        port = ntohs(in->sin_port);
    } else if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)address;

        inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
        port = ntohs(in->sin6_port);
    }
    snprintf(text, size, "%s %u", host, port);
}

static void check_pair(const rd_proxy_header *header, const char *pair) {
    char source[64], destination[64], both[130];

    CHECK_INT(header->has_addresses, pair != NULL);
    if (!pair) return;
    print_address(&header->source, source, sizeof source);
    print_address(&header->destination, destination, sizeof destination);
    snprintf(both, sizeof both, "%s %s", source, destination);
    CHECK_STR(both, pair);
}

static void check_row(const row *row) {
    const int expected = row->rc ? row->rc : (int)row->len;
    rd_proxy_header header;
    char longer[300];
    int rc;

    for (size_t i = 0; i < row->len; i++) {
        rc = parse_copy(row->text, i, &header);
        CHECK_SAYS(rc == 0 || (row->rc && rc == row->rc), "%d at %zu of %s", rc, i, row->text);
    }
    rc = parse_copy(row->text, row->len, &header);
    CHECK_SAYS(rc == expected, "%d %s: %s", rc, error_name(rc), row->text);
    if (rc > 0) check_pair(&header, row->pair);

    memcpy(longer, row->text, row->len);
    memcpy(longer + row->len, "GET /\r\n", 7);
    CHECK_INT(parse_copy(longer, row->len + 7, &header), expected);
}

int main(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
    return check_summary();
}

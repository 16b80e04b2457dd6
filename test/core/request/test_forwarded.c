/* SPDX-License-Identifier: MIT
 *
 * What proxies say of a client, as a table for each family of fields: only what listed proxies
 * added counts, from the nearest outwards; nonsense ends the walk. Each row is tried once more
 * between fields of the other family, which change nothing.
 */
#include "check.h"
#include "default_limits.h"
#include "request/forwarded.h"
#include "protocol/http1_parser.h"

typedef struct row {
    const char *fields;
    const char *client; /* NULL: unknown */
    unsigned scheme, port;
} row;

static const row x_rows[] = {
    {"", NULL, RD_FORWARDED_NO_SCHEME, 0},
    {"X-Forwarded-For: 203.0.113.9\r\n", "203.0.113.9", RD_FORWARDED_NO_SCHEME, 0},
    {"X-Forwarded-For: 6.6.6.6, 203.0.113.9, 10.0.0.2\r\n", "203.0.113.9", 0, 0},
    {"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 203.0.113.9\r\n", "203.0.113.9", 0, 0},
    {"X-Forwarded-For: 203.0.113.9:5555\r\n", "203.0.113.9", 0, 0},
    {"X-Forwarded-For: [2001:db8::1]:443\r\n", "2001:db8::1", 0, 0},
    {"X-Forwarded-For: unknown\r\n", NULL, 0, 0},
    {"X-Forwarded-For: 6.6.6.6, nonsense, 10.0.0.3\r\n", "10.0.0.3", 0, 0},
    {"X-Forwarded-Proto: https\r\n", NULL, RD_FORWARDED_HTTPS, 0},
    {"X-Forwarded-Proto: http, HTTPS\r\nX-Forwarded-Port: 8443\r\n", NULL, RD_FORWARDED_HTTPS,
     8443},
    {"X-Forwarded-Proto: gopher\r\nX-Forwarded-Port: 99999\r\n", NULL, 0, 0},
    /* nodes */
    {"X-Forwarded-For: \"203.0.113.9\"\r\n", "203.0.113.9", 0, 0},
    {"X-Forwarded-For: [2001:db8::1]\r\n", "2001:db8::1", 0, 0},
    {"X-Forwarded-For: 2001:db8::1\r\n", "2001:db8::1", 0, 0},
    {"X-Forwarded-For: 2001:db8::1:99999\r\n", NULL, 0, 0}, /* a port needs brackets */
    {"X-Forwarded-For: [2001:db8::1\r\n", NULL, 0, 0},
    {"X-Forwarded-For: :80\r\n", NULL, 0, 0},
    {"X-Forwarded-For: 203.0.113.9.1\r\n", NULL, 0, 0},
    {"X-Forwarded-For: \"\r\n", NULL, 0, 0},
    {"X-Forwarded-For: \"\"\r\n", NULL, 0, 0},
    {"X-Forwarded-For: 203.0.113.9, ::ffff:10.0.0.2\r\n", "203.0.113.9", 0, 0},
    /* values that no setting trusts */
    {"X-Real-IP: 6.6.6.6\r\nX-Forwarded-Scheme: https\r\nX-Forwarded-Ssl: on\r\n", NULL, 0, 0},
    {"X-Forwarded-Host: evil.example:8443\r\nX-Forwarded-Server: evil.example\r\n", NULL, 0, 0},
    /* lists (RFC 9110 section 5.6.1: empty elements are ignored) */
    {"X-Forwarded-For: 203.0.113.9,\t10.0.0.2 , \r\n", "203.0.113.9", 0, 0},
    {"X-Forwarded-For: 203.0.113.9,,10.0.0.2\r\n", "203.0.113.9", 0, 0},
    {"X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: ,\r\n", "203.0.113.9", 0, 0},
    {"X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For:\r\n", "203.0.113.9", 0, 0},
    {"X-Forwarded-For: 6.6.6.6, 203.0.113.9\r\nX-Forwarded-For: 10.0.0.2\r\n", "203.0.113.9", 0, 0},
    {"X-Forwarded-For: 10.0.0.2, 10.0.0.3\r\n", "10.0.0.2", 0, 0},
    {"X-Forwarded-Proto: https,\r\n", NULL, RD_FORWARDED_HTTPS, 0},
    {"X-Forwarded-Proto: https, http\r\n", NULL, RD_FORWARDED_HTTP, 0},
    {"X-Forwarded-Proto: https\r\nX-Forwarded-Proto: ws\r\n", NULL, RD_FORWARDED_HTTP, 0},
    {"X-Forwarded-For: 203.0.113.9, 10.0.0.2\r\nX-Forwarded-Proto: https, http\r\n", "203.0.113.9",
     RD_FORWARDED_HTTP, 0}, /* the nearest proxy decides, not the one that named the client */
    {"X-Forwarded-Proto: WSS\r\n", NULL, RD_FORWARDED_HTTPS, 0},
    {"X-Forwarded-Proto: https://\r\n", NULL, 0, 0},
    /* ports */
    {"X-Forwarded-Port: 65535\r\n", NULL, 0, 65535},
    {"X-Forwarded-Port: 65536\r\n", NULL, 0, 0},
    {"X-Forwarded-Port: 0\r\n", NULL, 0, 0},
    {"X-Forwarded-Port: -1\r\n", NULL, 0, 0},
    {"X-Forwarded-Port: 443x\r\n", NULL, 0, 0},
    {"X-Forwarded-Port: 100000\r\n", NULL, 0, 0},
    {"X-Forwarded-Port:\r\n", NULL, 0, 0},
    {"X-Forwarded-Port: 80, 443 \r\n", NULL, 0, 443},
};

static const row standard_rows[] = {
    {"", NULL, RD_FORWARDED_NO_SCHEME, 0},
    {"Forwarded: for=203.0.113.9;proto=https\r\n", "203.0.113.9", RD_FORWARDED_HTTPS, 0},
    {"Forwarded: for=6.6.6.6;proto=http, for=\"[2001:db8::2]:80\"; proto=https\r\n", "2001:db8::2",
     RD_FORWARDED_HTTPS, 0},
    {"Forwarded: For=10.0.0.9, for=10.0.0.8\r\n", "10.0.0.9", 0, 0},
    {"Forwarded: by=1.2.3.4\r\n", NULL, 0, 0},
    {"Forwarded:\r\n", NULL, 0, 0},
    /* nodes */
    {"Forwarded: for=_hidden\r\n", NULL, 0, 0},
    {"Forwarded: for=203.0.113.9, for=unknown\r\n", NULL, 0, 0},
    {"Forwarded: for=\"203.0.113.9:_port\"\r\n", "203.0.113.9", 0, 0},
    /* parameters (RFC 7239 section 4) */
    {"Forwarded: proto=\"https\"\r\n", NULL, RD_FORWARDED_HTTPS, 0},
    {"Forwarded: PROTO=HTTPS;FOR=203.0.113.9\r\n", "203.0.113.9", RD_FORWARDED_HTTPS, 0},
    {"Forwarded: ;; for = 203.0.113.9 ;\r\n", "203.0.113.9", 0, 0},
    {"Forwarded: for=203.0.113.9;for=6.6.6.6\r\n", "203.0.113.9", 0, 0},
    {"Forwarded: for;proto\r\n", NULL, 0, 0},
    {"Forwarded: for=\r\n", NULL, 0, 0},
    {"Forwarded: xfor=6.6.6.6\r\n", NULL, 0, 0},
    {"Forwarded: for=203.0.113.9;host=\"evil.example:8443\"\r\n", "203.0.113.9", 0, 0},
    /* several proxies: the scheme comes from the element that names the client, else from a nearer
     * proxy */
    {"Forwarded: for=203.0.113.9;proto=https, for=10.0.0.2;proto=http\r\n", "203.0.113.9",
     RD_FORWARDED_HTTPS, 0},
    {"Forwarded: for=203.0.113.9;proto=https, for=10.0.0.2\r\n", "203.0.113.9", RD_FORWARDED_HTTPS,
     0},
    {"Forwarded: for=203.0.113.9, for=10.0.0.2;proto=https\r\n", "203.0.113.9", RD_FORWARDED_HTTPS,
     0},
    {"Forwarded: for=6.6.6.6;proto=https, for=203.0.113.9;proto=http, for=10.0.0.2\r\n",
     "203.0.113.9", RD_FORWARDED_HTTP, 0},
    {"Forwarded: for=6.6.6.6;proto=https, for=203.0.113.9\r\n", "203.0.113.9", 0, 0},
    {"Forwarded: for=6.6.6.6;proto=https, for=_hidden;proto=http\r\n", NULL, RD_FORWARDED_HTTP, 0},
    {"Forwarded: for=6.6.6.6;proto=http\r\nForwarded: for=203.0.113.9;proto=https\r\n",
     "203.0.113.9", RD_FORWARDED_HTTPS, 0},
    {"Forwarded: for=203.0.113.9;proto=https\r\nForwarded: for=10.0.0.2;proto=http\r\n",
     "203.0.113.9", RD_FORWARDED_HTTPS, 0},
    {"Forwarded: for=203.0.113.9;proto=https,\r\n", "203.0.113.9", RD_FORWARDED_HTTPS, 0},
    /* a quote that the client left open must not swallow what the proxy appended */
    {"Forwarded: for=\"6.6.6.6, for=203.0.113.9;proto=https\r\n", "203.0.113.9", RD_FORWARDED_HTTPS,
     0},
    {"Forwarded: for=\"6.6.6.6;x=\", for=203.0.113.9\r\n", "203.0.113.9", 0, 0},
};

static const char other_of_x[] =
    "Forwarded: for=6.6.6.6;proto=https\r\nForwarded: for=127.0.0.1;proto=http\r\n";
static const char other_of_standard[] = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n"
                                        "X-Forwarded-Port: 8443\r\nX-Forwarded-For: 10.0.0.7\r\n";

static rd_forwarded read_fields(const char *before, const char *fields, const char *behind,
                                unsigned family) {
    static rd_request request;
    rd_network trusted;
    char bytes[1024];
    rd_http1_parser parser;
    rd_forwarded said;
    int len = snprintf(bytes, sizeof(bytes), "GET / HTTP/1.1\r\nHost: a\r\n%s%s%s\r\n", before,
                       fields, behind);
    CHECK(rd_network_parse(&trusted, "10.0.0.0/8", 10));
    rd_head_init(&request.head);
    rd_http1_parser_init(&parser);
    CHECK_INT(rd_http1_parse(&parser, &request.head, &default_limits, bytes, (size_t)len), len);
    request.bytes = bytes;
    rd_forwarded_read(&said, &request, family, &trusted, 1);
    rd_head_clear(&request.head);
    return said;
}

static void check_row(const row *row, rd_forwarded said) {
    char text[RD_ADDRESS_TEXT_MAX];
    CHECK_SAYS(said.has_client == (row->client != NULL), "%s", row->fields);
    CHECK_SAYS(said.scheme == row->scheme, "%s", row->fields);
    if (said.has_client && row->client != NULL) {
        size_t text_len = rd_address_text(&said.client, text);
        CHECK_BYTES(text, text_len, row->client);
    }
    CHECK_SAYS(said.port == row->port, "%s", row->fields);
}

static void check_rows(const row *rows, size_t count, unsigned family, const char *other) {
    for (size_t i = 0; i < count; i++) {
        check_row(&rows[i], read_fields("", rows[i].fields, "", family));
        check_row(&rows[i], read_fields(other, rows[i].fields, other, family));
    }
}

int main(void) {
    check_rows(x_rows, sizeof(x_rows) / sizeof(x_rows[0]), RD_FORWARDED_FIELDS_X, other_of_x);
    check_rows(standard_rows, sizeof(standard_rows) / sizeof(standard_rows[0]),
               RD_FORWARDED_FIELDS_STANDARD, other_of_standard);
    return check_summary();
}

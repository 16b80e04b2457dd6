/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket_handshake: which requests open a WebSocket, and the answer to their key.
 */
#include "check.h"
#include "default_limits.h"
#include "error_name.h"

#include "protocol/http1_parser.h"
#include "endpoint/websocket_handshake.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="

typedef struct row {
    int rc;
    const char *line, *fields;
} row;

#define GET         "GET /chat HTTP/1.1"
#define UPGRADE     "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define VERSION     "Sec-WebSocket-Version: 13\r\n"
#define KEYED       "Sec-WebSocket-Key: " KEY "\r\n"
#define KEY_OF(key) "Sec-WebSocket-Key: " key "\r\n"
#define ALL         UPGRADE VERSION KEYED

static const row rows[] = {
    {1, GET, ALL},
    {1, "GET http://a/chat HTTP/1.1", ALL},
    {1, "GET /chat HTTP/1.2", ALL},
    {1, GET, "upgrade: WebSocket\r\nconnection: keep-alive, UPGRADE\r\n" VERSION KEYED},
    {1, GET, "Upgrade: h2c , websocket\r\nConnection:upgrade\t,close\r\n" VERSION KEYED},
    {1, GET,
     "Upgrade: h2c\r\nUpgrade: websocket\r\nConnection: close\r\nConnection: upgrade\r\n" VERSION
         KEYED},
    {1, GET, ALL "Content-Length: 0\r\n"},
    {1, GET, UPGRADE "Sec-WebSocket-Version:  13\t\r\nSec-WebSocket-Key:\t" KEY " \r\n"},
    /* requests that ask for no WebSocket, or not in a valid way */
    {0, GET, ""},
    {0, GET, VERSION KEYED},
    {0, GET, "Connection: Upgrade\r\n" VERSION KEYED},
    {0, GET, "Upgrade: websocket\r\n" VERSION KEYED},
    {0, GET, "Upgrade: websocket\r\nConnection: keep-alive\r\n" VERSION KEYED},
    {0, GET, "Upgrade: websocket\r\nConnection: xupgrade, upgrade-x\r\n" VERSION KEYED},
    {0, GET, "Upgrade: h2c\r\nConnection: Upgrade\r\n" VERSION KEYED},
    {0, GET, "Upgrade: websockets, web, websocket/13\r\nConnection: Upgrade\r\n" VERSION KEYED},
    {0, GET, "Upgrade:\r\nConnection:\r\n" VERSION KEYED},
    {0, "POST /chat HTTP/1.1", ALL},
    {0, "HEAD /chat HTTP/1.1", ALL},
    {0, "get /chat HTTP/1.1", ALL},
    {0, "GET /chat HTTP/1.0", ALL},
    /* requests for a version that the server does not speak */
    {RD_ERR_WS_VERSION, GET, UPGRADE KEYED},
    {RD_ERR_WS_VERSION, GET, UPGRADE KEYED "Sec-WebSocket-Version: 8\r\n"},
    {RD_ERR_WS_VERSION, GET, UPGRADE KEYED "Sec-WebSocket-Version: 14\r\n"},
    {RD_ERR_WS_VERSION, GET, UPGRADE KEYED "Sec-WebSocket-Version: 013\r\n"},
    {RD_ERR_WS_VERSION, GET, UPGRADE KEYED "Sec-WebSocket-Version: 13, 8\r\n"},
    {RD_ERR_WS_VERSION, GET, UPGRADE KEYED "Sec-WebSocket-Version:\r\n"},
    {RD_ERR_WS_VERSION, GET, UPGRADE KEYED VERSION VERSION},
    {RD_ERR_WS_VERSION, GET, UPGRADE},
    /* keys */
    {1, GET, UPGRADE VERSION KEY_OF("AAAAAAAAAAAAAAAAAAAAAA==")},
    {1, GET, UPGRADE VERSION KEY_OF("/+z9Az09az09AZ09/+/+/w==")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEYED KEYED},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25jZQ")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25jZQ=")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25jZQ===")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25jZR==")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25jZQA=")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25jZQAA")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25=ZQ==")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25-ZQ==")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25 ZQ==")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25jZ\x80==")},
    {RD_ERR_WS_KEY, GET, UPGRADE VERSION KEY_OF("dGhlIHNhbXBsZSBub25jZSE=")},
    /* bodies */
    {RD_ERR_WS_BODY, GET, ALL "Content-Length: 1\r\n"},
    {RD_ERR_WS_BODY, GET, ALL "Transfer-Encoding: chunked\r\n"},
};

static void check_row(const row *row) {
    rd_http1_parser parser;
    rd_head head;
    char text[1024];
    rd_slice key = {NULL, 0};
    const size_t len =
        (size_t)snprintf(text, sizeof text, "%s\r\nHost: a\r\n%s\r\n", row->line, row->fields);
    int rc;

    rd_http1_parser_init(&parser);
    rd_head_init(&head);
    if (CHECK_INT(rd_http1_parse(&parser, &head, &default_limits, text, len), len)) {
        rc = rd_ws_handshake_check(&head, text, &key);
        CHECK_SAYS(rc == row->rc, "%d %s: %s", rc, error_name(rc), text);
        if (rc == 1) CHECK(key.len == 24 && key.ptr > text && key.ptr < text + len);
    }
    rd_head_clear(&head);
}

static void test_statuses(void) {
    CHECK_INT(rd_error_status(RD_ERR_WS_VERSION), 426);
    CHECK_INT(rd_error_status(RD_ERR_WS_KEY), 400);
    CHECK_INT(rd_error_status(RD_ERR_WS_BODY), 400);
}

/* The example of RFC 6455, section 1.3. The other answers were made with OpenSSL. */
static void test_accept(void) {
    static const struct {
        const char *key, *accept;
    } pairs[] = {
        {KEY, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
        {"AAAAAAAAAAAAAAAAAAAAAA==", "ICX+Yqv66kxgM0FcWaLWlFLwTAI="},
        {"/////////////////////w==", "XXpj4jYzLM2yUE0C7TIgMwTQh2g="},
    };
    char accept[RD_WS_ACCEPT_LEN];

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        rd_ws_handshake_accept(rd_slice_of(pairs[i].key, 24), accept);
        CHECK_BYTES(accept, sizeof accept, pairs[i].accept);
    }
}

/* ---- protocols ---- */

#define OFFER(list) "Sec-WebSocket-Protocol: " list "\r\n"

/* `given`: the application's fields, separated by |; `left`: the fields that remain. */
static void check_choice(const char *offers, const char *given, const char *left) {
    rd_http1_parser parser;
    rd_head head;
    rd_field fields[4] = {{RD_SLICE("set-cookie"), RD_SLICE("a=b")}};
    char text[1024], all[256];
    size_t count = 1, at = 0;
    const size_t len =
        (size_t)snprintf(text, sizeof text, GET "\r\nHost: a\r\n" ALL "%s\r\n", offers);

    for (const char *end; *given; given = *end ? end + 1 : end) {
        end = given + strcspn(given, "|");
        fields[count++] = (rd_field){RD_SLICE("Sec-WebSocket-Protocol"),
                                     rd_slice_of(given, (size_t)(end - given))};
    }
    rd_http1_parser_init(&parser);
    rd_head_init(&head);
    CHECK_INT(rd_http1_parse(&parser, &head, &default_limits, text, len), len);
    count = rd_ws_handshake_choose(&head, text, fields, count);
    CHECK(rd_slice_equal(fields[0].name, RD_SLICE("set-cookie")));
    for (size_t i = 1; i < count; i++) {
        memcpy(all + at, fields[i].value.ptr, fields[i].value.len);
        at += fields[i].value.len;
        all[at++] = '|';
    }
    CHECK_BYTES(all, at, left);
    rd_head_clear(&head);
}

static void test_protocols(void) {
    check_choice(OFFER("a, b"), "", "");
    check_choice(OFFER("a, b"), "a", "a|");
    check_choice(OFFER("a ,\tb") OFFER("c"), "c", "c|");
    check_choice(OFFER("a, b"), "x,b, a", "b|");
    check_choice(OFFER("a, b"), "x|b|a", "b|");
    check_choice(OFFER("a, b"), "x", "");
    check_choice(OFFER("a, b"), "A", "");
    check_choice(OFFER("ab, xa, a b"), "a", "");
    check_choice(OFFER(""), ",", "");
    check_choice(OFFER(",,"), " , ", "");
    check_choice("", "a|b", "");
}

int main(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
    test_statuses();
    test_accept();
    test_protocols();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * The table of protocols: names in ALPN, and what a request can be upgraded to.
 */
#include "protocol/protocols.h"

#include "check.h"
#include "protocol/http1.h"
#include "protocol/http1_parser.h"

#define KEY "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

static void test_names(void) {
    CHECK(rd_protocol_find(RD_SLICE("http/1.1")) == &rd_protocol_http1);
    CHECK(rd_protocol_find(RD_SLICE("http/1.0")) == NULL);
    CHECK(rd_protocol_find(RD_SLICE("")) == NULL);
    for (size_t i = 0; i < rd_protocol_count; i++) {
        CHECK(rd_protocol_find(rd_protocols[i].alpn) == rd_protocols[i].protocol);
    }
}

typedef struct row {
    const char *head, *asked; /* the name of the upgrade; "": no upgrade */
    bool named;
} row;

static const row rows[] = {
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" KEY "\r\n",
     "websocket", true},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "", true},
    {"GET / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n", "sse", true},
    {"POST / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n", "", true},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" KEY
     "Accept: text/event-stream\r\n\r\n",
     "websocket", true},
    {"GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n", "", false},
    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", false},
};

static void check_row(rd_request_pool *pool, const rd_head_limits *limits, const row *row) {
    rd_request *request = rd_request_new(pool);
    rd_http1_parser parser;
    const size_t len = strlen(row->head);
    rd_http1_parser_init(&parser);
    CHECK_INT(rd_http1_parse(&parser, &request->head, limits, row->head, len), len);
    CHECK(rd_request_keep_head(request, row->head, len));
    const rd_upgrade_row *upgrade = rd_upgrade_asked(request);
    const rd_slice name = upgrade != NULL ? upgrade->name : RD_SLICE("");
    CHECK_BYTES(name.ptr, name.len, row->asked);
    CHECK_SAYS(rd_upgrade_is_named(request) == row->named, "%s", row->head);
    rd_request_unref(request);
}

static void test_upgrades(void) {
    rd_ledger ledger;
    rd_settings settings;
    rd_head_limits limits;
    rd_ledger_init(&ledger);
    rd_settings_init(&settings);
    rd_head_limits_init(&limits, &settings);
    rd_request_pool pool = {.ledger = &ledger};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row(&pool, &limits, &rows[i]);
    }
    rd_request_pool_clear(&pool);
}

int main(void) {
    test_names();
    test_upgrades();
    return check_summary();
}

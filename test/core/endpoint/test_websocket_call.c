/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket_call: the request, and answers that are the one that was asked for, or not:
 * each whole, and cut at every byte.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "check.h"
#include "endpoint/websocket_call.h"

/* The example of RFC 6455, section 1.3. */
#define ACCEPT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define STATUS "HTTP/1.1 101 Switching Protocols\r\n"
#define GOOD   STATUS "Upgrade: websocket\r\nConnection: Upgrade\r\n" ACCEPT

static rd_ws_call call;

static void begin(void) {
    call = (rd_ws_call){.target = RD_SLICE("/chat?a=b"),
                        .host = RD_SLICE("a.test:81"),
                        .fields = RD_SLICE("Origin: b\r\n"),
                        .protocols = RD_SLICE("one, two"),
                        .deflates = true};
    rd_ws_call_set_key(&call, (const uint8_t *)"the sample nonce");
}

static void check_request(const char *expected) {
    rd_buffer out = {0};
    rd_ws_call_write(&call, &out);
    CHECK_BYTES(rd_buffer_ptr(&out), rd_buffer_len(&out), expected);
    rd_buffer_clear(&out);
}

static void test_request(void) {
    begin();
    check_request("GET /chat?a=b HTTP/1.1\r\nHost: a.test:81\r\nUpgrade: websocket\r\n"
                  "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                  "Sec-WebSocket-Protocol: one, two\r\n"
                  "Sec-WebSocket-Extensions: " RD_WS_EXTENSION_OFFER "\r\nOrigin: b\r\n\r\n");
    call.protocols = call.fields = RD_SLICE("");
    call.deflates = false;
    check_request("GET /chat?a=b HTTP/1.1\r\nHost: a.test:81\r\nUpgrade: websocket\r\n"
                  "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
}

typedef struct row {
    const char *head;
    int result;           /* 1: it is good */
    unsigned subprotocol; /* its place among those that were offered; 0: none */
    unsigned window_bits;
} row;

static const row rows[] = {
    {GOOD "\r\n", 1, 0, 0},
    {"HTTP/1.1 101\r\nupgrade:WebSocket\r\nCONNECTION: keep-alive , uPGRADE\r\n" ACCEPT "\r\n", 1,
     0, 0},
    {GOOD "Sec-WebSocket-Protocol: two\r\n\r\n", 1, 2, 0},
    {GOOD "Sec-WebSocket-Extensions: " RD_WS_EXTENSION_OFFER "\r\n\r\n", 1, 0, 15},
    {GOOD "Sec-WebSocket-Extensions: permessage-deflate;server_no_context_takeover;"
          "server_max_window_bits=10\r\n\r\n",
     1, 0, 15},
    {"HTTP/1.1 200 OK\r\n", RD_ERR_WS_ANSWER_STATUS, 0, 0},
    {"HTTP/1.1 301 Moved\r\n", RD_ERR_WS_ANSWER_STATUS, 0, 0},
    {"HTTP/1.0 101 OK\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {"HTTP/1.1 1010 OK\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {"HTTP/1.1 099 OK\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {"HTTP/1.1 10\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {"\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {STATUS "\n", RD_ERR_WS_ANSWER, 0, 0},
    {STATUS "Upgrade: websocket\n", RD_ERR_WS_ANSWER, 0, 0},
    {STATUS " Upgrade: websocket\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {STATUS "Upgrade : websocket\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {STATUS ": x\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {STATUS "no colon\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {STATUS "a: b\x01\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {STATUS "a: b\rc\r\n", RD_ERR_WS_ANSWER, 0, 0},
    {STATUS "\r\n", RD_ERR_WS_ANSWER_UPGRADE, 0, 0},
    {STATUS "Upgrade: h2c\r\n", RD_ERR_WS_ANSWER_UPGRADE, 0, 0},
    {STATUS "Upgrade: websocket\r\n" ACCEPT "\r\n", RD_ERR_WS_ANSWER_UPGRADE, 0, 0},
    {STATUS "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n", RD_ERR_WS_ANSWER_KEY, 0, 0},
    {STATUS "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOO=\r\n", RD_ERR_WS_ANSWER_KEY, 0, 0},
    {STATUS "Sec-WebSocket-Accept:\r\n", RD_ERR_WS_ANSWER_KEY, 0, 0},
    {GOOD ACCEPT, RD_ERR_WS_ANSWER_KEY, 0, 0},
    {GOOD "Sec-WebSocket-Protocol: three\r\n", RD_ERR_WS_ANSWER_PROTOCOL, 0, 0},
    {GOOD "Sec-WebSocket-Protocol: one, two\r\n", RD_ERR_WS_ANSWER_PROTOCOL, 0, 0},
    {GOOD "Sec-WebSocket-Protocol:\r\n", RD_ERR_WS_ANSWER_PROTOCOL, 0, 0},
    {GOOD "Sec-WebSocket-Protocol: one\r\nSec-WebSocket-Protocol: one\r\n",
     RD_ERR_WS_ANSWER_PROTOCOL, 0, 0},
    {GOOD "Sec-WebSocket-Extensions: permessage-deflate\r\n", RD_ERR_WS_ANSWER_EXTENSION, 0, 0},
    {GOOD "Sec-WebSocket-Extensions: x\r\n", RD_ERR_WS_ANSWER_EXTENSION, 0, 0},
    {GOOD "Sec-WebSocket-Extensions: " RD_WS_EXTENSION_OFFER ", x\r\n", RD_ERR_WS_ANSWER_EXTENSION,
     0, 0},
    {GOOD "Sec-WebSocket-Extensions: " RD_WS_EXTENSION_OFFER "; client_max_window_bits=9\r\n",
     RD_ERR_WS_ANSWER_EXTENSION, 0, 0},
    {GOOD "Sec-WebSocket-Extensions: " RD_WS_EXTENSION_OFFER "; server_max_window_bits=7\r\n",
     RD_ERR_WS_ANSWER_EXTENSION, 0, 0},
    {GOOD "Sec-WebSocket-Extensions: " RD_WS_EXTENSION_OFFER "; server_no_context_takeover\r\n",
     RD_ERR_WS_ANSWER_EXTENSION, 0, 0},
};

/* In a block exactly as long as the bytes. */
static int read_some(const char *bytes, size_t len, rd_ws_answer *answer, char **room) {
    *room = malloc(len > 0 ? len : 1);
    memcpy(*room, bytes, len);
    return rd_ws_answer_read(&call, *room, len, answer);
}

static void check_row(const row *row) {
    const size_t len = strlen(row->head);
    const int expected = row->result == 1 ? (int)len : row->result;
    rd_ws_answer answer;
    char *room;
    for (size_t cut = 0; cut < len; cut++) {
        const int result = read_some(row->head, cut, &answer, &room);
        CHECK_SAYS(result == 0, "%s: %d at %zu", row->head, result, cut);
        free(room);
    }
    const int result = read_some(row->head, len, &answer, &room);
    CHECK_SAYS(result == expected, "%s: %d", row->head, result);
    if (result > 0) {
        CHECK_INT(answer.subprotocol, row->subprotocol);
        CHECK_INT(answer.window_bits, row->window_bits);
    }
    free(room);
}

/* What follows the head are frames. */
static void test_behind_the_head(void) {
    rd_ws_answer answer;
    begin();
    CHECK_INT(rd_ws_answer_read(&call, GOOD "\r\n\x81\x01\n", strlen(GOOD) + 5, &answer),
              strlen(GOOD) + 2);
}

static void test_not_offered(void) {
    static const row answers[] = {
        {GOOD "Sec-WebSocket-Protocol: one\r\n", RD_ERR_WS_ANSWER_PROTOCOL, 0, 0},
        {GOOD "Sec-WebSocket-Extensions: " RD_WS_EXTENSION_OFFER "\r\n", RD_ERR_WS_ANSWER_EXTENSION,
         0, 0},
    };
    begin();
    call.protocols = RD_SLICE("");
    call.deflates = false;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) check_row(&answers[i]);
}

static void test_limits(void) {
    static char head[RD_WS_ANSWER_MAX + 100];
    rd_ws_answer answer;
    begin();
    memset(head, 'a', sizeof(head));
    memcpy(head, STATUS, strlen(STATUS));
    CHECK_INT(rd_ws_answer_read(&call, head, RD_WS_ANSWER_MAX - 1, &answer), 0);
    CHECK_INT(rd_ws_answer_read(&call, head, RD_WS_ANSWER_MAX, &answer), RD_ERR_WS_ANSWER_LONG);
    size_t len = strlen(STATUS);
    for (int i = 0; i <= RD_WS_ANSWER_FIELDS_MAX; i++, len += 6) memcpy(head + len, "a: b\r\n", 6);
    CHECK_INT(rd_ws_answer_read(&call, head, len - 6, &answer), 0);
    CHECK_INT(rd_ws_answer_read(&call, head, len, &answer), RD_ERR_WS_ANSWER);
}

int main(void) {
    test_request();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        check_row(&rows[i]);
    }
    test_behind_the_head();
    test_not_offered();
    test_limits();
    return check_summary();
}

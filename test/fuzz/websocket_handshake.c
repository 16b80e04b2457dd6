/* SPDX-License-Identifier: MIT
 *
 * The fields of a request for a WebSocket. First byte: whether it begins as a good one. Holds: no
 * crash; an answer's words are an offer that gets the same answer; a list cut into two fields at
 * any comma outside of quotes is the same list, so no offer reaches into another; a good offer
 * before all others wins, behind them it is what is taken when they are not.
 */
#include "fuzz.h"
#include "base/alloc.h"
#include "default_limits.h"
#include "protocol/http1_parser.h"
#include "endpoint/websocket_extension.h"
#include "endpoint/websocket_handshake.h"

#define FIELD "Sec-WebSocket-Extensions:"

static const char good[] = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                           "Sec-WebSocket-Version: 13\r\n"
                           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/* What a request with these fields is answered, if it is a request. */
static bool choose(const char *fields, size_t len, rd_ws_extension *extension) {
    static const char line[] = "GET / HTTP/1.1\r\nHost: a\r\n";
    const size_t total = sizeof line - 1 + len + 2;
    char *request = rd_alloc(total), accept[RD_WS_ACCEPT_LEN];
    rd_http1_parser parser;
    rd_head head;
    rd_slice key;
    int rc;

    memcpy(request, line, sizeof line - 1);
    memcpy(request + sizeof line - 1, fields, len);
    memcpy(request + total - 2, "\r\n", 2);
    rd_http1_parser_init(&parser);
    rd_head_init(&head);
    rc = rd_http1_parse(&parser, &head, &default_limits, request, total);
    if (rc > 0) {
        *extension = rd_ws_extension_choose(&head, request);
        if (rd_ws_handshake_check(&head, request, &key) == 1) rd_ws_handshake_accept(key, accept);
    }
    rd_head_clear(&head);
    rd_free(request);
    return rc > 0;
}

/* The same of one list, cut in two before `cut`. */
static bool choose_list(const char *list, size_t len, size_t cut, rd_ws_extension *extension) {
    char *fields = rd_alloc(len + 3 * sizeof FIELD + 8);
    int at;
    bool parsed;

    at = sprintf(fields, FIELD "%.*s\r\n", (int)cut, list);
    if (cut < len)
        at += sprintf(fields + at, FIELD "%.*s\r\n", (int)(len - cut - 1), list + cut + 1);
    parsed = choose(fields, (size_t)at, extension);
    rd_free(fields);
    return parsed;
}

static bool is_same(rd_ws_extension a, rd_ws_extension b) {
    return a.window_bits == b.window_bits && a.window_asked == b.window_asked;
}

static void check_answer(rd_ws_extension chosen) {
    char text[RD_WS_EXTENSION_MAX];
    const size_t len = rd_ws_extension_write(&chosen, text);
    rd_ws_extension again;

    FUZZ_CHECK(len <= sizeof text && (len > 0) == (chosen.window_bits > 0));
    if (len == 0) return;
    FUZZ_CHECK(chosen.window_bits >= RD_WS_WINDOW_MIN && chosen.window_bits <= RD_WS_WINDOW_MAX);
    FUZZ_CHECK(choose_list(text, len, len, &again) && is_same(chosen, again));
}

static void check_cuts(const char *list, size_t len, rd_ws_extension whole) {
    rd_ws_extension cut;
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        if (list[i] == '"') quoted = !quoted;
        if (quoted && list[i] == '\\') i++;
        if (i >= len || list[i] != ',' || quoted) continue;
        FUZZ_CHECK(choose_list(list, len, i, &cut) && is_same(cut, whole));
    }
}

static void check_neighbours(const char *list, size_t len, rd_ws_extension alone) {
    static const char offer[] = "permessage-deflate; server_max_window_bits=13";
    char *text = rd_alloc(len + sizeof offer + 1);
    rd_ws_extension with;
    int total;

    total = sprintf(text, "%s,%.*s", offer, (int)len, list);
    FUZZ_CHECK(choose_list(text, (size_t)total, (size_t)total, &with) && with.window_bits == 13);
    total = sprintf(text, "%.*s,%s", (int)len, list, offer);
    FUZZ_CHECK(choose_list(text, (size_t)total, len, &with));
    FUZZ_CHECK(alone.window_bits ? is_same(with, alone) : with.window_bits == 13);
    rd_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    char *fields;
    rd_ws_extension chosen;

    if (len < 1 || len > 2048) return 0;
    fields = rd_alloc(sizeof good + len);
    memcpy(fields, good, sizeof good - 1);
    memcpy(fields + sizeof good - 1, bytes + 1, len - 1);
    if (bytes[0] & 1) {
        if (choose(fields, sizeof good + len - 2, &chosen)) check_answer(chosen);
    } else if (!memchr(bytes + 1, 0, len - 1) && !memchr(bytes + 1, '\n', len - 1) &&
               choose_list((const char *)bytes + 1, len - 1, len - 1, &chosen)) {
        check_answer(chosen);
        check_cuts((const char *)bytes + 1, len - 1, chosen);
        check_neighbours((const char *)bytes + 1, len - 1, chosen);
    }
    rd_free(fields);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * What comes before the protocol: a PROXY header, the handshake of a transport (that of
 * xor_transport.h), both of them one after the other, cut anywhere, late and wrong.
 */
#include "serving.h"
#include "protocol/opening.h"
#include "xor_transport.h"

#define PROXY   "PROXY TCP4 192.0.2.9 192.0.2.1 5 80\r\n"
#define HELLO   "XOR?1XOR?2\x09\x08http/1.1"
#define WELCOME "XOR!1XOR!2\x08http/1.1"

static int client;

static void trust_everybody(void) {
    rd_network *networks = rd_alloc_zero(sizeof(*networks));
    CHECK(rd_network_parse(networks, "unix", 4));
    rd_server_set_proxies(server, networks, 1);
}

static void begin(const rd_transport *transport, bool has_proxy_header) {
    static const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    int pair[2];
    start(answer_path);
    if (has_proxy_header) trust_everybody();
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    client = pair[1];
    const rd_protocol *protocol = rd_protocol_begin(&server->conns, transport, &nobody);
    rd_loop_lock(&server->loop);
    joined = rd_conn_open(&server->conns, pair[0], transport, protocol, &nobody);
    rd_conn_read_now(joined);
    rd_loop_unlock(&server->loop);
}

static void finish(void) {
    close(client);
    end();
}

static void say_bytes(const char *bytes, size_t len) {
    CHECK_INT(send(client, bytes, len, MSG_NOSIGNAL), len);
}

/* Appends a record of the transport. */
static size_t put_record(char *to, const char *text) {
    const size_t len = strlen(text);
    to[0] = (char)(len >> 8);
    to[1] = (char)(len & 0xff);
    for (size_t i = 0; i < len; i++) to[2 + i] = (char)(text[i] ^ XOR_BYTE);
    return 2 + len;
}

/* Separates the welcome from the records; `got` has the bytes of the records. */
static void decode(void) {
    char text[sizeof(got)];
    size_t len = 0, at = sizeof(WELCOME) - 1;
    if (!CHECK(got_len >= at && memcmp(got, WELCOME, at) == 0)) return;
    while (at + 2 <= got_len) {
        const size_t part = (size_t)(unsigned char)got[at] << 8 | (unsigned char)got[at + 1];
        for (size_t i = 0; i < part; i++) text[len++] = (char)(got[at + 2 + i] ^ XOR_BYTE);
        at += 2 + part;
    }
    text[len] = '\0';
    memcpy(got, text, len + 1);
}

static bool ends_with(const char *end) {
    const size_t len = strlen(got);
    return len >= strlen(end) && strcmp(got + len - strlen(end), end) == 0;
}

static void test_a_plain_connection_begins_with_its_protocol(void) {
    begin(&rd_transport_tcp, false);
    CHECK(joined->protocol == rd_protocol_first);
    finish();
}

static void test_a_proxy_header_cut_anywhere(void) {
    static const char sent[] = PROXY GET("/a");
    for (size_t cut = 0; cut < sizeof(sent); cut++) {
        begin(&rd_transport_tcp, true);
        CHECK(joined->protocol == &rd_protocol_opening);
        if (cut > 0) say_bytes(sent, cut);
        turns(2);
        if (cut < sizeof(sent) - 1) say_bytes(sent + cut, sizeof(sent) - 1 - cut);
        turns(2);
        hear(client);
        CHECK(ends_with("\r\n\r\n/a"));
        CHECK_INT(joined->peer.bytes[3], 9);
        CHECK_INT(joined->peer.port, 5);
        finish();
    }
}

static void test_a_wrong_proxy_header_has_no_answer(void) {
    begin(&rd_transport_tcp, true);
    say(client, GET("/a"));
    turns(2);
    CHECK(hear(client));
    CHECK_STR(got, "");
    CHECK_INT(server->counts.refused, 1);
    finish();
}

/* "P" alone may become a header, "PUT" does not. */
static void test_a_header_that_may_be_absent(void) {
    static const char *const texts[] = {GET("/a"), "PUT /a HTTP/1.1\r\nHost: x\r\n\r\n",
                                        PROXY GET("/a")};
    for (size_t i = 0; i < 3; i++) {
        for (size_t cut = 0; cut < strlen(texts[i]); cut++) {
            begin(&rd_transport_tcp, true);
            server->http.proxy_optional = true;
            if (cut > 0) say_bytes(texts[i], cut);
            turns(2);
            say_bytes(texts[i] + cut, strlen(texts[i]) - cut);
            turns(2);
            hear(client);
            CHECK(ends_with("\r\n\r\n/a"));
            CHECK_INT(joined->peer.kind, i == 2 ? RD_ADDRESS_V4 : RD_ADDRESS_UNIX);
            finish();
        }
    }
}

static void test_a_wrong_header_that_may_be_absent_has_no_answer(void) {
    begin(&rd_transport_tcp, true);
    server->http.proxy_optional = true;
    say(client, "PROXY TCP4 192.0.2.9\r\n" GET("/a"));
    turns(2);
    CHECK(hear(client));
    CHECK_STR(got, "");
    CHECK_INT(server->counts.refused, 1);
    finish();
}

static void test_a_handshake_cut_anywhere(void) {
    char sent[128] = HELLO;
    const size_t len = sizeof(HELLO) - 1 + put_record(sent + sizeof(HELLO) - 1, GET("/a"));
    for (size_t cut = 0; cut <= len; cut++) {
        begin(&rd_transport_xor, false);
        if (cut > 0) say_bytes(sent, cut);
        turns(2);
        if (cut < len) say_bytes(sent + cut, len - cut);
        turns(3);
        CHECK(joined->protocol == rd_protocol_first);
        hear(client);
        decode();
        CHECK(ends_with("\r\n\r\n/a"));
        finish();
    }
}

static void test_a_proxy_header_before_a_handshake_cut_anywhere(void) {
    char sent[160] = PROXY HELLO;
    const size_t begun = sizeof(PROXY HELLO) - 1, len = begun + put_record(sent + begun, GET("/a"));
    for (size_t cut = 0; cut <= len; cut++) {
        begin(&rd_transport_xor, true);
        if (cut > 0) say_bytes(sent, cut);
        turns(2);
        if (cut < len) say_bytes(sent + cut, len - cut);
        turns(4);
        CHECK_INT(joined->peer.bytes[3], 9);
        hear(client);
        decode();
        CHECK(ends_with("\r\n\r\n/a"));
        finish();
    }
}

static void test_a_wrong_handshake_is_told_and_ends(void) {
    begin(&rd_transport_xor, false);
    say(client, GET("/a"));
    turns(3);
    CHECK(hear(client));
    CHECK_STR(got, "XOR!0");
    CHECK_INT(server->counts.refused, 0); /* there was no request */
    CHECK_INT(server->incidents.kept[0].code, RD_ERR_HANDSHAKE);
    finish();
}

static void test_a_peer_that_leaves_in_its_handshake_is_not_told_of(void) {
    begin(&rd_transport_xor, false);
    say(client, "XOR?");
    shutdown(client, SHUT_WR);
    turns(3);
    CHECK(hear(client));
    CHECK_INT(server->counts.refused, 0);
    CHECK_INT(server->conns.count, 0);
    finish();
}

/* What came with the header has to wait for its handshake, so it is counted before that. */
static void test_what_comes_with_a_proxy_header_is_counted_at_once(void) {
    static char sent[sizeof(PROXY) + 40000] = PROXY;
    const rd_ledger_row *row;
    for (int has_room = 0; has_room < 2; has_room++) {
        begin(&rd_transport_xor, true);
        row = &server->conns.ledger.rows[RD_LEDGER_INPUT];
        rd_ledger_limit(&server->conns.ledger, RD_LEDGER_INPUT, has_room ? 40000 : 100);
        say_bytes(sent, sizeof(sent) - 1);
        rd_loop_lock(&server->loop);
        rd_conn_read_now(joined);
        CHECK_INT(row->held, has_room ? 40000 - RD_LEDGER_FREE : 0);
        CHECK_INT(joined->state, has_room ? RD_CONN_OPEN : RD_CONN_FINISHING);
        rd_loop_unlock(&server->loop);
        turns(2);
        const int code = has_room ? RD_ERR_HANDSHAKE : RD_ERR_INPUT_FULL;
        CHECK_INT(server->incidents.kept[0].code, code);
        CHECK_INT(server->incidents.count, 1);
        CHECK_INT(server->counts.refused, has_room ? 0 : 1);
        finish();
    }
}

/* After the handshake as well: a client that is refused has had no answer that was cut. */
static void test_what_is_read_ahead_and_refused_is_no_cut_answer(void) {
    static char sent[sizeof(HELLO) + 40000] = HELLO;
    begin(&rd_transport_xor, false);
    rd_ledger_limit(&server->conns.ledger, RD_LEDGER_INPUT, 100);
    say_bytes(sent, sizeof(HELLO) - 1);
    turns(2);
    CHECK(joined->protocol == rd_protocol_first);
    memset(&sent[sizeof(HELLO)], 0xff, 40000);
    say_bytes(&sent[sizeof(HELLO)], 40000);
    turns(4);
    CHECK(server->conns.count == 0);
    CHECK_INT(server->incidents.kept[0].code, RD_ERR_INPUT_FULL);
    CHECK_INT(server->counts.refused, 1);
    CHECK_INT(server->counts.cut, 0);
    finish();
}

static void test_an_opening_has_one_deadline(void) {
    const uint64_t timeout = (uint64_t)settings.head_timeout_ms;
    begin(&rd_transport_xor, true);
    later(timeout / 2);
    say(client, PROXY "XOR?1");
    later(timeout / 2 - 10);
    CHECK(!hear(client));
    later(20);
    turns(2);
    CHECK(hear(client));
    CHECK_INT(server->conns.count, 0);
    finish();
}

static void test_a_handshake_has_ten_seconds_of_it(void) {
    const int64_t before = settings.head_timeout_ms;
    settings.head_timeout_ms = 30000;
    for (int shakes = 0; shakes < 2; shakes++) {
        begin(&rd_transport_xor, false);
        later(9900);
        if (shakes) say_bytes(HELLO, sizeof(HELLO) - 1);
        turns(2);
        later(200);
        CHECK(hear(client) == !shakes);
        later(19800);
        CHECK(hear(client) == !shakes);
        later(300); /* the head has the rest */
        CHECK(hear(client));
        finish();
    }
    settings.head_timeout_ms = before;
}

/* The time before the first request: a PROXY header does not start it again. */
static void test_what_the_opening_took_is_gone(void) {
    const uint64_t timeout = (uint64_t)settings.head_timeout_ms;
    begin(&rd_transport_tcp, true);
    later(timeout - 100);
    say(client, PROXY);
    turns(2);
    CHECK(joined->protocol == rd_protocol_first);
    later(110);
    turns(2);
    CHECK(hear(client));
    finish();
}

static void test_a_handshake_that_does_not_come_makes_room(void) {
    begin(&rd_transport_xor, false);
    CHECK(!joined->protocol->is_spare(joined, true, server->loop.now_ms));
    CHECK(joined->protocol->is_spare(joined, false, server->loop.now_ms));
    CHECK(!joined->protocol->is_spare(joined, false, server->loop.now_ms - 1000));
    finish();
    begin(&rd_transport_tcp, true); /* connections of a load balancer's pool stay */
    CHECK(!joined->protocol->is_spare(joined, false, server->loop.now_ms));
    finish();
}

static void test_a_server_that_stops_waits_no_longer_than_for_others(void) {
    begin(&rd_transport_xor, false);
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(2);
    later((uint64_t)settings.idle_grace_ms + 10);
    turns(2);
    CHECK(hear(client));
    finish();
}

static void test_all(void) {
    test_a_plain_connection_begins_with_its_protocol();
    test_a_proxy_header_cut_anywhere();
    test_a_wrong_proxy_header_has_no_answer();
    test_a_header_that_may_be_absent();
    test_a_wrong_header_that_may_be_absent_has_no_answer();
    test_a_handshake_cut_anywhere();
    test_a_proxy_header_before_a_handshake_cut_anywhere();
    test_a_wrong_handshake_is_told_and_ends();
    test_a_peer_that_leaves_in_its_handshake_is_not_told_of();
    test_what_comes_with_a_proxy_header_is_counted_at_once();
    test_what_is_read_ahead_and_refused_is_no_cut_answer();
    test_an_opening_has_one_deadline();
    test_a_handshake_has_ten_seconds_of_it();
    test_what_the_opening_took_is_gone();
    test_a_handshake_that_does_not_come_makes_room();
    test_a_server_that_stops_waits_no_longer_than_for_others();
}

int main(void) {
    rd_settings_init(&settings);
    test_all();
    settings.poll_only = 1;
    test_all();
    return check_summary();
}

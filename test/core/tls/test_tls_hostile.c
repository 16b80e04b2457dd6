/* SPDX-License-Identifier: MIT
 *
 * Clients of TLS that do what no honest client does, or what few do: see tls.c, tls_flow.c and
 * tls_handshake.c.
 */
#include "check.h"
#include "hand_clock.h"
#include "tls/tls_flow.h"
#include "tls_conn.h"
#include "tls_forge.h"

/* ---- small records ---- */

/* A client may ask for records of 512 bytes (RFC 6066, section 4). */
static void test_small_records_that_the_client_wants(void) {
    static char sent[100000], got[sizeof(sent)];
    client = new_client("a.test");
    SSL_set_tlsext_max_fragment_length(client.ssl, TLSEXT_max_fragment_length_512);
    rd_conn *conn = open_conn();
    CHECK(shake_hands_in_pieces(SIZE_MAX));
    for (size_t i = 0; i < sizeof(sent); i++) sent[i] = (char)(i * 7 >> 2);
    queue(conn, sent, sizeof(sent));
    turn();
    CHECK_INT(read_all(got, sizeof(got)), sizeof(got));
    CHECK(memcmp(got, sent, sizeof(got)) == 0);
    end(conn);
}

/* ---- work for nothing ---- */

static unsigned key_updates;

static void count_key_updates(int written, int version, int type, const void *bytes, size_t len,
                              SSL *ssl, void *nothing) {
    (void)version, (void)len, (void)ssl, (void)nothing;
    if (!written && type == SSL3_RT_HANDSHAKE) key_updates += *(const unsigned char *)bytes == 24;
}

/* All of them in one piece, so one read finds them. The answers tell how many were obeyed. */
static void test_new_keys_in_one_piece(void) {
    rd_conn *conn = open_shaken();
    SSL_set_msg_callback(client.ssl, count_key_updates);
    key_updates = 0;
    for (int i = 0; i < 500; i++) {
        SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED);
        SSL_do_handshake(client.ssl);
    }
    carry_in_pieces(SIZE_MAX);
    turn();
    CHECK_INT(told.closed, 1);
    hear();
    char byte;
    SSL_read(client.ssl, &byte, 1);
    ERR_clear_error();
    CHECK_SAYS(key_updates <= 33, "the server made new keys %u times", key_updates);
    end(conn);
}

/* ---- records that no library sends ---- */

static unsigned char forged[65536];
static size_t forged_len;

static rd_conn *open_forging(void) {
    client = new_client("a.test");
    prepare_forging(&client);
    rd_conn *conn = open_conn();
    CHECK(shake_hands_in_pieces(SIZE_MAX));
    hear();
    forged_len = 0;
    return conn;
}

static void add_record(unsigned char type, const char *bytes, size_t len) {
    CHECK(forged_len + len + 22 <= sizeof(forged));
    forged_len += forge(type, bytes, len, forged + forged_len);
}

static void send_forged(void) {
    send_raw((const char *)forged, forged_len);
    for (int i = 0; i < 3; i++) turn();
    forged_len = 0;
}

/* They carry nothing, and 32 of them in a row are what OpenSSL bears. */
static void test_empty_records(void) {
    rd_conn *conn = open_forging();
    for (int i = 0; i < 20; i++) {
        add_record(FORGED_DATA, "", 0);
        add_record(FORGED_DATA, i % 2 ? "b" : "a", 1);
        add_record(FORGED_DATA, "", 0);
    }
    send_forged();
    CHECK_BYTES(told.bytes, told.len, "abababababababababab");
    for (int i = 0; i < 40; i++) add_record(FORGED_DATA, "", 0);
    send_forged();
    CHECK_INT(told.closed, 1);
    end(conn);
}

static void test_new_keys_in_pieces(void) {
    rd_conn *conn = open_forging();
    add_record(FORGED_HANDSHAKE, "\x18\x00", 2);
    send_forged();
    add_record(FORGED_HANDSHAKE, "\x00\x01\x00", 3);
    use_next_secret();
    add_record(FORGED_DATA, "with new keys", 13);
    send_forged();
    CHECK_BYTES(told.bytes, told.len, "with new keys");
    for (int i = 0; i < 40; i++) {
        add_record(FORGED_HANDSHAKE, "\x18\x00\x00\x01\x00", 5);
        use_next_secret();
    }
    add_record(FORGED_DATA, "too late", 8);
    send_forged();
    CHECK_BYTES(told.bytes, told.len, "with new keys");
    CHECK_INT(told.closed, 1);
    end(conn);
}

/* Each is an alert and the end. What came before it is served. */
static void test_messages_that_have_no_place_here(void) {
    static const struct {
        unsigned char type;
        char bytes[8];
        size_t len;
    } rows[] = {
        {FORGED_HANDSHAKE, "\x01\x00\x00\x00", 4},     /* a second ClientHello */
        {FORGED_HANDSHAKE, "\x04\x00\x00\x00", 4},     /* a ticket, from a client */
        {FORGED_HANDSHAKE, "\x0b\x00\x00\x00", 4},     /* a certificate nobody wanted */
        {FORGED_HANDSHAKE, "\x18\x00\x00\x01\x02", 5}, /* KeyUpdate has 0 and 1 */
        {FORGED_HANDSHAKE, "\x18\x00\x00\x02\x00\x00", 6},
        {FORGED_HANDSHAKE, "\x18\xff\xff\xff\x00", 5},
        {FORGED_HANDSHAKE, "", 0},
        {FORGED_ALERT, "\x02\x28", 2},
        {FORGED_ALERT, "\x02", 1},
        {20, "\x01", 1},
        {24, "\x01\x40\x00", 3}, /* Heartbeat */
        {99, "x", 1},
        {0, "", 0}, /* padding without a type */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rd_conn *conn = open_forging();
        add_record(FORGED_DATA, "ok", 2);
        add_record(rows[i].type, rows[i].bytes, rows[i].len);
        add_record(FORGED_DATA, "no", 2);
        send_forged();
        CHECK_SAYS(told.len == 2, "row %zu: %zu bytes were served", i, told.len);
        CHECK_SAYS(told.closed == 1, "row %zu: it is open", i);
        end(conn);
    }
}

/* ---- handshakes that stop ---- */

#define CROWD 8

static rd_conn *crowd[CROWD];
static tls_client clients[CROWD];
static int peers[CROWD];
static unsigned reset;

static void note_reset(rd_conn *conn, int code) {
    CHECK(rd_conn_is_open(conn));
    CHECK_INT(code, RD_ERR_HANDSHAKES_FULL);
    reset++;
}

static void open_crowd(void) {
    reset = 0;
    set.on_refused = note_reset;
    set.layers.owed_ns = 0;
    for (int i = 0; i < CROWD; i++) {
        clients[i] = new_client("a.test");
        crowd[i] = open_conn();
        peers[i] = peer;
    }
    turn();
}

static void choose(int index) {
    peer = peers[index];
    client = clients[index];
}

/* The first flight of this client, without `left_out` bytes of it. */
static void send_hello(int index, size_t left_out) {
    char *bytes;
    choose(index);
    do_handshake();
    const size_t len = take_ciphertext(&client, &bytes);
    send_raw(bytes, len - left_out);
    free(bytes);
}

static bool finish_handshake(int index) {
    choose(index);
    shaken = 1;
    return hear() > 0 && shake_hands_in_pieces(SIZE_MAX);
}

static uint64_t held(void) {
    return set.ledger.rows[RD_LEDGER_HANDSHAKES].held;
}

static void end_crowd(void) {
    for (int i = 0; i < CROWD; i++) {
        if (crowd[i]->state != RD_CONN_CLOSED) rd_conn_close(crowd[i]);
        rd_conn_unref(crowd[i]);
        close(peers[i]);
        free_client(&clients[i]);
    }
    turn();
    CHECK_INT(held(), 0);
    CHECK_INT(set.count, 0);
    CHECK(rd_list_is_empty(&set.layers.shaking));
    rd_ledger_limit(&set.ledger, RD_LEDGER_HANDSHAKES, UINT64_MAX);
    set.on_refused = NULL;
    set.ledger.rows[RD_LEDGER_HANDSHAKES].refused = 0;
}

/* It costs its own bytes and nothing else. */
static void test_half_a_hello_is_only_kept(void) {
    open_crowd();
    for (int i = 0; i < CROWD; i++) send_hello(i, 1);
    for (int i = 0; i < 3; i++) turn();
    CHECK_INT(held(), 0);
    for (int i = 0; i < CROWD; i++) {
        const rd_tls *tls = rd_conn_transport_state(crowd[i]);
        CHECK(tls->ssl == NULL && rd_buffer_len(&tls->ahead) > 100);
        CHECK(rd_conn_is_open(crowd[i]));
    }
    end_crowd();
}

static void test_handshakes_that_stop_have_a_limit(void) {
    open_crowd();
    rd_ledger_limit(&set.ledger, RD_LEDGER_HANDSHAKES, 3);
    for (int i = 0; i < 3; i++) {
        send_hello(i, 0);
        turn();
    }
    CHECK_INT(held(), 3);
    CHECK(finish_handshake(1)); /* and so leaves its place */
    CHECK_INT(held(), 2);
    send_hello(3, 0);
    turn();
    CHECK_INT(reset, 0);
    send_hello(4, 0);
    send_hello(5, 0);
    turn();
    turn();
    CHECK_INT(held(), 3);
    CHECK_INT(reset, 2);
    CHECK_INT(set.ledger.rows[RD_LEDGER_HANDSHAKES].refused, 2);
    CHECK_INT(crowd[0]->state, RD_CONN_CLOSED);
    CHECK_INT(crowd[1]->state, RD_CONN_OPEN);
    CHECK_INT(crowd[2]->state, RD_CONN_CLOSED);
    for (int i = 3; i < 6; i++) CHECK(finish_handshake(i));
    end_crowd();
}

/* They wait for the server, so none of them is reset. */
static void test_handshakes_in_line_are_not_reset(void) {
    open_crowd();
    rd_ledger_limit(&set.ledger, RD_LEDGER_HANDSHAKES, 1);
    for (int i = 0; i + 1 < CROWD; i += 2) {
        send_hello(i, 0);
        turn();
        choose(i);
        hear();
        CHECK_INT(do_handshake(), 1);
        send_hello(i + 1, 0);
        choose(i);
        shaken = 1;
        carry_in_pieces(SIZE_MAX);
        for (int turns = 0; turns < 3; turns++) turn();
        CHECK_INT(shaken, 0);
        CHECK_INT(held(), 1);
        CHECK(finish_handshake(i + 1));
        if (i == 2) turn(); /* the next one that is served is now of the other kind */
    }
    CHECK_INT(reset, 0);
    end_crowd();
}

/* ---- the time of a turn ---- */

static uint64_t handshake_ns; /* what each takes */

static rd_slice offer_slowly(size_t index) {
    if (index == 0) hand_clock_ns += handshake_ns;
    return index == 0 ? RD_SLICE("http/1.1") : RD_SLICE("");
}

/* Returns how many handshakes the next turn continues. */
static unsigned count_in_turn(void) {
    const uint64_t before = held();
    turn();
    return (unsigned)(held() - before);
}

/* All turns that are needed until no handshake stands in line. */
static void serve_all(void) {
    while (rd_conn_set_has_layers(&set)) turn();
}

/* `expected`: how many go on in each of the first turns, a digit for each turn. Between two turns
 * the server is busy for this long with other things. */
static void check_in_turns(uint64_t busy_ns, uint64_t each_ns, const char *expected) {
    open_crowd();
    set.offer = offer_slowly;
    handshake_ns = each_ns;
    for (int i = 0; i < CROWD; i++) {
        SSL_set_alpn_protos(clients[i].ssl, (const unsigned char *)"\x08http/1.1", 9);
        send_hello(i, 0);
    }
    for (const char *digit = expected; *digit != '\0'; digit++) {
        hand_clock_ns += busy_ns;
        CHECK_INT(count_in_turn(), *digit - '0');
    }
    serve_all();
    CHECK_INT(held(), CROWD);
    end_crowd();
}

/* One is one piece, however long it takes. The next turns make up for it, before another one goes
 * on. */
static void test_handshakes_have_a_millisecond_of_a_busy_turn(void) {
    check_in_turns(1000000, 500000, "222");
    check_in_turns(1000000, 400000, "323");
    check_in_turns(1000000, 3700000, "10010001");
    check_in_turns(1000000, 1000000000, "10000000010"); /* a turn for each millisecond, but few */
    check_in_turns(5000000, 500000, "222");
    check_in_turns(500000, 250000, "222");
}

static void test_handshakes_have_a_quarter_of_a_millisecond_of_any_turn(void) {
    check_in_turns(0, 250000, "1111");
    check_in_turns(0, 125000, "2222");
    check_in_turns(100000, 100000, "323");
    check_in_turns(0, 1000000, "100010001");
    was_idle = true; /* then it was not busy, however long ago the last turn was */
    check_in_turns(5000000, 250000, "1111");
    was_idle = false;
}

/* Who has begun is served beside a line of those that begin. */
static void test_one_that_goes_on_does_not_wait_for_all_that_begin(void) {
    open_crowd();
    send_hello(0, 0);
    turn();
    CHECK_INT(held(), 1);
    set.offer = offer_slowly;
    handshake_ns = 3700000;
    for (int i = 1; i < CROWD; i++) {
        SSL_set_alpn_protos(clients[i].ssl, (const unsigned char *)"\x08http/1.1", 9);
        send_hello(i, 0);
    }
    turn();
    choose(0);
    shaken = 1;
    hear();
    CHECK_INT(do_handshake(), 1);
    carry_in_pieces(SIZE_MAX);
    while (shaken == 1 && rd_conn_set_has_layers(&set)) turn();
    CHECK_INT(shaken, 0);
    CHECK(rd_conn_set_has_layers(&set)); /* others still wait */
    end_crowd();
}

/* The poller need not tell of them in each turn: it tells of so many sources at a time. */
static void test_handshakes_in_line_leave_the_poller_to_others(void) {
    open_crowd();
    set.offer = offer_slowly;
    handshake_ns = 3700000;
    for (int i = 0; i < CROWD; i++) {
        SSL_set_alpn_protos(clients[i].ssl, (const unsigned char *)"\x08http/1.1", 9);
        send_hello(i, 0);
    }
    turn();
    turn();
    CHECK(rd_loop_wait(&loop, &found, 0) <= 2);
    serve_all();
    turn();
    CHECK_INT(held(), CROWD);
    for (int i = 0; i < CROWD; i++) CHECK_INT(crowd[i]->source.interest, RD_READABLE);
    end_crowd();
}

/* ---- tiny records ---- */

enum { TINY = 1000 };

static unsigned heard_of[CROWD];

static void count_letters(rd_conn *conn, const char *bytes, size_t len) {
    int index = 0;
    while (crowd[index] != conn) index++;
    for (size_t i = 0; i < len; i++) CHECK(bytes[i] == (char)('a' + heard_of[index]++ % 26));
}

static unsigned heard_of_all(void) {
    unsigned sum = 0;
    for (int i = 0; i < CROWD; i++) sum += heard_of[i];
    return sum;
}

/* All connections have shaken hands, and have sent letters in records of one byte. */
static void open_tiny_crowd(void) {
    static rd_protocol counting;
    open_crowd();
    for (int i = 0; i < CROWD; i++) {
        send_hello(i, 0);
        turn_without_debt();
        CHECK(finish_handshake(i));
        counting = *crowd[i]->protocol;
        counting.on_data = count_letters;
        crowd[i]->protocol = &counting;
        heard_of[i] = 0;
    }
    for (int i = 0; i < CROWD; i++) {
        choose(i);
        for (int sent = 0; sent < TINY; sent++) say(&"abcdefghijklmnopqrstuvwxyz"[sent % 26], 1);
        char *bytes;
        const size_t len = take_ciphertext(&client, &bytes);
        send_raw(bytes, len);
        free(bytes);
    }
}

/* Whoever sends them gets a share of each turn, and takes nothing from the next client. */
static void test_tiny_records_have_a_share_of_a_turn(void) {
    open_tiny_crowd();
    turn();
    CHECK_INT(heard_of_all(), CROWD * 2 * 64); /* a share as they come, and one in line */
    CHECK(set.ledger.rows[RD_LEDGER_INPUT].held > 0);
    for (unsigned before; (before = heard_of_all()) < CROWD * TINY;) {
        unsigned least = TINY, most = 0;
        turn();
        CHECK(heard_of_all() > before && heard_of_all() - before <= 2 * CROWD * 64);
        for (int i = 0; i < CROWD; i++) {
            if (heard_of[i] < least) least = heard_of[i];
            if (heard_of[i] > most) most = heard_of[i];
        }
        CHECK(most - least <= 64);
    }
    CHECK_INT(set.ledger.rows[RD_LEDGER_INPUT].held, 0);
    for (int i = 0; i < CROWD; i++) CHECK_INT(heard_of[i], TINY);
    end_crowd();
}

/* What has come is in time, however long it waits for us. */
static void test_a_deadline_reads_tiny_records(void) {
    open_tiny_crowd();
    turn();
    const unsigned before = heard_of[0];
    rd_conn_set_deadline(crowd[0], loop.now_ms + 1000);
    hand_clock_ns += UINT64_C(2000) * 1000000;
    rd_loop_refresh(&loop);
    rd_timer_advance(&loop.timers, loop.now_ms);
    CHECK(heard_of[0] > before);
    CHECK_INT(crowd[0]->state, RD_CONN_OPEN);
    end_crowd();
}

/* Many deadlines may be due at once. What has come by then is in time, and stands in line. */
static void test_a_deadline_makes_no_handshake(void) {
    open_crowd();
    for (int i = 0; i < CROWD; i++) rd_conn_set_deadline(crowd[i], loop.now_ms + 1000);
    rd_ready_set nothing = {0};
    for (int i = 0; i < CROWD; i++) send_hello(i, 0);
    pass_ms(2000);
    rd_loop_process(&loop, &nothing);
    CHECK_INT(held(), 0);
    for (int i = 0; i < CROWD; i++) CHECK(rd_layer_is_in_line(crowd[i]));
    turn();
    CHECK_INT(held(), CROWD);
    end_crowd();
}

static void test_all(void) {
    test_empty_records();
    test_new_keys_in_pieces();
    test_messages_that_have_no_place_here();
    test_half_a_hello_is_only_kept();
    test_handshakes_that_stop_have_a_limit();
    test_handshakes_in_line_are_not_reset();
    test_tiny_records_have_a_share_of_a_turn();
    test_a_deadline_reads_tiny_records();
    test_handshakes_have_a_millisecond_of_a_busy_turn();
    test_handshakes_have_a_quarter_of_a_millisecond_of_any_turn();
    test_one_that_goes_on_does_not_wait_for_all_that_begin();
    test_handshakes_in_line_leave_the_poller_to_others();
    test_a_deadline_makes_no_handshake();
    test_small_records_that_the_client_wants();
    test_new_keys_in_one_piece();
}

int main(void) {
    return check_tls(test_all, false);
}

/* SPDX-License-Identifier: MIT
 *
 * A connection of TLS, with OpenSSL's own client at the other end of a socket pair: the handshake,
 * cut anywhere; records of every size; what a socket does not take; files; the end, in order and
 * without; what costs the server more than its peer. On both pollers.
 */

#include "check.h"
#include "hand_clock.h"
#include "heap_use.h"
#include "tls_conn.h"

/* ---- the handshake ---- */

static void test_a_handshake_and_bytes_both_ways(void) {
    rd_conn *conn = open_shaken();
    say("hello", 5);
    carry_in_pieces(SIZE_MAX);
    CHECK_BYTES(told.bytes, told.len, "hello");
    queue(conn, "and you", 7);
    turn();
    check_reads("and you");
    CHECK_INT(rd_conn_unsent(conn), 0);
    CHECK(conn->origin.secure);
    end(conn);
}

static void test_a_handshake_byte_by_byte(void) {
    client = new_client("a.test");
    rd_conn *conn = open_conn();
    CHECK(shake_hands_in_pieces(1));
    say("hello", 5);
    carry_in_pieces(1);
    CHECK_BYTES(told.bytes, told.len, "hello");
    end(conn);
}

/* The flight of this number, in two pieces. Returns its length. */
static size_t cut_flight(int flight, size_t cut) {
    size_t len = 0;
    client = new_client("a.test");
    rd_conn *conn = open_conn();
    for (int i = 0; i < 2; i++) {
        char *bytes;
        do_handshake();
        if (i == 1) say("early", 5);
        const size_t all = take_ciphertext(&client, &bytes);
        const size_t first = i == flight && cut < all ? cut : all;
        send_raw(bytes, first);
        turn();
        turn();
        if (i == flight) CHECK_INT(shaken == 0, i == 1 && first + 27 >= all);
        if (first < all) send_raw(bytes + first, all - first);
        for (int turns = 0; turns < 3; turns++) turn();
        hear();
        free(bytes);
        if (i == flight) len = all;
    }
    CHECK_INT(shaken, 0);
    CHECK_BYTES(told.bytes, told.len, "early");
    end(conn);
    return len;
}

static void test_a_handshake_may_be_cut_anywhere(void) {
    for (int flight = 0; flight < 2; flight++) {
        size_t len = 2;
        for (size_t cut = 1; cut < len; cut++) len = cut_flight(flight, cut);
    }
}

static void test_a_protocol_is_agreed_upon(void) {
    client = new_client(NULL);
    SSL_set_alpn_protos(client.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    rd_conn *conn = open_conn();
    CHECK(shake_hands_in_pieces(SIZE_MAX));
    CHECK_STR(agreed, "http/1.1");
    end(conn);
}

static void expect_refusal(int code, const char *alert) {
    client_reason[0] = '\0';
    rd_conn *conn = open_conn();
    CHECK(!shake_hands_in_pieces(SIZE_MAX));
    CHECK_INT(shaken, code);
    const char *heard = alert_heard();
    CHECK_SAYS(strstr(heard, alert) != NULL, "the client read: %s", heard);
    end(conn);
}

static void test_refusals_are_alerts(void) {
    client = new_client(NULL);
    SSL_set_alpn_protos(client.ssl, (const unsigned char *)"\x02h2", 3);
    expect_refusal(RD_ERR_TLS_PROTOCOL, "no application protocol");

    client = new_client(NULL);
    SSL_set_security_level(client.ssl, 0);
    SSL_set_max_proto_version(client.ssl, TLS1_1_VERSION);
    expect_refusal(RD_ERR_TLS_VERSION, "protocol version");

    client = new_client(NULL);
    SSL_set_max_proto_version(client.ssl, TLS1_2_VERSION);
    SSL_set_cipher_list(client.ssl, "AES128-GCM-SHA256");
    expect_refusal(RD_ERR_TLS_CIPHER, "handshake failure");
}

/* Whoever refuses such a client can say so in plain text. */
static void test_plain_http(void) {
    client = new_client(NULL);
    refusal = RD_SLICE("no");
    rd_conn *conn = open_conn();
    send_raw("GET / HTTP/1.1\r\n", 16);
    turn();
    CHECK_INT(shaken, RD_ERR_TLS_MISSING);
    refusal = RD_SLICE("");
    char bytes[8];
    CHECK_INT(recv(peer, bytes, sizeof(bytes), 0), 2);
    CHECK_BYTES(bytes, 2, "no");
    end(conn);
}

static void test_garbage(void) {
    client = new_client(NULL);
    rd_conn *conn = open_conn();
    send_raw("\x16\x03\x01\x00\x05\xff\xff\xff\xff\xff", 10);
    turn();
    CHECK(shaken < 0);
    turn();
    char bytes[16];
    CHECK_INT(recv(peer, bytes, sizeof(bytes), 0), 7);
    CHECK_INT(bytes[0], 21); /* an alert */
    end(conn);
}

/* A ClientHello that goes on and on. */
static void test_a_handshake_that_is_too_long(void) {
    static char record[5 + 16384] = "\x16\x03\x01\x40\x00\x01\x01\xff\x00\x03\x03";
    client = new_client(NULL);
    rd_conn *conn = open_conn();
    for (int i = 0; i < 5 && shaken == 1; i++) {
        if (i > 0) memset(record + 5, 'a', 16384);
        send_raw(record, sizeof(record));
        for (int turns = 0; turns < 3; turns++) turn();
    }
    CHECK(shaken == RD_ERR_TLS_TOO_LONG || shaken == RD_ERR_HANDSHAKE);
    end(conn);
}

static void test_a_client_that_leaves_in_its_handshake(void) {
    client = new_client(NULL);
    rd_conn *conn = open_conn();
    do_handshake();
    carry_in_pieces(100);
    shutdown(peer, SHUT_WR);
    turn();
    turn();
    CHECK_INT(shaken, RD_ERR_TLS_CUT);
    end(conn);
}

/* ---- records ---- */

static void test_two_requests_in_one_record_and_one_in_many(void) {
    rd_conn *conn = open_shaken();
    say("one two", 7);
    carry_in_pieces(SIZE_MAX);
    CHECK_BYTES(told.bytes, told.len, "one two");
    for (int i = 0; i < 50; i++) say(i % 10 == 9 ? "." : "x", 1);
    carry_in_pieces(SIZE_MAX);
    CHECK_INT(told.len, 57);
    CHECK_BYTES(told.bytes + 7, 10, "xxxxxxxxx.");
    end(conn);
}

static uint64_t received, wrong;

static void count_bytes(rd_conn *conn, const char *bytes, size_t len) {
    (void)conn;
    for (size_t i = 0; i < len; i++) wrong += bytes[i] != (char)((received + i) * 31 >> 3);
    received += len;
}

/* In pieces that leave the beginning of a record with OpenSSL, again and again. */
static void test_a_large_upload_in_odd_pieces(void) {
    static char bytes[1 << 20];
    rd_conn *conn = open_shaken();
    static rd_protocol counting;
    counting = *conn->protocol;
    counting.on_data = count_bytes;
    conn->protocol = &counting;
    received = wrong = 0;
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)(i * 31 >> 3);
    say(bytes, sizeof(bytes));
    char *all;
    const size_t len = take_ciphertext(&client, &all);
    for (size_t at = 0, size = 1; at < len; size = size * 3 % 70001 + 1) {
        const size_t left = len - at < size ? len - at : size;
        const ssize_t sent = send(peer, all + at, left, MSG_NOSIGNAL);
        if (sent > 0) at += (size_t)sent;
        turn();
    }
    for (int i = 0; i < 10; i++) turn();
    CHECK_INT(received, sizeof(bytes));
    CHECK_INT(wrong, 0);
    free(all);
    end(conn);
}

static void test_what_came_with_the_handshake_waits_while_reading_is_paused(void) {
    client = new_client(NULL);
    rd_conn *conn = open_conn();
    do_handshake();
    carry_in_pieces(SIZE_MAX);
    turn();
    hear();
    CHECK_INT(do_handshake(), 1);
    say("early", 5);
    rd_conn_pause_reading(conn);
    char *bytes;
    const size_t len = take_ciphertext(&client, &bytes);
    send_raw(bytes, len);
    free(bytes);
    rd_layer_may_read(conn);
    turn();
    turn();
    CHECK_INT(shaken, 0);
    CHECK_INT(told.len, 0);
    rd_conn_resume_reading(conn);
    turn();
    CHECK_BYTES(told.bytes, told.len, "early");
    end(conn);
}

/* ---- sending ---- */

static void test_what_a_socket_does_not_take_is_kept(void) {
    static char sent[3 << 20], got[3 << 20];
    rd_conn *conn = open_shaken();
    for (size_t i = 0; i < sizeof(sent); i++) sent[i] = (char)(i * 7 >> 2);
    queue(conn, sent, sizeof(sent));
    turn();
    turn();
    CHECK(rd_conn_unsent(conn) > 0 && rd_conn_unsent(conn) <= 65536);
    CHECK(conn->source.interest & RD_WRITABLE);
    CHECK(rd_conn_write_deadline(conn) != UINT64_MAX);
    CHECK_INT(read_all(got, sizeof(got)), sizeof(got));
    CHECK(memcmp(got, sent, sizeof(got)) == 0);
    turn();
    CHECK_INT(rd_conn_unsent(conn), 0);
    CHECK(rd_conn_write_deadline(conn) == UINT64_MAX);
    end(conn);
}

static int new_file(const char *bytes, size_t len) {
    char path[] = "/tmp/test_tls.XXXXXX";
    const int fd = mkstemp(path);
    unlink(path);
    CHECK_INT(write(fd, bytes, len), len);
    return fd;
}

static void test_a_file_behind_its_head(void) {
    static char sent[400000], got[400006];
    rd_conn *conn = open_shaken();
    for (size_t i = 0; i < sizeof(sent); i++) sent[i] = (char)(i * 5 >> 1);
    rd_file *file = rd_file_new(&loop, new_file(sent, sizeof(sent)), 0);
    file->memory = RD_FILE_IS_MEMORY;
    rd_outq_copy(&conn->out, &set.chunks, "head: ", 6);
    rd_outq_file(&conn->out, file, 0, sizeof(sent));
    rd_file_unref(file);
    rd_conn_mark_dirty(conn);
    CHECK_INT(read_all(got, sizeof(got)), sizeof(got));
    CHECK_BYTES(got, 6, "head: ");
    CHECK(memcmp(got + 6, sent, sizeof(sent)) == 0);
    end(conn);
}

static void test_a_file_that_has_become_shorter(void) {
    rd_conn *conn = open_shaken();
    rd_file *file = rd_file_new(&loop, new_file("short", 5), 0);
    file->memory = RD_FILE_IS_MEMORY;
    rd_outq_file(&conn->out, file, 0, 10);
    rd_file_unref(file);
    rd_conn_mark_dirty(conn);
    for (int i = 0; i < 3; i++) turn();
    CHECK_INT(told.files_cut, 1);
    CHECK_INT(told.closed, 1);
    end(conn);
}

/* ---- the end ---- */

static void test_an_orderly_end_has_a_last_message(void) {
    rd_conn *conn = open_shaken();
    queue(conn, "bye", 3);
    rd_conn_finish(conn, false);
    turn();
    check_reads("bye");
    CHECK(SSL_get_shutdown(client.ssl) & SSL_RECEIVED_SHUTDOWN);
    CHECK_INT(told.closed, 1);
    end(conn);
}

static void test_an_abort_has_none(void) {
    rd_conn *conn = open_shaken();
    rd_conn_reset(conn);
    turn();
    CHECK_INT(hear(), -1);
    CHECK(!(SSL_get_shutdown(client.ssl) & SSL_RECEIVED_SHUTDOWN));
    end(conn);
}

static void test_the_last_message_of_a_client(void) {
    rd_conn *conn = open_shaken();
    say("all", 3);
    SSL_shutdown(client.ssl);
    carry_in_pieces(SIZE_MAX);
    turn();
    CHECK_BYTES(told.bytes, told.len, "all");
    CHECK_INT(told.eofs, 1);
    queue(conn, "answer", 6);
    turn();
    check_reads("answer");
    end(conn);
}

static void test_an_end_without_a_last_message(void) {
    rd_conn *conn = open_shaken();
    shutdown(peer, SHUT_WR);
    turn();
    CHECK_INT(told.eofs, 1);
    queue(conn, "answer", 6);
    turn();
    check_reads("answer");
    end(conn);
}

/* ---- attacks ---- */

static void test_bytes_that_were_changed(void) {
    rd_conn *conn = open_shaken();
    say("hello", 5);
    char *bytes;
    const size_t len = take_ciphertext(&client, &bytes);
    bytes[len - 1] ^= 1;
    send_raw(bytes, len);
    free(bytes);
    turn();
    CHECK_INT(told.len, 0);
    CHECK_INT(told.closed, 1);
    CHECK(strstr(alert_heard(), "bad record mac") != NULL);
    end(conn);
}

static unsigned update_keys(rd_conn *conn, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (!rd_conn_is_open(conn)) return i;
        SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED);
        SSL_do_handshake(client.ssl);
        carry_in_pieces(SIZE_MAX);
        turn();
        hear();
        char byte;
        SSL_read(client.ssl, &byte, 1);
        ERR_clear_error();
    }
    return count;
}

static void test_new_keys_have_a_limit(void) {
    rd_conn *conn = open_shaken();
    CHECK_INT(update_keys(conn, 32), 32);
    say("still", 5);
    carry_in_pieces(SIZE_MAX);
    CHECK_BYTES(told.bytes, told.len, "still");
    pass_ms(61000);
    turn();
    CHECK_INT(update_keys(conn, 32), 32);
    CHECK(rd_conn_is_open(conn));
    update_keys(conn, 1);
    CHECK_INT(told.closed, 1);
    end(conn);
}

static void test_no_renegotiation(void) {
    client = new_client(NULL);
    SSL_set_max_proto_version(client.ssl, TLS1_2_VERSION);
    rd_conn *conn = open_conn();
    CHECK(shake_hands_in_pieces(SIZE_MAX));
    for (int i = 0; i < 40 && rd_conn_is_open(conn); i++) {
        SSL_renegotiate(client.ssl);
        SSL_do_handshake(client.ssl);
        ERR_clear_error();
        carry_in_pieces(SIZE_MAX);
        turn();
        hear();
    }
    CHECK_INT(shaken, 0);
    CHECK(rd_conn_unsent(conn) < 4096);
    end(conn);
}

/* The application's OpenSSL has the same queue. */
static void test_errors_of_others_do_no_harm(void) {
    rd_conn *conn = open_shaken();
    say("hello", 5);
    char *bytes;
    const size_t len = take_ciphertext(&client, &bytes);
    send_raw(bytes, len);
    free(bytes);
    ERR_raise(ERR_LIB_SSL, SSL_R_BAD_PACKET);
    turn();
    CHECK_BYTES(told.bytes, told.len, "hello");
    end(conn);
}

/* ---- memory ---- */

#define IDLE 64

static void print_memory_of_an_idle_connection(void) {
    rd_conn *conns[IDLE];
    int peers[IDLE];
    size_t before = 0;
    for (int i = 0; i < IDLE; i++) {
        if (i == 8) before = heap_use();
        conns[i] = open_shaken();
        say("hello", 5);
        carry_in_pieces(SIZE_MAX);
        peers[i] = peer;
        free_client(&client);
    }
    if (before != 0 && heap_use() > before) {
        printf("an idle connection takes %zu bytes\n", (heap_use() - before) / (IDLE - 8));
    }
    for (int i = 0; i < IDLE; i++) {
        rd_conn_close(conns[i]);
        rd_conn_unref(conns[i]);
        close(peers[i]);
    }
    turn();
    CHECK_INT(set.count, 0);
}

static void test_all(void) {
    test_a_handshake_and_bytes_both_ways();
    test_a_handshake_byte_by_byte();
    test_a_handshake_may_be_cut_anywhere();
    test_a_protocol_is_agreed_upon();
    test_refusals_are_alerts();
    test_plain_http();
    test_garbage();
    test_a_handshake_that_is_too_long();
    test_a_client_that_leaves_in_its_handshake();
    test_two_requests_in_one_record_and_one_in_many();
    test_a_large_upload_in_odd_pieces();
    test_what_came_with_the_handshake_waits_while_reading_is_paused();
    test_what_a_socket_does_not_take_is_kept();
    test_a_file_behind_its_head();
    test_a_file_that_has_become_shorter();
    test_an_orderly_end_has_a_last_message();
    test_an_abort_has_none();
    test_the_last_message_of_a_client();
    test_an_end_without_a_last_message();
    test_bytes_that_were_changed();
    test_new_keys_have_a_limit();
    test_no_renegotiation();
    test_errors_of_others_do_no_harm();
    print_memory_of_an_idle_connection();
}

int main(void) {
    return check_tls(test_all, false);
}

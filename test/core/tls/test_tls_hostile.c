/* SPDX-License-Identifier: MIT
 *
 * Clients of TLS that do what no honest client does, or what few do: see tls.c, tls_flow.c and
 * tls_handshake.c.
 */
#include "check.h"
#include "hand_clock.h"
#include "tls_conn.h"

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

static void test_all(void) {
    test_small_records_that_the_client_wants();
    test_new_keys_in_one_piece();
}

int main(void) {
    return check_tls(test_all, false);
}

/* SPDX-License-Identifier: MIT
 *
 * Many handshakes, each ended in one of the ways in which handshakes and connections end; then
 * nothing is held, and the leak sanitizer finds nothing. RONDO_HANDSHAKES says how many. See tls.c
 * and tls_handshake.c.
 */
#include "check.h"
#include "hand_clock.h"
#include "tls_conn.h"

static const char *count_text;

static void finish_orderly(rd_conn *conn) {
    say("hello", 5);
    carry_in_pieces(SIZE_MAX);
    queue(conn, "answer", 6);
    rd_conn_finish(conn, false);
    turn();
    check_reads("answer");
}

static void leave_in_the_middle(rd_conn *conn) {
    say("hello", 5);
    char *bytes;
    const size_t len = take_ciphertext(&client, &bytes);
    send_raw(bytes, len - 1); /* of a record */
    free(bytes);
    turn();
    rd_conn_reset(conn);
}

static void be_refused(rd_conn *conn) {
    send_raw("nonsense, and no record", 23);
    turn();
    turn();
    CHECK_INT(conn->state, RD_CONN_CLOSED);
}

/* One that begins, with a flight whose last `left_out` bytes do not come. */
static void stop_in_the_handshake(size_t left_out) {
    char *bytes;
    client = new_client("a.test");
    rd_conn *conn = open_conn();
    do_handshake();
    const size_t len = take_ciphertext(&client, &bytes);
    send_raw(bytes, len - left_out);
    free(bytes);
    turn();
    end(conn);
}

static void refuse_in_the_handshake(void) {
    client = new_client(NULL);
    SSL_set_alpn_protos(client.ssl, (const unsigned char *)"\x02h2", 3);
    rd_conn *conn = open_conn();
    CHECK(!shake_hands_in_pieces(SIZE_MAX));
    end(conn);
}

static void run(void (*step)(rd_conn *conn)) {
    rd_conn *conn = open_shaken();
    step(conn);
    end(conn);
}

static void test_many(void) {
    const int count = count_text == NULL ? 100 : atoi(count_text);
    for (int i = 0; i < count; i += 6) {
        run(finish_orderly);
        run(leave_in_the_middle);
        run(be_refused);
        stop_in_the_handshake(0);
        stop_in_the_handshake(9);
        refuse_in_the_handshake();
    }
    for (int kind = 0; kind < RD_LEDGER_KINDS; kind++) CHECK_INT(set.ledger.rows[kind].held, 0);
}

int main(void) {
    count_text = getenv("RONDO_HANDSHAKES");
    return check_tls(test_many, false);
}

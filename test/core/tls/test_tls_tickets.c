/* SPDX-License-Identifier: MIT
 *
 * Tickets: which listener resumes a session of which other one, for how long, and after a reload of
 * certificates. One TLS 1.3, one TLS 1.2. See tls_tickets.c, tls_sets.c and tls_context.c.
 */
#include "check.h"
#include "hand_clock.h"
#include "tls_conn.h"
#include "tls/ticket_keys.h"

static identity authority, first, again, both, second;
static rd_ticket_keys *keys;
static int version;
static int tickets; /* that the client has got in this handshake */
static SSL_SESSION *session;

/* ---- a client with a memory ---- */

static int on_session(SSL *ssl, SSL_SESSION *next) {
    (void)ssl;
    SSL_SESSION_free(session);
    session = next;
    tickets++;
    return 1;
}

static void forget(void) {
    SSL_SESSION_free(session);
    session = NULL;
}

static bool is_ticket_of(SSL_SESSION *one, SSL_SESSION *other) {
    const unsigned char *bytes, *others;
    size_t len, others_len;
    SSL_SESSION_get0_ticket(one, &bytes, &len);
    SSL_SESSION_get0_ticket(other, &others, &others_len);
    return len == others_len && memcmp(bytes, others, len) == 0;
}

/* Without a farewell OpenSSL would spoil the session. Of a session of TLS 1.2 that is resumed it
 * does not tell that there is another ticket. */
static void leave(void) {
    SSL_set_quiet_shutdown(client.ssl, 1);
    SSL_shutdown(client.ssl);
    if (SSL_session_reused(client.ssl) && version == TLS1_2_VERSION) {
        SSL_SESSION *next = SSL_get1_session(client.ssl);
        if (is_ticket_of(session, next))
            SSL_SESSION_free(next);
        else
            on_session(client.ssl, next);
    }
}

/* Shakes hands, and keeps the last ticket. Returns what the server says of it. */
static int meet(const rd_transport *server, const char *name, const identity *who) {
    transport = server;
    client = new_client(name);
    SSL_CTX_set_session_cache_mode(client.shared,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(client.shared, on_session);
    SSL_set_max_proto_version(client.ssl, version);
    if (session != NULL) {
        SSL_SESSION *offered = SSL_SESSION_dup(session);
        SSL_set_session(client.ssl, offered);
        SSL_SESSION_free(offered);
    }
    if (who != NULL) {
        SSL_use_certificate(client.ssl, who->certificate);
        SSL_use_PrivateKey(client.ssl, who->key);
    }
    tickets = 0;
    rd_conn *conn = open_conn();
    char byte;
    shake_hands_in_pieces(SIZE_MAX);
    turn();
    hear();
    if (SSL_is_init_finished(client.ssl)) SSL_read(client.ssl, &byte, 1);
    ERR_clear_error();
    if (SSL_is_init_finished(client.ssl)) leave();
    const bool resumed = SSL_session_reused(client.ssl);
    end(conn);
    return shaken == 0 ? resumed : shaken;
}

static const rd_transport *make(rd_tls_options options) {
    char error[RD_TLS_ERROR_MAX];
    options.keys = keys;
    const rd_transport *made = rd_tls_new(&options, error);
    CHECK_SAYS(made != NULL, "%s", error);
    return made;
}

static const rd_transport *make_for(const identity *one, rd_tls_verify verify) {
    const rd_tls_pair pair = pair_of(one);
    return make((rd_tls_options){.pairs = &pair,
                                 .pair_count = 1,
                                 .verify = verify,
                                 .ca = text(authority.pem),
                                 .ca_name = "ca.pem"});
}

/* ---- what resumes ---- */

static void test_any_process_with_the_keys_resumes(void) {
    const rd_transport *here = make_for(&first, RD_TLS_VERIFY_NONE);
    const rd_transport *there = make_for(&first, RD_TLS_VERIFY_NONE);
    CHECK_INT(meet(here, "first.test", NULL), 0);
    CHECK_INT(tickets, 1);
    for (int i = 0; i < 6; i++) {
        CHECK_INT(meet(i % 2 == 0 ? there : here, "first.test", NULL), 1);
        /* One of TLS 1.3 is used once. Another one of TLS 1.2 would be for nothing. */
        CHECK_INT(tickets, version == TLS1_3_VERSION);
    }
    rd_transport_unref(here);
    rd_transport_unref(there);
    forget();
}

static void test_no_other_process_does(void) {
    const rd_transport *here = make_for(&first, RD_TLS_VERIFY_NONE);
    CHECK_INT(meet(here, "first.test", NULL), 0);
    rd_transport_unref(here);
    rd_ticket_keys *ours = keys;
    keys = NULL;
    const rd_transport *there = make_for(&first, RD_TLS_VERIFY_NONE);
    CHECK_INT(meet(there, "first.test", NULL), 0);
    CHECK_INT(meet(there, "first.test", NULL), 1);
    rd_transport_unref(there);
    keys = ours;
    forget();
}

static void test_names_are_kept_apart(void) {
    const rd_tls_pair pairs[] = {pair_of(&first), pair_of(&second)};
    const rd_transport *made = make((rd_tls_options){.pairs = pairs, .pair_count = 2});
    CHECK_INT(meet(made, "first.test", NULL), 0);
    CHECK_INT(meet(made, "second.test", NULL), 0);
    CHECK_INT(meet(made, "second.test", NULL), 1);
    CHECK_INT(meet(made, "first.test", NULL), 0);
    rd_transport_unref(made);
    forget();
}

/* CVE-2025-23419 was that: a ticket of a server that asks for no certificate opened one that
 * does. */
static void test_a_ticket_is_no_certificate_of_a_client(void) {
    identity friend = new_identity((wish){.common_name = "friend", .issuer = &authority});
    const rd_transport *open = make_for(&first, RD_TLS_VERIFY_NONE);
    const rd_transport *peer_only = make_for(&first, RD_TLS_VERIFY_PEER);
    const rd_transport *closed = make_for(&first, RD_TLS_VERIFY_FORCE);
    CHECK_INT(meet(open, "first.test", NULL), 0);
    CHECK_INT(meet(closed, "first.test", NULL), RD_ERR_TLS_CLIENT_MISSING);
    forget();
    CHECK_INT(meet(peer_only, "first.test", NULL), 0);
    CHECK_INT(meet(closed, "first.test", NULL), RD_ERR_TLS_CLIENT_MISSING);
    forget();
    CHECK_INT(meet(closed, "first.test", &friend), 0);
    CHECK_INT(meet(closed, "first.test", NULL), 1); /* it has shown the certificate before */
    CHECK_INT(meet(open, "first.test", NULL), 0);
    const rd_transport *all[] = {open, peer_only, closed};
    for (size_t i = 0; i < 3; i++) rd_transport_unref(all[i]);
    free_identity(&friend);
    forget();
}

static void test_a_stricter_listener_resumes_nothing_of_a_laxer_one(void) {
    const rd_tls_pair pair = pair_of(&first);
    const rd_transport *lax = make_for(&first, RD_TLS_VERIFY_NONE);
    const rd_transport *strict = make((rd_tls_options){
        .pairs = &pair, .pair_count = 1, .ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384"});
    CHECK_INT(meet(lax, "first.test", NULL), 0);
    CHECK_INT(meet(strict, "first.test", NULL), 0);
    rd_transport_unref(lax);
    rd_transport_unref(strict);
    forget();
}

/* ---- time ---- */

static void pass_hours(uint64_t hours) {
    pass_ms(hours * 3600 * 1000);
    turn(); /* the loop's clock */
}

static void test_an_older_key_still_decrypts(void) {
    const rd_transport *made = make_for(&first, RD_TLS_VERIFY_NONE);
    CHECK_INT(meet(made, "first.test", NULL), 0);
    SSL_SESSION *old = SSL_SESSION_dup(session);
    pass_hours(8);
    CHECK_INT(meet(made, "first.test", NULL), 1);
    CHECK_INT(tickets, 1); /* with the newest key, also in TLS 1.2 */
    SSL_SESSION *renewed = SSL_SESSION_dup(session);
    pass_hours(12);
    forget();
    CHECK_INT(meet(made, "first.test", NULL), 0); /* a third key */
    pass_hours(3);
    forget();
    session = renewed;
    CHECK_INT(meet(made, "first.test", NULL), 1);
    forget();
    session = old;
    pass_hours(1);
    CHECK_INT(meet(made, "first.test", NULL), 0);
    rd_transport_unref(made);
    forget();
}

/* Each ticket is young, and the session is not. */
static void test_a_session_lasts_a_day(void) {
    const rd_transport *made = make_for(&first, RD_TLS_VERIFY_NONE);
    CHECK_INT(meet(made, "first.test", NULL), 0);
    for (int i = 0; i < 6; i++) {
        pass_hours(4);
        CHECK_INT(meet(made, "first.test", NULL), 1);
    }
    pass_hours(1);
    CHECK_INT(meet(made, "first.test", NULL), 0);
    rd_transport_unref(made);
    forget();
}

/* ---- a reload ---- */

static void reload(const rd_transport *made, const identity *one) {
    char error[RD_TLS_ERROR_MAX];
    const rd_tls_pair pair = pair_of(one);
    const rd_tls_options options = {.pairs = &pair,
                                    .pair_count = 1,
                                    .ca = text(authority.pem),
                                    .ca_name = "ca.pem",
                                    .keys = keys};
    CHECK(!rd_tls_shows(made, &options));
    rd_tls_sets *sets = rd_tls_sets_new(&options, error);
    CHECK_SAYS(sets != NULL, "%s", error);
    rd_tls_sets_free(rd_tls_show(made, sets));
    CHECK(rd_tls_shows(made, &options));
}

static void expect_certificate(const identity *expected) {
    X509 *shown = SSL_get1_peer_certificate(client.ssl);
    CHECK(shown != NULL && X509_cmp(shown, expected->certificate) == 0);
    X509_free(shown);
}

static void test_a_reload_of_the_same_names_keeps_tickets(void) {
    const rd_transport *made = make_for(&first, RD_TLS_VERIFY_NONE);
    CHECK_INT(meet(made, "first.test", NULL), 0);
    reload(made, &again);
    CHECK_INT(meet(made, "first.test", NULL), 1);
    reload(made, &both);
    CHECK_INT(meet(made, "first.test", NULL), 0);
    CHECK_INT(meet(made, "first.test", NULL), 1);
    rd_transport_unref(made);
    forget();
}

static void test_open_connections_survive_a_reload(void) {
    const rd_transport *made = make_for(&first, RD_TLS_VERIFY_NONE);
    transport = made;
    rd_conn *conn = open_shaken();
    expect_certificate(&first);
    reload(made, &again);
    reload(made, &both);
    say("hello", 5);
    carry_in_pieces(SIZE_MAX);
    CHECK_BYTES(told.bytes, told.len, "hello");
    queue(conn, "answer", 6);
    check_reads("answer");
    end(conn);
    conn = open_shaken();
    expect_certificate(&both);
    end(conn);
    rd_transport_unref(made);
}

/* Half of the ClientHello comes before the reload, and the rest after it. */
static void test_a_reload_within_a_handshake(void) {
    const rd_transport *made = make_for(&first, RD_TLS_VERIFY_NONE);
    transport = made;
    client = new_client("first.test");
    rd_conn *conn = open_conn();
    char *bytes;
    do_handshake();
    const size_t len = take_ciphertext(&client, &bytes);
    send_raw(bytes, len / 2);
    turn();
    reload(made, &again);
    send_raw(bytes + len / 2, len - len / 2);
    free(bytes);
    for (int i = 0; i < 3; i++) turn();
    hear();
    CHECK(shake_hands_in_pieces(SIZE_MAX));
    expect_certificate(&again);
    end(conn);
    rd_transport_unref(made);
}

static void (*const of_each_version[])(void) = {
    test_any_process_with_the_keys_resumes,
    test_no_other_process_does,
    test_names_are_kept_apart,
    test_a_ticket_is_no_certificate_of_a_client,
    test_a_stricter_listener_resumes_nothing_of_a_laxer_one,
    test_an_older_key_still_decrypts,
    test_a_session_lasts_a_day,
    test_a_reload_of_the_same_names_keeps_tickets,
    test_open_connections_survive_a_reload,
    test_a_reload_within_a_handshake,
};

static void test_all(void) {
    for (version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        for (size_t i = 0; i < sizeof(of_each_version) / sizeof(of_each_version[0]); i++) {
            keys = rd_ticket_keys_new(-1);
            of_each_version[i]();
            rd_ticket_keys_unref(keys);
        }
    }
}

int main(void) {
    authority = new_identity((wish){.common_name = "authority", .is_authority = true});
    first = new_identity((wish){.names = "DNS:first.test"});
    again = new_identity((wish){.names = "DNS:first.test", .is_rsa = true});
    both = new_identity((wish){.names = "DNS:first.test,DNS:second.test"});
    second = new_identity((wish){.names = "DNS:second.test"});
    const int result = check_on_both_pollers(test_all);
    identity *all[] = {&authority, &first, &again, &both, &second};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) free_identity(all[i]);
    return result;
}

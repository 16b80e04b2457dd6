/* SPDX-License-Identifier: MIT
 *
 * tls/tls_client: handshakes of outgoing connections with OpenSSL's server, whole and byte by byte;
 * whom they believe, what they show and ask for; peers that say something else; options that cannot
 * be used.
 */
#include "check.h"
#include "tls_conn.h"

#include "tls/tls_client.h"

static identity authority, stranger, ours;
static rd_tls_client_options options;
static const char *name;
static char error[RD_TLS_ERROR_MAX];

static void call(rd_conn *conn) {
    told.opened++;
    conn->transport->name_peer(conn, name);
    rd_layer_begin(conn, NULL, 0);
}

static const char *reason;

static void note_end(rd_conn *conn, int code) {
    reason = code == 0 ? "" : rd_layer_reason(conn);
    note_handshake(conn, code);
}

static rd_conn *open_call(void) {
    static rd_protocol calling;
    calling = notes;
    calling.on_open = call;
    calling.on_handshake = note_end;
    shaken = 1;
    reason = NULL;
    transport = rd_tls_client_new(&options, error);
    CHECK_SAYS(transport != NULL, "%s", error);
    rd_conn *conn = open_pair_with(transport, &calling, &peer);
    rd_conn_ref(conn);
    turn_without_debt(); /* we speak first */
    return conn;
}

/* The helpers of tls_conn.h carry for whoever is at the other end: here it is a server. */
static void new_server(const identity *shown) {
    client = (tls_client){.shared = SSL_CTX_new(TLS_server_method())};
    SSL_CTX_use_certificate(client.shared, shown->certificate);
    SSL_CTX_use_PrivateKey(client.shared, shown->key);
    client.ssl = SSL_new(client.shared);
    client.to = BIO_new(BIO_s_mem());
    client.from = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(client.to, -1);
    SSL_set_bio(client.ssl, client.to, client.from);
    SSL_set_accept_state(client.ssl);
    client_reason[0] = '\0';
}

static void finish(rd_conn *conn) {
    end(conn);
    rd_transport_unref(transport);
}

static rd_conn *shake(const identity *shown, size_t piece) {
    new_server(shown);
    rd_conn *conn = open_call();
    hear();
    shake_hands_in_pieces(piece);
    return conn;
}

static void begin_options(void) {
    options =
        (rd_tls_client_options){.verifies = true, .ca = text(authority.pem), .ca_name = "ca.pem"};
    name = "a.test";
}

/* ---- peers that are believed ---- */

static void check_talks(rd_conn *conn) {
    CHECK_INT(shaken, 0);
    CHECK(SSL_is_init_finished(client.ssl));
    queue(conn, "from us", 7);
    check_reads("from us");
    say("to us", 5);
    carry_in_pieces(1);
    CHECK_BYTES(told.bytes, told.len, "to us");
}

static void test_whole_and_in_pieces(void) {
    static const size_t pieces[] = {SIZE_MAX, 1, 7, 100};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        begin_options();
        rd_conn *conn = shake(&own, pieces[i]);
        check_talks(conn);
        CHECK_STR(SSL_get_servername(client.ssl, TLSEXT_NAMETYPE_host_name), "a.test");
        finish(conn);
    }
}

static void test_tls_1_2(void) {
    begin_options();
    new_server(&own);
    SSL_set_max_proto_version(client.ssl, TLS1_2_VERSION);
    rd_conn *conn = open_call();
    hear();
    shake_hands_in_pieces(SIZE_MAX);
    check_talks(conn);
    finish(conn);
}

/* An address is no name to ask for; a dot at the end of a name is not in a certificate. */
static void test_names(void) {
    static const struct {
        const char *name, *asked;
    } rows[] = {{"127.0.0.1", NULL}, {"::1", NULL}, {"::1%lo", NULL}, {"a.test.", "a.test"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin_options();
        name = rows[i].name;
        rd_conn *conn = shake(&own, SIZE_MAX);
        CHECK_SAYS(shaken == 0, "%s: %s", name, reason);
        const char *asked = SSL_get_servername(client.ssl, TLSEXT_NAMETYPE_host_name);
        CHECK_STR(asked == NULL ? "" : asked, rows[i].asked == NULL ? "" : rows[i].asked);
        finish(conn);
    }
}

static void test_whoever(void) {
    begin_options();
    options.verifies = false;
    options.ca = RD_SLICE("");
    name = "other.test";
    rd_conn *conn = shake(&stranger, SIZE_MAX);
    check_talks(conn);
    finish(conn);
}

static void test_what_we_show(void) {
    const rd_tls_pair pair = pair_of(&ours);
    begin_options();
    options.pair = &pair;
    options.protocols = RD_SLICE("\3one\3two");
    new_server(&own);
    SSL_set_verify(client.ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(client.shared), authority.certificate);
    rd_conn *conn = open_call();
    hear();
    shake_hands_in_pieces(SIZE_MAX);
    check_talks(conn);
    X509 *seen = SSL_get0_peer_certificate(client.ssl);
    CHECK(seen != NULL && X509_cmp(seen, ours.certificate) == 0);
    finish(conn);
}

/* ---- peers that are not ---- */

static void check_refused(const identity *shown, const char *why) {
    rd_conn *conn = shake(shown, SIZE_MAX);
    CHECK(shaken < 0);
    CHECK_STR(reason == NULL ? "" : reason, why);
    CHECK_INT(told.len, 0);
    finish(conn);
}

static void test_not_believed(void) {
    begin_options();
    name = "other.test";
    check_refused(&own, "hostname mismatch");
    name = "127.0.0.2";
    check_refused(&own, "IP address mismatch");
    name = "a.test";
    options.ca = text(stranger.pem);
    check_refused(&own, "unable to get local issuer certificate");
    begin_options();
    check_refused(&stranger, "self-signed certificate");
}

static void test_something_else(void) {
    begin_options();
    new_server(&own);
    rd_conn *conn = open_call();
    send_raw("HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    for (int i = 0; i < 3; i++) turn_without_debt();
    CHECK_STR(reason == NULL ? "" : reason, "wrong version number");
    finish(conn);
}

static void test_an_end(void) {
    begin_options();
    new_server(&own);
    rd_conn *conn = open_call();
    shutdown(peer, SHUT_RDWR);
    for (int i = 0; i < 3; i++) turn_without_debt();
    CHECK_INT(shaken, RD_ERR_TLS_CUT);
    finish(conn);
}

static void test_nothing_comes(void) {
    begin_options();
    new_server(&own);
    rd_conn *conn = open_call();
    for (int i = 0; i < 3; i++) turn_without_debt();
    CHECK_INT(shaken, 1);
    CHECK(rd_conn_is_open(conn));
    finish(conn);
}

/* ---- options ---- */

static void refuse(const char *why) {
    CHECK(rd_tls_client_new(&options, error) == NULL);
    CHECK_STR(error, why);
}

static void test_options(void) {
    rd_tls_pair pair = pair_of(&ours);
    begin_options();
    options.ca = RD_SLICE("");
    refuse("ca.pem: it has no certificate");
    begin_options();
    options.protocols = RD_SLICE("\5one");
    refuse("alpn: a name is not valid");
    begin_options();
    pair.key = text(own.key_pem);
    options.pair = &pair;
    CHECK(rd_tls_client_new(&options, error) == NULL);
    CHECK(strchr(error, '\n') == NULL);
}

static void test_all(void) {
    test_whole_and_in_pieces();
    test_tls_1_2();
    test_names();
    test_whoever();
    test_what_we_show();
    test_not_believed();
    test_something_else();
    test_an_end();
    test_nothing_comes();
    test_options();
}

int main(void) {
    authority = new_identity((wish){.common_name = "authority", .is_authority = true});
    own = new_identity((wish){
        .names = "DNS:a.test,IP:127.0.0.1,IP:::1", .common_name = "own", .issuer = &authority});
    ours = new_identity((wish){.common_name = "ours", .issuer = &authority});
    stranger = new_identity((wish){.names = "DNS:a.test", .common_name = "stranger"});
    const int result = check_on_both_pollers(test_all);
    identity *all[] = {&authority, &own, &ours, &stranger};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) free_identity(all[i]);
    return result;
}

/* SPDX-License-Identifier: MIT
 *
 * What a listener for TLS is made of: certificates by name and by type of key, ciphers, clients
 * with certificates, tickets; and what cannot be used, in words. Handshakes are done in memory,
 * through a connection on a socket pair.
 */
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "check.h"
#include "conn_notes.h"
#include "tls_peer.h"
#include "transport/layer.h"

static identity authority, first, first_rsa, second, wild;
static char error[RD_TLS_ERROR_MAX];
static int shaken;
static bool is_raw;

/* ---- a handshake ---- */

static void begin_at_once(rd_conn *conn) {
    rd_layer_begin(conn, NULL, 0);
}

static void note_handshake(rd_conn *conn, int code) {
    shaken = code;
    if (code != 0) rd_conn_finish(conn, false);
}

static void carry(tls_client *client, int peer) {
    char *bytes, heard[16384];
    const size_t len = take_ciphertext(client, &bytes);
    if (len > 0) CHECK_INT(send(peer, bytes, len, MSG_NOSIGNAL), len);
    free(bytes);
    for (int i = 0; i < 3; i++) {
        rd_conn_set_flush(&set);
        rd_loop_wait(&loop, &found, 0);
        rd_loop_process(&loop, &found);
        set.layers.owed_ns = 0; /* the clock is the machine's: no step is too long */
        rd_conn_set_serve_layers(&set, false);
    }
    for (ssize_t got; (got = recv(peer, heard, sizeof(heard), 0)) > 0;) {
        BIO_write(client->to, heard, (int)got);
    }
}

/* Returns what the server says of it. */
static int shake_hands(const rd_transport *transport, tls_client *client) {
    static rd_protocol shaking;
    const rd_address nobody = {0};
    int pair[2];
    char byte;
    shaking = notes;
    shaking.on_open = begin_at_once;
    shaking.on_handshake = note_handshake;
    shaking.is_silent = is_raw;
    shaken = 1;
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    rd_conn *conn = rd_conn_open(&set, pair[0], transport, &shaking, &nobody);
    rd_conn_ref(conn);
    rd_conn_read_now(conn);
    for (int i = 0; i < 5; i++) {
        if (SSL_do_handshake(client->ssl) == 1) SSL_read(client->ssl, &byte, 1); /* a ticket */
        ERR_clear_error();
        carry(client, pair[1]);
    }
    rd_conn_close(conn);
    rd_conn_unref(conn);
    rd_loop_process(&loop, &found);
    close(pair[1]);
    return shaken;
}

static const rd_transport *make(const rd_tls_options *options) {
    const rd_transport *made = rd_tls_new(options, error);
    CHECK_SAYS(made != NULL, "%s", error);
    return made;
}

/* ---- names ---- */

static void expect_certificate(const rd_transport *transport, const char *name, const char *types,
                               const identity *expected) {
    tls_client client = new_client(name);
    if (types != NULL) SSL_set1_sigalgs_list(client.ssl, types);
    CHECK_INT(shake_hands(transport, &client), 0);
    X509 *shown = SSL_get1_peer_certificate(client.ssl);
    CHECK_SAYS(shown != NULL && X509_cmp(shown, expected->certificate) == 0, "for %s", name);
    X509_free(shown);
    free_client(&client);
}

static void test_certificates_by_name_and_type_of_key(void) {
    const rd_tls_pair pairs[] = {pair_of(&first), pair_of(&first_rsa), pair_of(&second),
                                 pair_of(&wild)};
    const rd_transport *made = make(&(rd_tls_options){.pairs = pairs, .pair_count = 4});
    expect_certificate(made, NULL, NULL, &first);
    expect_certificate(made, "first.test", NULL, &first);
    expect_certificate(made, "first.test", "rsa_pss_rsae_sha256", &first_rsa);
    expect_certificate(made, "FIRST.test", "rsa_pss_rsae_sha256", &first_rsa);
    expect_certificate(made, "second.test", NULL, &second);
    expect_certificate(made, "any.wild.test", NULL, &wild);
    expect_certificate(made, "a.b.wild.test", NULL, &first);
    expect_certificate(made, "unknown.test", NULL, &first);
    expect_certificate(made, "127.0.0.1", NULL, &first);
    expect_certificate(made, "second.test.", NULL, &first);
    rd_transport_unref(made);
}

/* ---- protocols ---- */

static void expect_protocol(const rd_transport *transport, const char *wanted, int code,
                            const char *expected) {
    const unsigned char *name;
    unsigned len;
    tls_client client = new_client(NULL);
    if (wanted != NULL) {
        SSL_set_alpn_protos(client.ssl, (const unsigned char *)wanted, (unsigned)strlen(wanted));
    }
    CHECK_INT(shake_hands(transport, &client), code);
    SSL_get0_alpn_selected(client.ssl, &name, &len);
    CHECK_BYTES((const char *)name, len, expected);
    free_client(&client);
}

/* What the listener was given counts for raw connections alone, and may be replaced. */
static void test_protocols_of_raw_connections(void) {
    const rd_tls_pair pair = pair_of(&first);
    rd_tls_options options = {.pairs = &pair, .pair_count = 1};
    const rd_transport *none = make(&options);
    options.protocols = RD_SLICE("\x03own\x05other");
    const rd_transport *made = make(&options);
    CHECK(rd_tls_shows(made, &options) && !rd_tls_shows(none, &options));
    is_raw = true;
    expect_protocol(none, "\x03own", 0, "");
    expect_protocol(made, NULL, 0, "");
    expect_protocol(made, "\x02h2\x05other\x03own", 0, "own");
    expect_protocol(made, "\x02h2\x05other", 0, "other");
    expect_protocol(made, "\x02h2\x04ownx", RD_ERR_TLS_PROTOCOL, "");
    options.protocols = RD_SLICE("\x02h2");
    rd_tls_sets *sets = rd_tls_sets_new(&options, error);
    rd_tls_sets_free(rd_tls_show(made, sets));
    expect_protocol(made, "\x02h2\x03own", 0, "h2");
    is_raw = false;
    expect_protocol(made, "\x02h2", 0, ""); /* these connections have none to choose from */
    rd_transport_unref(none);
    rd_transport_unref(made);
}

/* ---- tickets ---- */

static bool resumes(const rd_transport *transport, const char *name, SSL_SESSION *session) {
    tls_client client = new_client(name);
    SSL_set_session(client.ssl, session);
    CHECK_INT(shake_hands(transport, &client), 0);
    const bool resumed = SSL_session_reused(client.ssl);
    free_client(&client);
    return resumed;
}

static void test_a_ticket_is_good_for_its_certificates_only(void) {
    const rd_tls_pair pairs[] = {pair_of(&first), pair_of(&second)};
    const rd_transport *made = make(&(rd_tls_options){.pairs = pairs, .pair_count = 2});
    tls_client client = new_client("first.test");
    CHECK_INT(shake_hands(made, &client), 0);
    SSL_SESSION *session = SSL_SESSION_dup(SSL_get0_session(client.ssl));
    SSL_SESSION *same = SSL_SESSION_dup(session);
    CHECK(SSL_SESSION_is_resumable(session));
    free_client(&client); /* which spoils its session, as nobody said farewell */
    CHECK(resumes(made, "first.test", session));
    CHECK(!resumes(made, "second.test", same));
    SSL_SESSION_free(session);
    SSL_SESSION_free(same);
    rd_transport_unref(made);
}

/* ---- ciphers ---- */

static void expect_cipher(const rd_transport *transport, const char *suites, const char *expected) {
    tls_client client = new_client(NULL);
    if (suites != NULL) SSL_set_ciphersuites(client.ssl, suites);
    CHECK_INT(shake_hands(transport, &client), 0);
    CHECK_STR(SSL_get_cipher_name(client.ssl), expected);
    free_client(&client);
}

static void test_ciphers(void) {
    const rd_tls_pair pair = pair_of(&first);
    const rd_transport *made = make(&(rd_tls_options){.pairs = &pair, .pair_count = 1});
    expect_cipher(made, NULL, "TLS_AES_128_GCM_SHA256");
    expect_cipher(made, "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256",
                  "TLS_CHACHA20_POLY1305_SHA256");
    expect_cipher(made, "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256",
                  "TLS_AES_256_GCM_SHA384");
    rd_transport_unref(made);
    made = make(&(rd_tls_options){
        .pairs = &pair, .pair_count = 1, .ciphersuites = "TLS_AES_256_GCM_SHA384"});
    expect_cipher(made, NULL, "TLS_AES_256_GCM_SHA384");
    rd_transport_unref(made);
}

/* ---- clients with certificates ---- */

static int shake_hands_as(const rd_transport *transport, const identity *who, int version) {
    tls_client client = new_client(NULL);
    if (version != 0) SSL_set_max_proto_version(client.ssl, version);
    if (who != NULL) {
        SSL_use_certificate(client.ssl, who->certificate);
        SSL_use_PrivateKey(client.ssl, who->key);
    }
    const int result = shake_hands(transport, &client);
    free_client(&client);
    return result;
}

static void test_clients(void) {
    identity friend = new_identity((wish){.common_name = "friend", .issuer = &authority});
    identity old = new_identity(
        (wish){.common_name = "old", .issuer = &authority, .from_days = -9, .to_days = -1});
    identity stranger = new_identity((wish){.common_name = "stranger"});
    const rd_tls_pair pair = pair_of(&first);
    rd_tls_options options = {.pairs = &pair,
                              .pair_count = 1,
                              .ca = text(authority.pem),
                              .ca_name = "ca.pem",
                              .verify = RD_TLS_VERIFY_PEER};
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        options.verify = RD_TLS_VERIFY_PEER;
        const rd_transport *made = make(&options);
        CHECK_INT(shake_hands_as(made, NULL, version), 0);
        CHECK_INT(shake_hands_as(made, &friend, version), 0);
        CHECK_INT(shake_hands_as(made, &stranger, version), RD_ERR_TLS_CLIENT_INVALID);
        CHECK_INT(shake_hands_as(made, &old, version), RD_ERR_TLS_CLIENT_INVALID);
        rd_transport_unref(made);
        options.verify = RD_TLS_VERIFY_FORCE;
        made = make(&options);
        CHECK_INT(shake_hands_as(made, NULL, version), RD_ERR_TLS_CLIENT_MISSING);
        CHECK_INT(shake_hands_as(made, &friend, version), 0);
        rd_transport_unref(made);
    }
    options.verification_flags = "NO_CHECK_TIME,PARTIAL_CHAIN";
    const rd_transport *made = make(&options);
    CHECK_INT(shake_hands_as(made, &old, 0), 0);
    rd_transport_unref(made);
    free_identity(&friend);
    free_identity(&old);
    free_identity(&stranger);
}

/* ---- what cannot be used ---- */

static void refuse(const rd_tls_options *options, const char *reason) {
    CHECK(rd_tls_new(options, error) == NULL);
    CHECK_SAYS(strstr(error, reason) != NULL, "it says: %s", error);
    CHECK_INT(ERR_peek_error(), 0);
}

static void refuse_pair(rd_tls_pair pair, const char *reason) {
    refuse(&(rd_tls_options){.pairs = &pair, .pair_count = 1}, reason);
}

static const char *encrypted_key(void) {
    static char pem[4096];
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, first.key, EVP_aes_128_cbc(), NULL, 0, NULL,
                             (void *)(uintptr_t) "secret");
    write_pem(bio, pem, sizeof(pem));
    BIO_free(bio);
    return pem;
}

static void test_pairs_that_cannot_be_used(void) {
    static char both[8192];
    rd_tls_pair pair = pair_of(&first);
    pair.certificates = RD_SLICE("nothing");
    refuse_pair(pair, "cert.pem has no certificate");
    pair = pair_of(&first);
    pair.certificates = RD_SLICE("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    refuse_pair(pair, "cert.pem has a malformed certificate");
    pair = pair_of(&first);
    pair.key = RD_SLICE("");
    refuse_pair(pair, "key.pem has no private key");
    pair.key = text(second.key_pem);
    refuse_pair(pair, "key.pem is not the key of cert.pem");
    pair = pair_of(&first);
    snprintf(both, sizeof(both), "%s%s", authority.pem, first.pem);
    pair.certificates = text(both);
    refuse_pair(pair, "cert.pem has its certificates in the wrong order");
    pair = pair_of(&first);
    pair.key = text(encrypted_key());
    refuse_pair(pair, "the key in key.pem is encrypted, and there is no password");
    pair.password = "wrong";
    refuse_pair(pair, "the password does not open the key in key.pem");
    pair.password = "secret";
    rd_transport_unref(make(&(rd_tls_options){.pairs = &pair, .pair_count = 1}));
}

static void test_dates(void) {
    identity old = new_identity((wish){.from_days = -20, .to_days = -10});
    identity early = new_identity((wish){.from_days = 2});
    refuse_pair(pair_of(&old), "the certificate in cert.pem expired on 20");
    refuse_pair(pair_of(&early), "the certificate in cert.pem is not valid before 20");
    free_identity(&old);
    free_identity(&early);
}

static void test_options_that_cannot_be_used(void) {
    const rd_tls_pair pair = pair_of(&first);
    rd_tls_options options = {.pairs = &pair, .pair_count = 1, .ciphers = "NO-SUCH"};
    refuse(&options, "ssl_cipher_filter: no cipher match");
    options.ciphers = NULL;
    options.ciphersuites = "NO-SUCH";
    refuse(&options, "ssl_ciphersuites: no cipher match");
    options.ciphersuites = NULL;
    options.verify = RD_TLS_VERIFY_PEER;
    options.ca = RD_SLICE("");
    options.ca_name = "ca.pem";
    refuse(&options, "ca.pem: it has no certificate");
    options.ca = text(authority.pem);
    options.verification_flags = "CRL_CHECK,PARTIAL";
    refuse(&options, "verification_flags: unknown flag PARTIAL");
}

static void test_all(void) {
    test_certificates_by_name_and_type_of_key();
    test_protocols_of_raw_connections();
    test_a_ticket_is_good_for_its_certificates_only();
    test_ciphers();
    test_clients();
    test_pairs_that_cannot_be_used();
    test_dates();
    test_options_that_cannot_be_used();
}

int main(void) {
    authority = new_identity((wish){.common_name = "authority", .is_authority = true});
    first = new_identity((wish){.names = "DNS:first.test"});
    first_rsa = new_identity((wish){.names = "DNS:First.test,DNS:other.test", .is_rsa = true});
    second = new_identity((wish){.names = "DNS:second.test"});
    wild = new_identity((wish){.names = "DNS:*.wild.test"});
    const int result = check_on_both_pollers(test_all);
    identity *all[] = {&authority, &first, &first_rsa, &second, &wild};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) free_identity(all[i]);
    return result;
}

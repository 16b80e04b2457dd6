/* SPDX-License-Identifier: MIT
 *
 * What is known of a client: its certificate, what protects the connection, the name that it asked
 * for; which handshakes are counted as what, and why one has failed. On both pollers.
 */
#include "check.h"
#include "tls_conn.h"
#include "transport/identity.h"

#include <openssl/x509.h>

static void serve(rd_tls_verify verify) {
    static char error[RD_TLS_ERROR_MAX];
    const rd_tls_pair pair = pair_of(&own);
    transport = rd_tls_new(&(rd_tls_options){.pairs = &pair,
                                             .pair_count = 1,
                                             .ca = text(own.pem),
                                             .ca_name = "ca.pem",
                                             .verify = verify},
                           error);
    CHECK_SAYS(transport != NULL, "%s", error);
}

static rd_conn *shake(const char *name, const identity *who) {
    client = new_client(name);
    if (who != NULL) {
        SSL_use_certificate(client.ssl, who->certificate);
        SSL_use_PrivateKey(client.ssl, who->key);
    }
    rd_conn *conn = open_conn();
    shake_hands_in_pieces(SIZE_MAX);
    return conn;
}

static rd_identity read_identity(rd_conn *conn) {
    rd_identity read = {0};
    CHECK(rd_identity_owner(conn) == conn);
    rd_identity_read(&read, conn);
    CHECK_INT(ERR_peek_error(), 0);
    return read;
}

static void test_a_listener_that_does_not_ask(void) {
    serve(RD_TLS_VERIFY_NONE);
    rd_conn *conn = shake("a.test", NULL);
    CHECK(rd_identity_owner(conn) == NULL);
    end(conn);
    rd_transport_unref(transport);
}

static void test_a_certificate(void) {
    serve(RD_TLS_VERIFY_PEER);
    rd_conn *conn = shake("a.test", &own);
    rd_identity read = read_identity(conn);
    const unsigned char *der = (unsigned char *)rd_buffer_ptr(&read.certificate);
    X509 *certificate = d2i_X509(NULL, &der, (long)rd_buffer_len(&read.certificate));
    CHECK(certificate != NULL && X509_cmp(certificate, own.certificate) == 0);
    CHECK(read.is_asked && read.invalid == NULL && read.protocol == NULL);
    X509_free(certificate);
    rd_identity_clear(&read);
    const uint64_t number = rd_identity_number(conn);
    end(conn);
    conn = shake("a.test", NULL);
    CHECK(rd_identity_number(conn) != number);
    read = read_identity(conn);
    CHECK(read.is_asked && rd_buffer_len(&read.certificate) == 0);
    rd_identity_clear(&read);
    end(conn);
    rd_transport_unref(transport);
}

static void expect_name(const char *name, const char *expected) {
    rd_conn *conn = shake(name, NULL);
    rd_identity read = read_identity(conn);
    CHECK_BYTES(read.server_name, read.server_name_len, expected);
    CHECK_STR(read.protocol, "TLSv1.3");
    CHECK_STR(read.cipher, "TLS_AES_128_GCM_SHA256");
    rd_identity_clear(&read);
    end(conn);
}

static void test_protection(void) {
    char longest[RD_IDENTITY_NAME_MAX + 1];
    memset(longest, 'a', RD_IDENTITY_NAME_MAX);
    longest[RD_IDENTITY_NAME_MAX] = '\0';
    serve(RD_TLS_VERIFY_NONE);
    settings.tls_env = 1;
    expect_name("a.test", "a.test");
    expect_name(longest, longest);
    expect_name(NULL, "");
    expect_name("a\r\nb", "");
    expect_name("a b", "");
    expect_name("\xc3\xa4.test", "");
    settings.tls_env = 0;
    rd_transport_unref(transport);
}

static void test_what_handshakes_came_to(void) {
    const rd_shaken before = set.shaken;
    identity stranger = new_identity((wish){.common_name = "stranger"});
    serve(RD_TLS_VERIFY_PEER);
    rd_conn *conn = shake("a.test", NULL);
    CHECK_INT(set.shaken.full - before.full, 1);
    CHECK_INT(set.shaken.open, 1);
    end(conn);
    CHECK_INT(set.shaken.open, 0);
    conn = shake("a.test", &stranger);
    CHECK_INT(shaken, RD_ERR_TLS_CLIENT_INVALID);
    CHECK_STR(rd_layer_reason(conn), "self-signed certificate");
    CHECK_INT(set.shaken.failed - before.failed, 1);
    end(conn);
    client = new_client("a.test");
    conn = open_conn(); /* which says nothing */
    end(conn);
    client = new_client("a.test");
    conn = open_conn();
    send_raw("\x16\x03\x01", 3);
    turn();
    turn();
    end(conn);
    CHECK_INT(set.shaken.failed - before.failed, 2);
    CHECK_INT(set.shaken.full - before.full, 1);
    CHECK_INT(set.shaken.resumed - before.resumed, 0);
    CHECK_INT(set.shaken.open, 0);
    free_identity(&stranger);
    rd_transport_unref(transport);
}

static void test_all(void) {
    test_a_listener_that_does_not_ask();
    test_a_certificate();
    test_protection();
    test_what_handshakes_came_to();
}

int main(void) {
    own = new_identity((wish){.names = "DNS:a.test", .is_authority = true});
    const int result = check_on_both_pollers(test_all);
    free_identity(&own);
    return result;
}

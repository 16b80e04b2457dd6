/* SPDX-License-Identifier: MIT
 *
 * What TLS knows of a client; see tls_identity.h.
 */
#include "tls/tls_identity.h"

#include <openssl/x509.h>

#include "base/alloc.h"
#include "transport/identity.h"

static bool asks(const SSL *ssl) {
    return SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE;
}

void rd_tls_note_identity(rd_conn *conn) {
    if (!asks(rd_tls_of(conn)->ssl) && conn->set->settings->tls_env == 0) return;
    rd_conn_layer(conn)->identity = ++conn->set->shaken.identities;
}

static bool is_visible(rd_slice name) {
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] <= ' ' || name.ptr[i] > '~') return false;
    }
    return true;
}

/* A client that is asked to try again sends a second ClientHello. */
void rd_tls_note_server_name(rd_conn *conn, rd_slice name) {
    rd_tls *tls = rd_tls_of(conn);
    rd_free(tls->server_name);
    tls->server_name = NULL;
    if (name.len == 0 || name.len > RD_IDENTITY_NAME_MAX || !is_visible(name)) return;
    tls->server_name = rd_alloc(name.len + 1);
    memcpy(tls->server_name, name.ptr, name.len);
    tls->server_name[name.len] = '\0';
}

static void add_certificate(const SSL *ssl, rd_identity *identity) {
    X509 *certificate = SSL_get0_peer_certificate(ssl);
    unsigned char *bytes = NULL;
    const int len = certificate == NULL ? 0 : i2d_X509(certificate, &bytes);
    if (len > 0) rd_buffer_append(&identity->certificate, (char *)bytes, (size_t)len);
    OPENSSL_free(bytes);
    const long result = SSL_get_verify_result(ssl);
    if (result != X509_V_OK) identity->invalid = X509_verify_cert_error_string(result);
}

static void add_protection(const rd_tls *tls, rd_identity *identity) {
    identity->protocol = SSL_get_version(tls->ssl);
    identity->cipher = SSL_get_cipher_name(tls->ssl);
    if (tls->server_name == NULL) return;
    identity->server_name_len = strlen(tls->server_name);
    memcpy(identity->server_name, tls->server_name, identity->server_name_len);
}

void rd_tls_identify(rd_conn *conn, rd_identity *identity) {
    const rd_tls *tls = rd_tls_of(conn);
    rd_tls_flow *flow = rd_tls_enter(conn, NULL, 0);
    identity->is_asked = asks(tls->ssl);
    if (identity->is_asked) add_certificate(tls->ssl, identity);
    if (conn->set->settings->tls_env != 0) add_protection(tls, identity);
    rd_tls_leave(flow, false);
}

/* SPDX-License-Identifier: MIT
 *
 * The handshake of TLS, and what OpenSSL asks meanwhile; see tls_handshake.h.
 */
#include "tls/tls_handshake.h"

#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tls/tls_identity.h"
#include "tls/tls_sets.h"
#include "transport/layer.h"

#define EXTRA_MAX        32 /* messages behind the handshake, within EXTRA_MS */
#define EXTRA_MS         60000
#define HANDSHAKE_RECORD 22

static void hear(rd_conn *conn, const char *bytes, size_t len) {
    rd_conn_layer(conn)->has_heard = true;
    rd_buffer_append(&rd_tls_of(conn)->ahead, bytes, len);
}

void rd_tls_begin(rd_conn *conn, const char *ahead, size_t len) {
    if (len > 0) hear(conn, ahead, len);
}

/* NULL: no memory, or no random numbers. */
static SSL *make_ssl(rd_conn *conn, SSL_CTX *set) {
    rd_tls_context *context = rd_tls_context_of(conn);
    BIO *bio = BIO_new(context->method);
    SSL *ssl = SSL_new(set);
    if (bio == NULL || ssl == NULL) {
        BIO_free(bio);
        SSL_free(ssl);
        ERR_clear_error();
        return NULL;
    }
    BIO_set_data(bio, &context->flow);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_app_data(ssl, conn);
    return rd_tls_of(conn)->ssl = ssl;
}

void rd_tls_end(rd_conn *conn) {
    rd_tls *tls = rd_tls_of(conn);
    rd_shaken *shaken = &conn->set->shaken;
    if (tls->has_shaken) shaken->open--;
    if (!tls->has_shaken && rd_conn_layer(conn)->has_heard) shaken->failed++;
    rd_conn_layer(conn)->has_heard = false;
    rd_tls_give_up_keeper(conn);
    SSL_free(tls->ssl);
    tls->ssl = NULL;
    tls->has_shaken = false;
    rd_free(tls->server_name);
    tls->server_name = NULL;
}

/* From here on the connection has the bare socket, so that whoever refuses it can say so, and wait
 * until that is read. */
static int give_up(rd_conn *conn, int code) {
    rd_tls_end(conn);
    rd_buffer_clear(&rd_tls_of(conn)->ahead);
    return code;
}

static void note_success(rd_conn *conn) {
    rd_tls *tls = rd_tls_of(conn);
    rd_shaken *shaken = &conn->set->shaken;
    tls->has_shaken = true;
    shaken->open++;
    *(SSL_session_reused(tls->ssl) ? &shaken->resumed : &shaken->full) += 1;
    if (SSL_is_server(tls->ssl)) rd_tls_note_identity(conn);
}

/* What went wrong, in OpenSSL's words. Where our own say it all: NULL. */
static const char *reason_of(const SSL *ssl, int code) {
    if (code == RD_ERR_TLS_CLIENT_INVALID) {
        return X509_verify_cert_error_string(SSL_get_verify_result(ssl));
    }
    if (!SSL_is_server(ssl))
        return ERR_reason_error_string(ERR_peek_error()); /* ours are of clients */
    const bool is_any = code == RD_ERR_TLS_ALERT || code == RD_ERR_HANDSHAKE;
    return is_any ? ERR_reason_error_string(ERR_peek_error()) : NULL;
}

/* What went wrong, for the log. Errors of other libraries, which led to it, come first. */
static int code_of_error(void) {
    unsigned long error;
    while ((error = ERR_peek_error()) != 0 && ERR_GET_LIB(error) != ERR_LIB_SSL) ERR_get_error();
    switch (ERR_GET_REASON(error)) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
        return RD_ERR_TLS_VERSION;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SHARED_GROUPS:
        return RD_ERR_TLS_CIPHER;
    case SSL_R_CALLBACK_FAILED: /* choose_set() */
        return RD_ERR_TLS_UNKNOWN;
    case SSL_R_NO_APPLICATION_PROTOCOL:
        return RD_ERR_TLS_PROTOCOL;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return RD_ERR_TLS_CLIENT_MISSING;
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return RD_ERR_TLS_CLIENT_INVALID;
    default:
        break;
    }
    const int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
    return alert >= 0 && alert < 256 ? RD_ERR_TLS_ALERT : RD_ERR_HANDSHAKE;
}

static int go_on(rd_conn *conn, const char *came, size_t len) {
    rd_tls *tls = rd_tls_of(conn);
    rd_tls_flow *flow = rd_tls_enter(conn, came, len);
    const int result = SSL_do_handshake(tls->ssl);
    const bool waits = result != 1 && SSL_get_error(tls->ssl, result) == SSL_ERROR_WANT_READ;
    const int code = result == 1 ? 1 : waits ? 0 : code_of_error();
    if (code == 1) rd_buffer_append(&tls->ahead, flow->came, flow->came_len);
    if (code < 0) tls->reason = reason_of(tls->ssl, code);
    rd_tls_leave(flow, false);
    return code;
}

/* The last message, a ticket, leaves with the first answer if that comes at once. */
static void send_handshake(rd_conn *conn, bool is_over) {
    if (rd_tls_flow_of(conn)->out_len > 0 && is_over) {
        rd_tls_keep_out(conn, true);
        rd_conn_mark_dirty(conn);
    } else if (rd_tls_unsent(conn) > 0) {
        rd_tls_keep_out(conn, false);
        rd_tls_flush(conn);
    } else {
        rd_tls_send_out(conn);
    }
}

/* Each of HTTP's methods begins with a letter, and a record does not. */
static bool is_plain_http(const rd_buffer *came) {
    if (rd_buffer_len(came) == 0) return false;
    const char byte = rd_buffer_ptr(came)[0];
    return byte >= 'A' && byte <= 'Z';
}

static int look_at_hello(rd_tls *tls) {
    const rd_slice came = rd_slice_of(rd_buffer_ptr(&tls->ahead), rd_buffer_len(&tls->ahead));
    if (is_plain_http(&tls->ahead)) return RD_ERR_TLS_MISSING;
    return rd_tls_hello_scan(&tls->hello, came);
}

/* Keeps what has come: never more than one go_on() takes. Returns 1: the ClientHello is whole; or
 * what a handshake returns. */
static int await_hello(rd_conn *conn) {
    rd_tls *tls = rd_tls_of(conn);
    char *bytes = conn->set->loop->receive;
    const int before =
        look_at_hello(tls); /* it may stand in line again, or follow a PROXY header */
    if (before != 0) return before;
    const size_t room = sizeof(conn->set->loop->receive) - rd_buffer_len(&tls->ahead);
    const ssize_t came = rd_transport_tcp.read(conn, bytes, room);
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (came <= 0) return rd_buffer_len(&tls->ahead) > 0 ? RD_ERR_TLS_CUT : RD_ERR_CLOSED;
    hear(conn, bytes, (size_t)came);
    return look_at_hello(tls);
}

/* Returns 1: OpenSSL can go on; or what a handshake returns. */
static int begin_handshake(rd_conn *conn) {
    const int code = await_hello(conn);
    if (code != 1) return code;
    if (!rd_layer_admit(conn)) return 0;
    SSL *ssl = make_ssl(conn, rd_tls_context_of(conn)->sets->all[0]);
    if (ssl == NULL) return RD_ERR_HANDSHAKE;
    SSL_set_accept_state(ssl);
    return 1;
}

int rd_tls_handshake(rd_conn *conn) {
    rd_tls *tls = rd_tls_of(conn);
    char *bytes = conn->set->loop->receive;
    const int begun = tls->ssl == NULL ? begin_handshake(conn) : 1;
    if (begun != 1) return begun < 0 ? give_up(conn, begun) : 0;
    const ssize_t came = rd_tls_receive(conn, bytes, sizeof(conn->set->loop->receive));
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (came <= 0) return give_up(conn, RD_ERR_TLS_CUT);
    tls->shaken += (uint32_t)came;
    int code = go_on(conn, bytes, (size_t)came);
    if (code == 0 && tls->shaken > RD_TLS_HANDSHAKE_MAX) code = RD_ERR_TLS_TOO_LONG;
    if (code == 1) note_success(conn);
    send_handshake(conn, code == 1);
    return code < 0 ? give_up(conn, code) : code;
}

/* ---- outgoing connections ---- */

/* An address has no name to ask for (RFC 6066, section 3), and its zone is not in a certificate. A
 * name may end with a dot, a certificate's does not. */
static bool ask_for(SSL *ssl, char *name) {
    name[strcspn(name, "%")] = '\0';
    const size_t len = strlen(name);
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1) return true;
    ERR_clear_error();
    if (len > 1 && name[len - 1] == '.') name[len - 1] = '\0';
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, name) == 1;
}

/* Our part of it comes first. Returns what a handshake returns. */
static int speak_first(rd_conn *conn) {
    if (!rd_layer_admit(conn)) return 0;
    SSL *ssl = make_ssl(conn, rd_tls_context_of(conn)->rules);
    if (ssl == NULL || !ask_for(ssl, rd_tls_of(conn)->server_name)) return RD_ERR_HANDSHAKE;
    SSL_set_connect_state(ssl);
    rd_conn_layer(conn)->has_heard = true; /* whatever becomes of it counts */
    const int code = go_on(conn, NULL, 0);
    send_handshake(conn, false);
    return code;
}

int rd_tls_call(rd_conn *conn) {
    if (rd_tls_of(conn)->ssl != NULL) return rd_tls_handshake(conn);
    const int code = speak_first(conn);
    return code < 0 ? give_up(conn, code) : code;
}

/* ---- the result ---- */

const char *rd_tls_failure(rd_conn *conn) {
    return rd_tls_of(conn)->reason;
}

rd_slice rd_tls_agreed(rd_conn *conn) {
    const unsigned char *name = NULL;
    unsigned len = 0;
    const SSL *ssl = rd_tls_of(conn)->ssl;
    if (ssl != NULL) SSL_get0_alpn_selected(ssl, &name, &len);
    return rd_slice_of((const char *)name, len);
}

/* ---- what OpenSSL asks in the handshake ---- */

/* Whether `names` (each behind its length) has the name. Sets where it lies. */
static bool has_name(rd_slice wanted, const unsigned char *names, unsigned len,
                     const unsigned char **found) {
    for (unsigned at = 0, name; at < len; at += 1 + name) {
        name = names[at];
        if (at + 1 + name > len) return false;
        *found = names + at + 1;
        if (rd_slice_equal(wanted, rd_slice_of((const char *)*found, name))) return true;
    }
    return false;
}

/* What a client names, and what becomes of it. */
typedef struct rd_tls_choice {
    const unsigned char *names;
    unsigned len;
    const unsigned char **chosen;
    unsigned char *chosen_len;
} rd_tls_choice;

static bool takes(const rd_tls_choice *choice, rd_slice ours) {
    if (!has_name(ours, choice->names, choice->len, choice->chosen)) return false;
    *choice->chosen_len = (unsigned char)ours.len;
    return true;
}

static bool takes_one_of(const rd_tls_choice *choice, rd_slice list) {
    for (size_t at = 0, len; at < list.len; at += 1 + len) {
        len = (unsigned char)list.ptr[at];
        if (takes(choice, rd_slice_of(list.ptr + at + 1, len))) return true;
    }
    return false;
}

/* Clients of HTTP/2 may refuse ciphers without AEAD or without forward secrecy, after they have
 * agreed to it (RFC 9113, section 9.2.2). An operator's filter may allow them for TLS 1.2. */
static bool is_fit(const SSL *ssl, rd_slice protocol) {
    const SSL_CIPHER *cipher = SSL_get_pending_cipher(ssl);
    if (cipher == NULL || !rd_slice_equal(protocol, RD_SLICE("h2"))) return true;
    const int exchange = SSL_CIPHER_get_kx_nid(cipher);
    return SSL_CIPHER_is_aead(cipher) &&
           (exchange == NID_kx_any || exchange == NID_kx_ecdhe || exchange == NID_kx_dhe);
}

/* The first of ours that the client names, too (RFC 7301). What is spoken on a raw connection is
 * for the application to say. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_len,
                           const unsigned char *names, unsigned len, void *nothing) {
    rd_conn *conn = SSL_get_app_data(ssl);
    const rd_tls_choice choice = {names, len, chosen, chosen_len};
    const rd_slice own = rd_tls_context_of(conn)->sets->protocols;
    const bool is_raw = conn->protocol->is_silent;
    rd_slice ours;
    (void)nothing;
    if (is_raw ? own.len == 0 : conn->set->offer == NULL) return SSL_TLSEXT_ERR_NOACK;
    if (is_raw) return takes_one_of(&choice, own) ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
    for (size_t i = 0; (ours = conn->set->offer(i)).len > 0; i++) {
        if (is_fit(ssl, ours) && takes(&choice, ours)) return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* The name in the extension (RFC 6066, section 3): a list of one, behind its length. Empty: there
 * is none that can be used. */
static rd_slice server_name(SSL *ssl) {
    const rd_slice none = {0};
    const unsigned char *bytes;
    size_t len;
    if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes, &len)) return none;
    if (len < 5 || (size_t)(bytes[0] << 8 | bytes[1]) != len - 2) return none;
    if (bytes[2] != TLSEXT_NAMETYPE_host_name) return none;
    const size_t name = (size_t)(bytes[3] << 8 | bytes[4]);
    return name > len - 5 ? none : rd_slice_of((const char *)bytes + 5, name);
}

/* Before OpenSSL looks at a ticket: that is good for one set and its client CA. The name of the
 * server comes too late for that. SSL_set_SSL_CTX() leaves the verify mode as it is, and takes over
 * the session's. A second ClientHello may ask for another name, and the certificates may have been
 * replaced since the first one. */
static int choose_set(SSL *ssl, int *alert, void *nothing) {
    rd_conn *conn = SSL_get_app_data(ssl);
    const rd_slice name = server_name(ssl);
    SSL_CTX *set = rd_tls_sets_find(rd_tls_context_of(conn)->sets, name);
    (void)nothing;
    if (conn->set->settings->tls_env != 0) rd_tls_note_server_name(conn, name);
    if (SSL_CTX_get0_certificate(set) == NULL) {
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_CLIENT_HELLO_ERROR;
    }
    if (set != SSL_get_SSL_CTX(ssl)) {
        SSL_set_SSL_CTX(ssl, set);
        SSL_set_verify(ssl, SSL_CTX_get_verify_mode(set), NULL);
    }
    return SSL_CLIENT_HELLO_SUCCESS;
}

/* Messages that are neither data nor a part of the first handshake: each costs the server more than
 * its peer (new keys, an alert for an answer). Called by OpenSSL. */
static void on_message(int written, int version, int type, const void *bytes, size_t len, SSL *ssl,
                       void *nothing) {
    rd_conn *conn = SSL_get_app_data(ssl);
    rd_tls *tls = rd_tls_of(conn);
    (void)version, (void)bytes, (void)len, (void)nothing;
    const bool is_extra = written ? type == SSL3_RT_ALERT : type == HANDSHAKE_RECORD;
    if (!is_extra || !tls->has_shaken) return;
    const uint64_t now = conn->set->loop->now_ms;
    if (now - tls->extra_since_ms > EXTRA_MS) {
        tls->extra_since_ms = now;
        tls->extra = 0;
    }
    if (++tls->extra <= EXTRA_MAX) return;
    tls->has_failed = true;
    rd_tls_flow_of(conn)->came_len = 0; /* one SSL_read takes as many of them as there are */
}

void rd_tls_limit_messages(SSL_CTX *set) {
    SSL_CTX_set_msg_callback(set, on_message);
}

void rd_tls_prepare_set(SSL_CTX *set) {
    rd_tls_limit_messages(set);
    SSL_CTX_set_alpn_select_cb(set, choose_protocol, NULL);
    SSL_CTX_set_client_hello_cb(set, choose_set, NULL);
}

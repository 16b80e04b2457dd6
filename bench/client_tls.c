/* SPDX-License-Identifier: MIT
 *
 * TLS for the clients by OpenSSL, see client_tls.h. */
#include "client_tls.h"

#include "client_base.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

enum { RECORD_BYTES = 16384 };

/* There is one client in the process. */
static SSL_CTX *context;
static SSL_SESSION *session; /* the first one that can be resumed */
static uint64_t resumed;

static int keep_session(SSL *ssl, SSL_SESSION *offered) {
    (void)ssl;
    if (session != NULL || !SSL_SESSION_is_resumable(offered)) return 0;
    session = offered;
    return 1;
}

static void count_handshake(const SSL *ssl, int where, int result) {
    (void)result;
    if ((where & SSL_CB_HANDSHAKE_DONE) && SSL_session_reused(ssl)) resumed++;
}

static void make_context(rd_tls_mode mode) {
    context = SSL_CTX_new(TLS_client_method());
    if (context == NULL || !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256"))
        rd_client_fail("TLS");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_info_callback(context, count_handshake);
    if (mode != RD_TLS_RESUMED) return;
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_session);
}

rd_tls_mode rd_tls_client_mode(const char *name) {
    if (strcmp(name, "full") == 0) return RD_TLS_FULL;
    if (strcmp(name, "resumed") == 0) return RD_TLS_RESUMED;
    rd_client_fail("--tls takes full or resumed");
}

rd_tls_client *rd_tls_client_begin(int fd, rd_tls_mode mode) {
    if (context == NULL) make_context(mode);
    SSL *tls = SSL_new(context);
    if (tls == NULL || !SSL_set_fd(tls, fd)) rd_client_fail("TLS");
    /* OpenSSL resumes a session object of TLS 1.3 once. */
    SSL_SESSION *again = session == NULL ? NULL : SSL_SESSION_dup(session);
    if (again != NULL) SSL_set_session(tls, again);
    SSL_SESSION_free(again);
    SSL_set_connect_state(tls);
    return tls;
}

void rd_tls_client_offer_http2(rd_tls_client *tls) {
    if (SSL_set_alpn_protos(tls, (const unsigned char *)"\2h2", 3) != 0) rd_client_fail("TLS");
}

static ssize_t failure(rd_tls_client *tls, int result, int on_want_read) {
    const int error = SSL_get_error(tls, result);
    const int code = errno;
    ERR_clear_error();
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    if (error == SSL_ERROR_WANT_READ)
        errno = on_want_read;
    else if (error == SSL_ERROR_WANT_WRITE)
        errno = EAGAIN;
    else
        errno = error == SSL_ERROR_SYSCALL && code != 0 ? code : EPROTO;
    return -1;
}

int rd_tls_client_shake_hands(rd_tls_client *tls) {
    errno = 0;
    const int result = SSL_do_handshake(tls);
    if (result == 1) return 1;
    if (failure(tls, result, EAGAIN) == 0) errno = EPROTO;
    return errno == EAGAIN ? 0 : -1;
}

ssize_t rd_tls_client_receive(rd_tls_client *tls, void *bytes, size_t len, int flags) {
    size_t all = 0;
    int got;
    errno = 0;
    do {
        got = SSL_read(tls, (char *)bytes + all, (int)(len - all));
        if (got > 0) all += (size_t)got;
    } while (got > 0 && flags != 0 && len - all > RECORD_BYTES);
    if (all == 0) return failure(tls, got, EAGAIN);
    ERR_clear_error(); /* an end or an error comes again */
    return (ssize_t)all;
}

ssize_t rd_tls_client_send(rd_tls_client *tls, const void *bytes, size_t len) {
    errno = 0;
    const int sent = SSL_write(tls, bytes, (int)len);
    if (sent > 0) return sent;
    if (failure(tls, sent, EINPROGRESS) == 0) errno = EPIPE;
    return -1;
}

void rd_tls_client_end(rd_tls_client *tls) {
    SSL_set_quiet_shutdown(tls, 1); /* a session that was not shut down in order is not resumed */
    SSL_shutdown(tls);
    SSL_free(tls);
}

uint64_t rd_tls_client_resumed(void) {
    return resumed;
}

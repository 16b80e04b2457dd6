/* SPDX-License-Identifier: MIT
 *
 * Hosts of the certificate that was shown; see tls_shown.h.
 */
#include "tls/tls_shown.h"

#include <string.h>

#include <openssl/x509v3.h>

#include "base/ascii.h"
#include "tls/tls_sets.h"

static bool is_same(const char *name, rd_slice host) {
    if (strlen(name) != host.len) return false;
    for (size_t i = 0; i < host.len; i++) {
        if (rd_ascii_lower(name[i]) != rd_ascii_lower(host.ptr[i])) return false;
    }
    return true;
}

static rd_slice without_dot(rd_slice host) {
    const bool has_dot = host.len > 1 && host.ptr[host.len - 1] == '.';
    return rd_slice_of(host.ptr, host.len - has_dot);
}

static bool has_address(X509 *certificate, rd_slice host) {
    char text[64];
    const bool has_brackets = host.len > 2 && host.ptr[0] == '[';
    const size_t len = host.len - (has_brackets ? 2 : 0);
    if (len >= sizeof(text)) return false;
    memcpy(text, host.ptr + has_brackets, len);
    text[len] = '\0';
    return X509_check_ip_asc(certificate, text, 0) == 1;
}

static bool is_named(const SSL *ssl, rd_slice host) {
    X509 *certificate = SSL_get_certificate(ssl);
    if (certificate == NULL || host.len == 0) return true;
    return X509_check_host(certificate, host.ptr, host.len, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
                           NULL) == 1 ||
           has_address(certificate, host);
}

/* A client that named the host itself, or that names none, would get the same certificate again. */
bool rd_tls_stands_for(rd_conn *conn, rd_slice host) {
    const SSL *ssl = rd_tls_of(conn)->ssl;
    if (rd_tls_context_of(conn)->sets->count < 2) return true;
    const rd_slice wanted = without_dot(host);
    rd_tls_flow *flow = rd_tls_enter(conn, NULL, 0);
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    const bool stands = name == NULL || is_same(name, wanted) || is_named(ssl, wanted);
    rd_tls_leave(flow, false);
    return stands;
}

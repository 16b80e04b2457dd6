/* SPDX-License-Identifier: MIT
 *
 * What OpenSSL asks about tickets; see tls_tickets.h.
 */
#include "tls/tls_tickets.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "tls/ticket_keys.h"
#include "tls/tls_flow.h"

#define LIFE_S (RD_TICKET_KEY_MS / 1000 * (RD_TICKET_KEYS_GOOD - 1))
/* A ticket of TLS 1.3 is replaced each time it is used. So its session could go on for ever, and
 * nobody would look at the client's certificate again (RFC 8446, section 4.6.1). */
#define SESSION_MS (RD_TICKET_KEY_MS * RD_TICKET_KEYS_GOOD)

static rd_tls_context *context_of(SSL *ssl) {
    return rd_tls_context_of(SSL_get_app_data(ssl));
}

/* ---- keys ---- */

static bool set_mac_key(EVP_MAC_CTX *mac, const rd_ticket_key *key) {
    char digest[] = "SHA256";
    const OSSL_PARAM rules[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key->mac_key,
                                          sizeof(key->mac_key)),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_END};
    return EVP_MAC_CTX_set_params(mac, rules) == 1;
}

static int encrypt(const rd_tls_context *context, unsigned char *name, unsigned char *iv,
                   EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac) {
    const rd_ticket_key *key = rd_ticket_keys_newest(context->keys);
    if (key == NULL) return 0; /* no ticket */
    memcpy(name, key->name, sizeof(key->name));
    if (RAND_bytes(iv, EVP_MAX_IV_LENGTH) != 1 || !set_mac_key(mac, key)) return -1;
    return EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher_key, iv) == 1 ? 1 : -1;
}

/* 2: the client gets another ticket. One of TLS 1.3 is used once (RFC 8446, section C.4); one of
 * TLS 1.2 is as good as before, until its key is not the newest any more. */
static int decrypt(const rd_tls_context *context, const SSL *ssl, const unsigned char *name,
                   const unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac) {
    const rd_ticket_key *key = rd_ticket_keys_find(context->keys, name);
    if (key == NULL) return 0;
    if (!set_mac_key(mac, key)) return -1;
    if (EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher_key, iv) != 1) return -1;
    const bool is_newest = key == rd_ticket_keys_newest(context->keys);
    return is_newest && SSL_version(ssl) < TLS1_3_VERSION ? 1 : 2;
}

/* Where one process serves alone, nobody else makes new keys. */
static int use_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                   EVP_MAC_CTX *mac, int encrypts) {
    const rd_tls_context *context = context_of(ssl);
    rd_ticket_keys_renew(context->keys);
    return encrypts ? encrypt(context, name, iv, cipher, mac)
                    : decrypt(context, ssl, name, iv, cipher, mac);
}

/* ---- how old a session is ---- */

static uint64_t now_ms(SSL *ssl) {
    const rd_conn *conn = SSL_get_app_data(ssl);
    return conn->set->loop->now_ms;
}

/* The first ticket of a session says when that began, and those after it repeat that. */
static int on_ticket(SSL *ssl, void *nothing) {
    SSL_SESSION *session = SSL_get_session(ssl);
    const uint64_t now = now_ms(ssl);
    void *began;
    size_t len;
    (void)nothing;
    if (SSL_SESSION_get0_ticket_appdata(session, &began, &len) == 1 && len > 0) return 1;
    return SSL_SESSION_set1_ticket_appdata(session, &now, sizeof(now));
}

static bool is_too_old(SSL *ssl, SSL_SESSION *session) {
    void *bytes;
    size_t len;
    uint64_t began;
    if (SSL_SESSION_get0_ticket_appdata(session, &bytes, &len) != 1) return true;
    if (len != sizeof(began)) return true;
    memcpy(&began, bytes, sizeof(began));
    return now_ms(ssl) > began + SESSION_MS;
}

static SSL_TICKET_RETURN on_decrypted(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                      size_t len, SSL_TICKET_STATUS status, void *nothing) {
    (void)name, (void)len, (void)nothing;
    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) {
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    }
    if (is_too_old(ssl, session)) return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

void rd_tls_prepare_tickets(SSL_CTX *set) {
    SSL_CTX_set_tlsext_ticket_key_evp_cb(set, use_key);
    SSL_CTX_set_session_ticket_cb(set, on_ticket, on_decrypted, NULL);
    SSL_CTX_set_session_cache_mode(set, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(set, 1);
    SSL_CTX_set_max_early_data(set, 0); /* it can be replayed (RFC 8446, section 8) */
    SSL_CTX_set_timeout(set, (long)LIFE_S);
}

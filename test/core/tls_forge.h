/* SPDX-License-Identifier: MIT
 *
 * Records that OpenSSL's client never sends, encrypted as it would (RFC 8446, sections 5.2 and 7):
 * empty ones, messages in pieces, unknown types. TLS 1.3 with AES-128-GCM only. Once one is sent,
 * the client of tls_peer.h can send nothing more.
 */
#ifndef TEST_TLS_FORGE_H
#define TEST_TLS_FORGE_H

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>

#include "tls_peer.h"

enum {
    FORGED_ALERT = 21,
    FORGED_HANDSHAKE = 22,
    FORGED_DATA = 23,
    FORGED_HEAD = 5,
    FORGED_TAG = 16
};

typedef struct forger {
    unsigned char secret[32], key[16], iv[12];
    uint64_t number; /* of the next record */
} forger;

static forger forging;

/* HKDF-Expand-Label with an empty context. */
static void expand(const unsigned char *secret, const char *label, unsigned char *out, size_t len) {
    unsigned char info[64] = {(unsigned char)(len >> 8), (unsigned char)len,
                              (unsigned char)(6 + strlen(label))};
    const size_t info_len = 4 + 6 + strlen(label);
    memcpy(info + 3, "tls13 ", 6);
    memcpy(info + 9, label, strlen(label));
    EVP_KDF *kind = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *kdf = EVP_KDF_CTX_new(kind);
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string("digest", digest, 0),
        OSSL_PARAM_construct_int("mode", &mode),
        OSSL_PARAM_construct_octet_string("key", (void *)(uintptr_t)secret, 32),
        OSSL_PARAM_construct_octet_string("info", info, info_len),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF_derive(kdf, out, len, params);
    EVP_KDF_CTX_free(kdf);
    EVP_KDF_free(kind);
}

static void use_secret(void) {
    expand(forging.secret, "key", forging.key, sizeof(forging.key));
    expand(forging.secret, "iv", forging.iv, sizeof(forging.iv));
    forging.number = 0;
}

/* After a KeyUpdate of the client. */
__attribute__((unused)) static void use_next_secret(void) {
    unsigned char next[32];
    expand(forging.secret, "traffic upd", next, sizeof(next));
    memcpy(forging.secret, next, sizeof(next));
    use_secret();
}

static void note_secret(const SSL *ssl, const char *line) {
    static const char name[] = "CLIENT_TRAFFIC_SECRET_0 ";
    (void)ssl;
    if (strncmp(line, name, sizeof(name) - 1) != 0) return;
    const char *hex = strrchr(line, ' ') + 1;
    for (size_t i = 0; i < sizeof(forging.secret); i++) {
        unsigned byte = 0;
        sscanf(hex + 2 * i, "%2x", &byte);
        forging.secret[i] = (unsigned char)byte;
    }
    use_secret();
}

/* Before the client's handshake. */
__attribute__((unused)) static void prepare_forging(tls_client *client) {
    SSL_set_min_proto_version(client->ssl, TLS1_3_VERSION);
    SSL_set_ciphersuites(client->ssl, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_keylog_callback(client->shared, note_secret);
}

/* A record of this type. `out` has room for 22 bytes more. Returns its length. */
__attribute__((unused)) static size_t forge(unsigned char type, const void *bytes, size_t len,
                                            unsigned char *out) {
    const size_t inner = len + 1 + FORGED_TAG;
    const unsigned char head[FORGED_HEAD] = {23, 3, 3, (unsigned char)(inner >> 8),
                                             (unsigned char)inner};
    unsigned char nonce[12];
    int part;
    memcpy(nonce, forging.iv, sizeof(nonce));
    for (int i = 0; i < 8; i++) nonce[11 - i] ^= (unsigned char)(forging.number >> (8 * i));
    forging.number++;
    memcpy(out, head, FORGED_HEAD);
    unsigned char *plain = malloc(len + 1);
    if (len > 0) memcpy(plain, bytes, len);
    plain[len] = type;
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), NULL, forging.key, nonce);
    EVP_EncryptUpdate(cipher, NULL, &part, head, FORGED_HEAD);
    EVP_EncryptUpdate(cipher, out + FORGED_HEAD, &part, plain, (int)len + 1);
    EVP_EncryptFinal_ex(cipher, out + FORGED_HEAD + part, &part);
    EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, FORGED_TAG, out + FORGED_HEAD + len + 1);
    EVP_CIPHER_CTX_free(cipher);
    free(plain);
    return FORGED_HEAD + inner;
}

#endif

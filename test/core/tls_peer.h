/* SPDX-License-Identifier: MIT
 *
 * Certificates that are made here, and an OpenSSL client whose ciphertext the test carries: whole,
 * byte by byte, cut anywhere. Its connections have the protocol of conn_notes.h, which only takes
 * note.
 */
#ifndef TEST_TLS_PEER_H
#define TEST_TLS_PEER_H

#include <stdlib.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tls/tls_context.h"

/* ---- certificates ---- */

typedef struct identity {
    X509 *certificate;
    EVP_PKEY *key;
    char pem[4096], key_pem[4096];
} identity;

typedef struct wish {
    const char *names; /* "DNS:a.test,DNS:*.b.test", or NULL */
    const char *common_name;
    const identity *issuer; /* NULL: itself */
    bool is_rsa, is_authority;
    long from_days, to_days;
} wish;

static void write_pem(const BIO *bio, char *room, size_t size) {
    char *bytes;
    const long len = BIO_get_mem_data((BIO *)(uintptr_t)bio, &bytes);
    CHECK(len > 0 && (size_t)len < size);
    memcpy(room, bytes, (size_t)len);
    room[len] = '\0';
}

static void add_extension(X509 *certificate, int nid, const char *value) {
    X509V3_CTX with;
    X509V3_set_ctx_nodb(&with);
    X509V3_set_ctx(&with, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &with, nid, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

static identity new_identity(wish wanted) {
    static long serial = 1;
    identity made = {.certificate = X509_new(),
                     .key = wanted.is_rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256")};
    const identity *issuer = wanted.issuer == NULL ? &made : wanted.issuer;
    X509 *certificate = made.certificate;
    const char *name = wanted.common_name == NULL ? "test" : wanted.common_name;
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), wanted.from_days * 86400L);
    X509_gmtime_adj(X509_getm_notAfter(certificate),
                    (wanted.to_days == 0 ? 9 : wanted.to_days) * 86400L);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_pubkey(certificate, made.key);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer->certificate));
    if (wanted.names != NULL) add_extension(certificate, NID_subject_alt_name, wanted.names);
    if (wanted.is_authority) add_extension(certificate, NID_basic_constraints, "CA:TRUE");
    X509_sign(certificate, issuer->key, EVP_sha256());
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate);
    write_pem(bio, made.pem, sizeof(made.pem));
    BIO_free(bio);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, made.key, NULL, NULL, 0, NULL, NULL);
    write_pem(bio, made.key_pem, sizeof(made.key_pem));
    BIO_free(bio);
    return made;
}

static void free_identity(identity *old) {
    X509_free(old->certificate);
    EVP_PKEY_free(old->key);
}

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

static rd_tls_pair pair_of(const identity *own) {
    return (rd_tls_pair){.certificates = text(own->pem),
                         .key = text(own->key_pem),
                         .certificates_name = "cert.pem",
                         .key_name = "key.pem"};
}

/* ---- a client ---- */

typedef struct tls_client {
    SSL_CTX *shared;
    SSL *ssl;
    BIO *to, *from; /* to the client, and from it */
} tls_client;

__attribute__((unused)) static tls_client new_client(const char *server_name) {
    tls_client client = {.shared = SSL_CTX_new(TLS_client_method())};
    SSL_CTX_set_min_proto_version(client.shared, 0);
    client.ssl = SSL_new(client.shared);
    client.to = BIO_new(BIO_s_mem());
    client.from = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(client.to, -1);
    SSL_set_bio(client.ssl, client.to, client.from);
    SSL_set_connect_state(client.ssl);
    if (server_name != NULL) SSL_set_tlsext_host_name(client.ssl, server_name);
    return client;
}

__attribute__((unused)) static void free_client(tls_client *client) {
    SSL_free(client->ssl);
    SSL_CTX_free(client->shared);
}

/* What the client has to send. Returns how many bytes; the caller frees them. */
__attribute__((unused)) static size_t take_ciphertext(tls_client *client, char **bytes) {
    char *all;
    const size_t len = (size_t)BIO_get_mem_data(client->from, &all);
    *bytes = malloc(len + 1);
    if (len > 0) memcpy(*bytes, all, len);
    (void)BIO_reset(client->from);
    return len;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * Reads and checks certificates and keys; see tls_pair.h.
 */
#include "tls/tls_pair.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/ascii.h"

__attribute__((format(printf, 2, 3))) static bool complain(char error[RD_TLS_ERROR_MAX],
                                                           const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, RD_TLS_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

const char *rd_tls_reason(void) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason == NULL ? "unknown reason" : reason;
}

static BIO *bio_of(rd_slice bytes) {
    return BIO_new_mem_buf(bytes.ptr, (int)bytes.len);
}

/* ---- reading ---- */

/* Never asks a terminal. */
static int give_password(char *room, int size, int is_writing, void *password) {
    (void)is_writing;
    if (password == NULL) return -1;
    const int len = snprintf(room, (size_t)size, "%s", (const char *)password);
    return len < size ? len : -1;
}

static bool load_certificates(rd_tls_loaded *loaded, const rd_tls_pair *pair, char *error) {
    BIO *bio = bio_of(pair->certificates);
    X509 *next;
    loaded->chain = sk_X509_new_null();
    loaded->certificate = PEM_read_bio_X509(bio, NULL, give_password, NULL);
    while (loaded->certificate != NULL &&
           (next = PEM_read_bio_X509(bio, NULL, give_password, NULL)) != NULL) {
        sk_X509_push(loaded->chain, next);
    }
    const bool is_at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    BIO_free(bio);
    if (loaded->certificate != NULL && is_at_end) return true;
    if (is_at_end) return complain(error, "%s has no certificate", pair->certificates_name);
    return complain(error, "%s has a malformed certificate", pair->certificates_name);
}

static bool is_encrypted(rd_slice key) {
    return memmem(key.ptr, key.len, "ENCRYPTED", 9) != NULL;
}

static bool load_key(rd_tls_loaded *loaded, const rd_tls_pair *pair, char *error) {
    BIO *bio = bio_of(pair->key);
    loaded->key =
        PEM_read_bio_PrivateKey(bio, NULL, give_password, (void *)(uintptr_t)pair->password);
    BIO_free(bio);
    if (loaded->key != NULL) return true;
    if (!is_encrypted(pair->key)) return complain(error, "%s has no private key", pair->key_name);
    return complain(error,
                    pair->password == NULL ? "the key in %s is encrypted, and there is no password"
                                           : "the password does not open the key in %s",
                    pair->key_name);
}

/* ---- checking ---- */

static bool has_key_of_chain(const rd_tls_loaded *loaded) {
    for (int i = 0; i < sk_X509_num(loaded->chain); i++) {
        if (X509_check_private_key(sk_X509_value(loaded->chain, i), loaded->key) == 1) return true;
    }
    return false;
}

static bool complain_of_order(const rd_tls_pair *pair, char *error) {
    return complain(
        error,
        "%s has its certificates in the wrong order: the server's is first, and each is "
        "signed by the next one",
        pair->certificates_name);
}

static bool check_key(const rd_tls_loaded *loaded, const rd_tls_pair *pair, char *error) {
    if (X509_check_private_key(loaded->certificate, loaded->key) == 1) return true;
    if (has_key_of_chain(loaded)) return complain_of_order(pair, error);
    return complain(error, "%s is not the key of %s", pair->key_name, pair->certificates_name);
}

static bool is_issued(X509 *certificate, X509 *issuer) {
    return X509_check_issued(issuer, certificate) == X509_V_OK;
}

/* Whether another one of the chain than the next has signed the certificate before number `at`. */
static bool is_out_of_order(const rd_tls_loaded *loaded, int at) {
    X509 *before = at == 0 ? loaded->certificate : sk_X509_value(loaded->chain, at - 1);
    if (is_issued(before, before) || is_issued(before, sk_X509_value(loaded->chain, at))) {
        return false;
    }
    for (int i = 0; i < sk_X509_num(loaded->chain); i++) {
        if (is_issued(before, sk_X509_value(loaded->chain, i))) return true;
    }
    return false;
}

/* Clients that need the order are few, and what they say of it helps nobody. */
static bool check_chain(const rd_tls_loaded *loaded, const rd_tls_pair *pair, char *error) {
    for (int at = 0; at < sk_X509_num(loaded->chain); at++) {
        if (is_out_of_order(loaded, at)) return complain_of_order(pair, error);
    }
    return true;
}

static const char *day_of(const ASN1_TIME *time, char day[16]) {
    struct tm parts;
    if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown day";
    snprintf(day, 16, "%04u-%02u-%02u", (unsigned)(parts.tm_year + 1900) % 10000,
             (unsigned)(parts.tm_mon + 1) % 100, (unsigned)parts.tm_mday % 100);
    return day;
}

static bool check_dates(const rd_tls_loaded *loaded, const rd_tls_pair *pair, char *error) {
    const ASN1_TIME *from = X509_get0_notBefore(loaded->certificate);
    const ASN1_TIME *to = X509_get0_notAfter(loaded->certificate);
    char day[16];
    if (pair->is_checked) return true;
    if (X509_cmp_current_time(to) < 0) {
        return complain(error, "the certificate in %s expired on %s", pair->certificates_name,
                        day_of(to, day));
    }
    if (X509_cmp_current_time(from) > 0) {
        return complain(error, "the certificate in %s is not valid before %s",
                        pair->certificates_name, day_of(from, day));
    }
    return true;
}

/* ---- names ---- */

static void add_name(rd_tls_loaded *loaded, const ASN1_STRING *name) {
    const int len = ASN1_STRING_length(name);
    const char *bytes = (const char *)ASN1_STRING_get0_data(name);
    if (len <= 0 || memchr(bytes, '\0', (size_t)len) != NULL) return;
    char *text = OPENSSL_strndup(bytes, (size_t)len);
    for (int i = 0; i < len; i++) text[i] = rd_ascii_lower(text[i]);
    sk_OPENSSL_STRING_push(loaded->names, text);
}

/* The common name is only used by certificates without other names (RFC 9525, section 2). */
static void add_common_name(rd_tls_loaded *loaded) {
    const X509_NAME *subject = X509_get_subject_name(loaded->certificate);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0) add_name(loaded, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

static bool find_names(rd_tls_loaded *loaded, const rd_tls_pair *pair, char *error) {
    GENERAL_NAMES *all = X509_get_ext_d2i(loaded->certificate, NID_subject_alt_name, NULL, NULL);
    loaded->names = sk_OPENSSL_STRING_new_null();
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *one = sk_GENERAL_NAME_value(all, i);
        if (one->type == GEN_DNS) add_name(loaded, one->d.dNSName);
    }
    if (all == NULL) add_common_name(loaded);
    const bool has_any = all != NULL || sk_OPENSSL_STRING_num(loaded->names) > 0;
    GENERAL_NAMES_free(all);
    if (has_any) return true;
    return complain(error, "the certificate in %s names no host", pair->certificates_name);
}

rd_tls_validity rd_tls_pair_validity(const rd_tls_loaded *loaded) {
    rd_tls_validity validity = {.name = "no name"};
    struct tm end;
    if (sk_OPENSSL_STRING_num(loaded->names) > 0) {
        snprintf(validity.name, sizeof(validity.name), "%s",
                 sk_OPENSSL_STRING_value(loaded->names, 0));
    } else {
        X509_NAME_get_text_by_NID(X509_get_subject_name(loaded->certificate), NID_commonName,
                                  validity.name, sizeof(validity.name));
    }
    if (ASN1_TIME_to_tm(X509_get0_notAfter(loaded->certificate), &end) == 1) {
        validity.ends_s = timegm(&end);
    }
    return validity;
}

/* ---- all of it ---- */

bool rd_tls_pair_load(rd_tls_loaded *loaded, const rd_tls_pair *pair,
                      char error[RD_TLS_ERROR_MAX]) {
    if (!load_certificates(loaded, pair, error) || !load_key(loaded, pair, error)) return false;
    if (!check_key(loaded, pair, error) || !check_chain(loaded, pair, error)) return false;
    return check_dates(loaded, pair, error) && find_names(loaded, pair, error);
}

static void free_name(char *name) {
    OPENSSL_free(name);
}

void rd_tls_pair_clear(rd_tls_loaded *loaded) {
    X509_free(loaded->certificate);
    sk_X509_pop_free(loaded->chain, X509_free);
    EVP_PKEY_free(loaded->key);
    sk_OPENSSL_STRING_pop_free(loaded->names, free_name);
}

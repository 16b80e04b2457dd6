/* SPDX-License-Identifier: MIT
 *
 * Certificates by name, ciphers, verification of clients; see tls_context.h.
 */
#include "tls/tls_context.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/alloc.h"
#include "tls/tls.h"
#include "tls/tls_handshake.h"
#include "tls/tls_pair.h"

#define CIPHERS                                                                                    \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                                   \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                                   \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define CIPHERSUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

/* While a context is being made. */
typedef struct rd_tls_making {
    const rd_tls_options *options;
    rd_tls_context *context;
    rd_tls_loaded *loaded; /* by pair */
    char *error;
} rd_tls_making;

static bool complain(const rd_tls_making *making, const char *name, const char *reason) {
    snprintf(making->error, RD_TLS_ERROR_MAX, "%s: %s", name, reason);
    return false;
}

/* ---- ciphers ---- */

/* The server chooses, but a client that puts ChaCha first has no AES in its hardware. */
static bool set_ciphers(const rd_tls_making *making, SSL_CTX *set) {
    const rd_tls_options *options = making->options;
    const char *ciphers = options->ciphers == NULL ? CIPHERS : options->ciphers;
    const char *suites = options->ciphersuites == NULL ? CIPHERSUITES : options->ciphersuites;
    SSL_CTX_set_options(set, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    if (SSL_CTX_set_cipher_list(set, ciphers) != 1) {
        return complain(making, "ssl_cipher_filter", rd_tls_reason());
    }
    if (SSL_CTX_set_ciphersuites(set, suites) != 1) {
        return complain(making, "ssl_ciphersuites", rd_tls_reason());
    }
    return true;
}

/* ---- clients ---- */

#define EACH_FLAG(X)                                                                               \
    X(USE_CHECK_TIME)                                                                              \
    X(CRL_CHECK)                                                                                   \
    X(CRL_CHECK_ALL)                                                                               \
    X(IGNORE_CRITICAL)                                                                             \
    X(X509_STRICT)                                                                                 \
    X(ALLOW_PROXY_CERTS)                                                                           \
    X(POLICY_CHECK)                                                                                \
    X(EXPLICIT_POLICY)                                                                             \
    X(INHIBIT_ANY)                                                                                 \
    X(INHIBIT_MAP)                                                                                 \
    X(NOTIFY_POLICY)                                                                               \
    X(EXTENDED_CRL_SUPPORT)                                                                        \
    X(USE_DELTAS)                                                                                  \
    X(CHECK_SS_SIGNATURE)                                                                          \
    X(TRUSTED_FIRST)                                                                               \
    X(SUITEB_128_LOS_ONLY)                                                                         \
    X(SUITEB_192_LOS)                                                                              \
    X(SUITEB_128_LOS)                                                                              \
    X(PARTIAL_CHAIN)                                                                               \
    X(NO_ALT_CHAINS)                                                                               \
    X(NO_CHECK_TIME)

typedef struct rd_tls_flag {
    rd_slice name;
    unsigned long bits;
} rd_tls_flag;

#define ROW(name) {RD_SLICE_INIT(#name), X509_V_FLAG_##name},
static const rd_tls_flag flags[] = {EACH_FLAG(ROW)};
#undef ROW

/* 0: there is none of this name. */
static unsigned long flag_of(rd_slice name) {
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (rd_slice_equal(flags[i].name, name)) return flags[i].bits;
    }
    return 0;
}

static bool set_flags(const rd_tls_making *making, X509_STORE *store) {
    const char *at = making->options->verification_flags;
    char reason[64];
    while (at != NULL && *at != '\0') {
        const size_t len = strcspn(at, ",");
        const unsigned long bits = flag_of(rd_slice_of(at, len));
        if (bits == 0) {
            snprintf(reason, sizeof(reason), "unknown flag %.*s", len < 40 ? (int)len : 40, at);
            return complain(making, "verification_flags", reason);
        }
        X509_STORE_set_flags(store, bits);
        at += at[len] == ',' ? len + 1 : len;
    }
    return true;
}

/* Certificates, whose subjects clients are told, and lists of revoked ones. Returns how many of the
 * former there are. */
static int add_authorities(SSL_CTX *set, STACK_OF(X509_INFO) * infos) {
    X509_STORE *store = SSL_CTX_get_cert_store(set);
    int count = 0;
    for (int i = 0; i < sk_X509_INFO_num(infos); i++) {
        const X509_INFO *info = sk_X509_INFO_value(infos, i);
        if (info->crl != NULL) X509_STORE_add_crl(store, info->crl);
        if (info->x509 == NULL) continue;
        X509_STORE_add_cert(store, info->x509);
        SSL_CTX_add_client_CA(set, info->x509);
        count++;
    }
    return count;
}

static bool set_clients(const rd_tls_making *making, SSL_CTX *set) {
    const rd_tls_options *options = making->options;
    if (options->verify == RD_TLS_VERIFY_NONE) return true;
    BIO *bio = BIO_new_mem_buf(options->ca.ptr, (int)options->ca.len);
    STACK_OF(X509_INFO) *infos = PEM_X509_INFO_read_bio(bio, NULL, NULL, NULL);
    const int count = infos == NULL ? 0 : add_authorities(set, infos);
    sk_X509_INFO_pop_free(infos, X509_INFO_free);
    BIO_free(bio);
    if (count == 0) return complain(making, options->ca_name, "it has no certificate");
    const bool is_forced = options->verify == RD_TLS_VERIFY_FORCE;
    SSL_CTX_set_verify(set, SSL_VERIFY_PEER | (is_forced ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       NULL);
    return set_flags(making, SSL_CTX_get_cert_store(set));
}

/* ---- a set of certificates ---- */

/* No renegotiation and no early data (RFC 8446, section 8: it can be replayed). An end without
 * close_notify is an end: the lengths of HTTP decide what is whole. */
static SSL_CTX *new_set(const rd_tls_making *making) {
    SSL_CTX *set = SSL_CTX_new(TLS_server_method());
    if (set == NULL) {
        complain(making, "OpenSSL", rd_tls_reason());
        return NULL;
    }
    SSL_CTX_set_min_proto_version(set, TLS1_2_VERSION);
    SSL_CTX_set_options(set, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* No partial writes: a client may ask for records of 512 bytes, and a piece is then several. */
    SSL_CTX_set_mode(set, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(set, 0); /* tls_read() needs what OpenSSL keeps to be one record */
    SSL_CTX_set_max_early_data(set, 0);
    SSL_CTX_set_session_cache_mode(set, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(set, 1);
    if (set_ciphers(making, set) && set_clients(making, set)) return set;
    SSL_CTX_free(set);
    return NULL;
}

static bool add_pair(const rd_tls_making *making, SSL_CTX *set, size_t index) {
    const rd_tls_loaded *loaded = &making->loaded[index];
    const rd_tls_pair *pair = &making->options->pairs[index];
    if (SSL_CTX_use_cert_and_key(set, loaded->certificate, loaded->key, loaded->chain, 1) == 1) {
        return true;
    }
    return complain(making, pair->certificates_name, rd_tls_reason());
}

/* A ticket is good for the same certificates and the same client CA only. */
static void name_sessions(const rd_tls_making *making, SSL_CTX *set, const bool *members) {
    const rd_tls_options *options = making->options;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
    for (size_t i = 0; i < options->pair_count; i++) {
        const rd_slice bytes = options->pairs[i].certificates;
        if (members[i]) EVP_DigestUpdate(hash, bytes.ptr, bytes.len);
    }
    EVP_DigestUpdate(hash, options->ca.ptr, options->ca.len);
    EVP_DigestFinal_ex(hash, digest, &len);
    EVP_MD_CTX_free(hash);
    SSL_CTX_set_session_id_context(set, digest, len);
}

/* ---- which certificates are shown together ---- */

static bool has_name(const rd_tls_loaded *loaded, const char *name) {
    for (int i = 0; i < sk_OPENSSL_STRING_num(loaded->names); i++) {
        if (strcmp(sk_OPENSSL_STRING_value(loaded->names, i), name) == 0) return true;
    }
    return false;
}

static bool has_key_type(const rd_tls_making *making, const bool *members, size_t index) {
    const int type = EVP_PKEY_get_base_id(making->loaded[index].key);
    for (size_t i = 0; i < index; i++) {
        if (members[i] && EVP_PKEY_get_base_id(making->loaded[i].key) == type) return true;
    }
    return false;
}

/* For a name: the first pair of each type of key that has it. For no name: the first pair. */
static void choose_members(const rd_tls_making *making, const char *name, bool *members) {
    for (size_t i = 0; i < making->options->pair_count; i++) {
        const bool is_named = name == NULL ? i == 0 : has_name(&making->loaded[i], name);
        members[i] = is_named && !has_key_type(making, members, i);
    }
}

/* The members of all sets lie behind each other. */
static int64_t find_set(const rd_tls_making *making, const bool *all, const bool *members) {
    const size_t count = making->options->pair_count;
    for (size_t i = 0; i < making->context->set_count; i++) {
        const bool *set = all + i * count;
        size_t same = 0;
        while (same < count && set[same] == members[same]) same++;
        if (same == count) return (int64_t)i;
    }
    return -1;
}

static bool add_set(const rd_tls_making *making, const bool *members) {
    rd_tls_context *context = making->context;
    SSL_CTX *set = new_set(making);
    if (set == NULL) return false;
    const size_t size = (context->set_count + 1) * sizeof(SSL_CTX *);
    context->sets = rd_realloc((void *)context->sets, size);
    context->sets[context->set_count++] = set;
    for (size_t i = 0; i < making->options->pair_count; i++) {
        if (members[i] && !add_pair(making, set, i)) return false;
    }
    name_sessions(making, set, members);
    return true;
}

/* Whether an earlier pair has the name: then the name has its set already. */
static bool is_repeated(const rd_tls_making *making, size_t index, const char *name) {
    for (size_t i = 0; i < index; i++) {
        if (has_name(&making->loaded[i], name)) return true;
    }
    return false;
}

/* Which pairs belong to which set: a row of flags for each set, and one for a set that may follow.
 */
typedef struct rd_tls_members {
    bool *all;
    size_t room; /* of sets */
} rd_tls_members;

static bool add_name(const rd_tls_making *making, rd_tls_members *members, const char *name) {
    rd_tls_context *context = making->context;
    const size_t count = making->options->pair_count;
    if (context->set_count == members->room) {
        members->room = members->room == 0 ? 4 : members->room * 2;
        members->all = rd_realloc(members->all, members->room * count * sizeof(bool));
    }
    bool *wanted = members->all + context->set_count * count;
    choose_members(making, name, wanted);
    int64_t found = find_set(making, members->all, wanted);
    if (found < 0) {
        found = (int64_t)context->set_count;
        if (!add_set(making, wanted)) return false;
    }
    if (name == NULL) return true;
    rd_tls_names_add(&context->names, rd_slice_of(name, strlen(name)), (uint32_t)found);
    return true;
}

static bool add_names_of(const rd_tls_making *making, rd_tls_members *members, size_t index) {
    const rd_tls_loaded *loaded = &making->loaded[index];
    for (int i = 0; i < sk_OPENSSL_STRING_num(loaded->names); i++) {
        const char *name = sk_OPENSSL_STRING_value(loaded->names, i);
        if (is_repeated(making, index, name)) continue;
        if (!add_name(making, members, name)) return false;
    }
    return true;
}

/* The first set is for clients that send no name, or an unknown one: that of the first name. */
static bool add_sets(const rd_tls_making *making) {
    rd_tls_members members = {0};
    bool works =
        sk_OPENSSL_STRING_num(making->loaded[0].names) > 0 || add_name(making, &members, NULL);
    for (size_t i = 0; works && i < making->options->pair_count; i++) {
        works = add_names_of(making, &members, i);
    }
    rd_free(members.all);
    return works;
}

/* ---- the whole ---- */

static bool load_pairs(const rd_tls_making *making) {
    for (size_t i = 0; i < making->options->pair_count; i++) {
        if (!rd_tls_pair_load(&making->loaded[i], &making->options->pairs[i], making->error)) {
            return false;
        }
        const bool is_named = sk_OPENSSL_STRING_num(making->loaded[i].names) > 0;
        if (i > 0 && !is_named) {
            return complain(making, making->options->pairs[i].certificates_name,
                            "it names no host, and only the first certificate may do so");
        }
    }
    return true;
}

static void free_context(rd_tls_context *context) {
    for (size_t i = 0; i < context->set_count; i++) SSL_CTX_free(context->sets[i]);
    rd_free((void *)context->sets);
    rd_tls_names_clear(&context->names);
    rd_tls_flow_clear(context);
    rd_free(context);
}

static rd_tls_context *context_of(const rd_transport *transport) {
    return RD_CONTAINER((char *)(uintptr_t)transport, rd_tls_context, transport);
}

static void ref(const rd_transport *transport) {
    context_of(transport)->refs++;
}

static void unref(const rd_transport *transport) {
    rd_tls_context *context = context_of(transport);
    if (--context->refs == 0) free_context(context);
}

static rd_tls_context *new_context(void) {
    rd_tls_context *context = rd_alloc_zero(sizeof(*context));
    context->transport = rd_tls_transport;
    context->transport.ref = ref;
    context->transport.unref = unref;
    context->refs = 1;
    rd_tls_flow_init(context);
    return context;
}

static bool make(const rd_tls_making *making) {
    rd_tls_context *context = making->context;
    if (!load_pairs(making) || !add_sets(making)) return false;
    if (context->set_count == 1) rd_tls_names_clear(&context->names);
    rd_tls_names_sort(&context->names);
    for (size_t i = 0; i < context->set_count; i++) {
        rd_tls_prepare_set(context, context->sets[i]);
    }
    return true;
}

const rd_transport *rd_tls_new(const rd_tls_options *options, char error[RD_TLS_ERROR_MAX]) {
    const rd_tls_making making = {
        .options = options,
        .context = new_context(),
        .loaded = rd_alloc_zero(options->pair_count * sizeof(rd_tls_loaded)),
        .error = error,
    };
    ERR_clear_error();
    const bool works = make(&making);
    ERR_clear_error();
    for (size_t i = 0; i < options->pair_count; i++) rd_tls_pair_clear(&making.loaded[i]);
    rd_free(making.loaded);
    if (works) return &making.context->transport;
    free_context(making.context);
    return NULL;
}

const char *rd_tls_library(void) {
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}

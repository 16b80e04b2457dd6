/* SPDX-License-Identifier: MIT
 *
 * Which certificates are shown together, and for which names; see tls_sets.h.
 */
#include "tls/tls_sets.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/alloc.h"
#include "tls/tls_pair.h"
#include "tls/tls_set.h"

/* While sets are being made. */
typedef struct rd_tls_making {
    const rd_tls_options *options;
    rd_tls_sets *sets;
    rd_tls_loaded *loaded; /* by pair */
    char *error;
} rd_tls_making;

static bool complain(const rd_tls_making *making, const char *name, const char *reason) {
    snprintf(making->error, RD_TLS_ERROR_MAX, "%s: %s", name, reason);
    return false;
}

/* ---- fingerprints ---- */

/* Each text behind its length, so that no two lists of texts look alike. */
static void add_to_hash(EVP_MD_CTX *hash, rd_slice text) {
    EVP_DigestUpdate(hash, &text.len, sizeof(text.len));
    EVP_DigestUpdate(hash, text.ptr, text.len);
}

static rd_slice slice_of(const char *text) {
    return text == NULL ? RD_SLICE("") : rd_slice_of(text, strlen(text));
}

/* All but the pairs. */
static EVP_MD_CTX *hash_of_rules(const rd_tls_options *options) {
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
    EVP_DigestUpdate(hash, &options->verify, sizeof(options->verify));
    add_to_hash(hash, options->ca);
    add_to_hash(hash, slice_of(options->verification_flags));
    add_to_hash(hash, slice_of(options->ciphers));
    add_to_hash(hash, slice_of(options->ciphersuites));
    add_to_hash(hash, options->protocols);
    return hash;
}

static void finish_hash(EVP_MD_CTX *hash, unsigned char digest[RD_TLS_DIGEST_BYTES]) {
    EVP_DigestFinal_ex(hash, digest, NULL);
    EVP_MD_CTX_free(hash);
}

void rd_tls_options_digest(const rd_tls_options *options,
                           unsigned char digest[RD_TLS_DIGEST_BYTES]) {
    EVP_MD_CTX *hash = hash_of_rules(options);
    for (size_t i = 0; i < options->pair_count; i++) {
        const rd_tls_pair *pair = &options->pairs[i];
        add_to_hash(hash, pair->certificates);
        add_to_hash(hash, pair->key);
        add_to_hash(hash, slice_of(pair->password));
    }
    finish_hash(hash, digest);
}

static void add_names_to_hash(EVP_MD_CTX *hash, const rd_tls_loaded *loaded, rd_slice pem) {
    const int count = sk_OPENSSL_STRING_num(loaded->names);
    EVP_DigestUpdate(hash, &count, sizeof(count));
    for (int i = 0; i < count; i++) {
        add_to_hash(hash, slice_of(sk_OPENSSL_STRING_value(loaded->names, i)));
    }
    if (count == 0) add_to_hash(hash, pem);
}

/* A ticket is good for the same names, the same client CA and the same rules. So it outlives a
 * certificate that is renewed, and opens nothing that its client was never let into. */
static void name_sessions(const rd_tls_making *making, SSL_CTX *set, const bool *members) {
    unsigned char digest[RD_TLS_DIGEST_BYTES];
    EVP_MD_CTX *hash = hash_of_rules(making->options);
    for (size_t i = 0; i < making->options->pair_count; i++) {
        const rd_slice pem = making->options->pairs[i].certificates;
        if (members[i]) add_names_to_hash(hash, &making->loaded[i], pem);
    }
    finish_hash(hash, digest);
    SSL_CTX_set_session_id_context(set, digest, sizeof(digest));
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
    for (size_t i = 0; i < making->sets->count; i++) {
        const bool *set = all + i * count;
        size_t same = 0;
        while (same < count && set[same] == members[same]) same++;
        if (same == count) return (int64_t)i;
    }
    return -1;
}

static bool add_pair(const rd_tls_making *making, SSL_CTX *set, size_t index) {
    const rd_tls_loaded *loaded = &making->loaded[index];
    const rd_tls_pair *pair = &making->options->pairs[index];
    if (SSL_CTX_use_cert_and_key(set, loaded->certificate, loaded->key, loaded->chain, 1) == 1) {
        return true;
    }
    return complain(making, pair->certificates_name, rd_tls_reason());
}

static bool add_set(const rd_tls_making *making, const bool *members) {
    rd_tls_sets *sets = making->sets;
    SSL_CTX *set = rd_tls_set_new(making->options, making->error);
    if (set == NULL) return false;
    const size_t size = (sets->count + 1) * sizeof(SSL_CTX *);
    sets->all = rd_realloc((void *)sets->all, size);
    sets->all[sets->count++] = set;
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
    rd_tls_sets *sets = making->sets;
    const size_t count = making->options->pair_count;
    if (sets->count == members->room) {
        members->room = members->room == 0 ? 4 : members->room * 2;
        members->all = rd_realloc(members->all, members->room * count * sizeof(bool));
    }
    bool *wanted = members->all + sets->count * count;
    choose_members(making, name, wanted);
    int64_t found = find_set(making, members->all, wanted);
    if (found < 0) {
        found = (int64_t)sets->count;
        if (!add_set(making, wanted)) return false;
    }
    if (name == NULL) return true;
    rd_tls_names_add(&sets->names, rd_slice_of(name, strlen(name)), (uint32_t)found);
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

/* The first set is for clients that send no name, or an unknown one: that of the first name. While
 * there are no certificates it has none, and every handshake is refused. */
static bool add_sets(const rd_tls_making *making) {
    rd_tls_members members = {0};
    if (making->options->pair_count == 0) return add_set(making, NULL);
    bool works =
        sk_OPENSSL_STRING_num(making->loaded[0].names) > 0 || add_name(making, &members, NULL);
    for (size_t i = 0; works && i < making->options->pair_count; i++) {
        works = add_names_of(making, &members, i);
    }
    rd_free(members.all);
    return works;
}

/* ---- all of it ---- */

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

static void note_validities(const rd_tls_making *making) {
    const size_t count = making->options->pair_count;
    making->sets->validities = rd_alloc(count * sizeof(rd_tls_validity));
    making->sets->pair_count = count;
    for (size_t i = 0; i < count; i++) {
        making->sets->validities[i] = rd_tls_pair_validity(&making->loaded[i]);
    }
}

static rd_slice copy_of(rd_slice bytes) {
    if (bytes.len == 0) return RD_SLICE("");
    return rd_slice_of(memcpy(rd_alloc(bytes.len), bytes.ptr, bytes.len), bytes.len);
}

static bool make(const rd_tls_making *making) {
    rd_tls_sets *sets = making->sets;
    if (!load_pairs(making) || !add_sets(making)) return false;
    if (sets->count == 1) rd_tls_names_clear(&sets->names);
    rd_tls_names_sort(&sets->names);
    rd_tls_options_digest(making->options, sets->digest);
    sets->protocols = copy_of(making->options->protocols);
    note_validities(making);
    return true;
}

rd_tls_sets *rd_tls_sets_new(const rd_tls_options *options, char error[RD_TLS_ERROR_MAX]) {
    const rd_tls_making making = {
        .options = options,
        .sets = rd_alloc_zero(sizeof(rd_tls_sets)),
        .loaded = rd_alloc_zero(options->pair_count * sizeof(rd_tls_loaded)),
        .error = error,
    };
    ERR_clear_error();
    const bool works = make(&making);
    ERR_clear_error();
    for (size_t i = 0; i < options->pair_count; i++) rd_tls_pair_clear(&making.loaded[i]);
    rd_free(making.loaded);
    if (works) return making.sets;
    rd_tls_sets_free(making.sets);
    return NULL;
}

void rd_tls_sets_free(rd_tls_sets *sets) {
    for (size_t i = 0; i < sets->count; i++) SSL_CTX_free(sets->all[i]);
    rd_free((void *)sets->all);
    rd_tls_names_clear(&sets->names);
    rd_free(sets->validities);
    if (sets->protocols.len > 0) rd_free((void *)(uintptr_t)sets->protocols.ptr);
    rd_free(sets);
}

bool rd_tls_sets_validity(const rd_tls_sets *sets, size_t index, rd_tls_validity *validity) {
    if (index >= sets->pair_count) return false;
    *validity = sets->validities[index];
    return true;
}

/* SPDX-License-Identifier: MIT
 *
 * Env templates: the base template and what a peer sends again and again:
 *
 *   by authority and peer    SERVER_NAME, SERVER_PORT, REMOTE_ADDR
 *   by header section        those and every HTTP_* key, for requests without a body
 *
 * The scheme of the connection and the version of HTTP are in both keys.
 *
 * http/sections.h recognises header sections. A template is made when the same peer sends a section
 * for the second time, and has no secret. Both tables are bounded and direct-mapped. Values of a
 * template are shared, so rd_env_fill() replaces them by a request's own values and by copies.
 */
#include "rack/rb_env_cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "binding/rb_binding.h"
#include "binding/rb_cache.h"
#include "rack/rb_env_place.h"

#define RD_TEMPLATE_CACHE_SIZE 256
#define RD_SECTION_CACHE_SIZE  256
#define RD_SECTION_SEEN_SIZE   1024
#define RD_LAST_SECTIONS       4096

/* Compared as bytes, so every member is set and unused room is zero. */
typedef struct rd_template_key {
    uint32_t hash;
    rd_address peer;
    uint8_t version; /* RD_HTTP_1_1 … */
    bool secure;     /* whether the connection is */
    uint8_t authority_len;
    char authority[64];
} rd_template_key;

typedef struct rd_section_key {
    uint64_t section; /* rd_head.section, version and scheme in one word; 0: empty */
    rd_address peer;
} rd_section_key;

struct rd_env_cache {
    rd_template_key templates[RD_TEMPLATE_CACHE_SIZE];
    rd_section_key sections[RD_SECTION_CACHE_SIZE];
    uint32_t seen[RD_SECTION_SEEN_SIZE];     /* hashes of keys that were seen once */
    uint8_t last_sections[RD_LAST_SECTIONS]; /* by connection index: its last template */
};

void rd_env_cache_init(rd_binding *binding) {
    binding->env.cache = rd_alloc_zero(sizeof(rd_env_cache));
    RD_BINDING_SET(binding, env.templates, rb_ary_new_capa(RD_TEMPLATE_CACHE_SIZE));
    RD_BINDING_SET(binding, env.section_templates, rb_ary_new_capa(RD_SECTION_CACHE_SIZE));
    rb_ary_store(binding->env.templates, RD_TEMPLATE_CACHE_SIZE - 1, Qnil);
    rb_ary_store(binding->env.section_templates, RD_SECTION_CACHE_SIZE - 1, Qnil);
}

/* Version and scheme in one number. */
static uint32_t way_of(const rd_call *call) {
    return (uint32_t)call->request->head.version << 1 | call->conn.secure;
}

/* ---- by authority and peer ---- */

static bool template_key(rd_template_key *key, const rd_call *call) {
    rd_slice authority = rd_request_slice(call->request, call->request->head.authority);
    if (authority.len > sizeof(key->authority)) return false;
    memset(key, 0, sizeof(*key));
    key->hash = rd_hash_weak(authority) ^ rd_address_hash(&call->conn.peer) ^ way_of(call);
    key->peer = call->conn.peer;
    key->peer.port = 0;
    memcpy(key->authority, authority.ptr, authority.len);
    key->authority_len = (uint8_t)authority.len;
    key->version = call->request->head.version;
    key->secure = call->conn.secure;
    return true;
}

VALUE rd_env_template(rd_call *call) {
    rd_binding *binding = call->binding;
    rd_template_key key;
    if (!template_key(&key, call)) return rd_env_new_template(call);
    uint32_t at = key.hash % RD_TEMPLATE_CACHE_SIZE;
    rd_template_key *entry = &binding->env.cache->templates[at];
    if (entry->hash == key.hash && memcmp(entry, &key, sizeof(key)) == 0) {
        return RARRAY_AREF(binding->env.templates, at);
    }
    VALUE env = rd_env_new_template(call);
    rb_ary_store(binding->env.templates, at, env);
    *entry = key;
    return env;
}

/* ---- by header section ---- */

static bool is_same_peer(const rd_address *a, const rd_address *b) {
    return a->kind == b->kind && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Sections have consecutive numbers, so the high bits are free. */
static uint64_t section_of(const rd_call *call) {
    return call->request->head.section << 8 | way_of(call);
}

static bool is_at(const rd_call *call, uint32_t at) {
    const rd_section_key *key = &call->binding->env.cache->sections[at];
    return key->section == section_of(call) && is_same_peer(&key->peer, &call->conn.peer);
}

static uint32_t section_hash(const rd_call *call) {
    uint32_t section = (uint32_t)(section_of(call) * 0x9e3779b1u);
    return section ^ rd_address_hash(&call->conn.peer) ^ call->conn.peer.kind;
}

/* Looks first at the last template of the connection. */
VALUE rd_env_section_find(const rd_call *call) {
    rd_binding *binding = call->binding;
    uint8_t *last = &binding->env.cache->last_sections[call->conn.index % RD_LAST_SECTIONS];
    if (is_at(call, *last)) return RARRAY_AREF(binding->env.section_templates, *last);
    uint32_t at = section_hash(call) % RD_SECTION_CACHE_SIZE;
    if (!is_at(call, at)) return Qnil;
    *last = (uint8_t)at;
    return RARRAY_AREF(binding->env.section_templates, at);
}

bool rd_env_section_is_new(const rd_call *call) {
    uint32_t hash = section_hash(call);
    uint32_t *seen = &call->binding->env.cache->seen[hash % RD_SECTION_SEEN_SIZE];
    bool is_new = *seen != hash;
    *seen = hash;
    return is_new;
}

void rd_env_section_keep(const rd_call *call, VALUE template) {
    rd_binding *binding = call->binding;
    uint32_t at = section_hash(call) % RD_SECTION_CACHE_SIZE;
    rb_ary_store(binding->env.section_templates, at, template);
    binding->env.cache->sections[at] =
        (rd_section_key){.section = section_of(call), .peer = call->conn.peer};
}

/* ---- filling ---- */

typedef struct rd_fill {
    VALUE env;
    const VALUE *own; /* by position; Qundef: the template's value stays */
    unsigned end;     /* number of own values; header fields to copy follow */
    unsigned at;
} rd_fill;

/* A mutable copy of a template's frozen String. Up to 23 bytes are stored in the object itself. */
static VALUE header_copy(VALUE shared) {
    long len = RSTRING_LEN(shared);
    VALUE copy = len <= RD_EMBEDDED_MAX ? rb_str_new(RSTRING_PTR(shared), len) : rb_str_dup(shared);
    RB_GC_GUARD(shared); /* only the env refers to it, and compaction may move it */
    return copy;
}

#ifdef RHASH_TBL

#include <ruby/st.h>

/* Walks once over the table in its order and does not look up keys: hashing thirteen keys costs
 * more than copying their values. */
static int visit_entry(st_data_t key, st_data_t value, st_data_t argument, int error) {
    rd_fill *fill = (rd_fill *)argument;
    (void)key, (void)value, (void)error;
    unsigned at = fill->at++;
    if (at >= fill->end) return ST_STOP;
    return at >= RD_ENV_OWN_COUNT || fill->own[at] != Qundef ? ST_REPLACE : ST_CONTINUE;
}

/* No write barrier: the GC marks all of a Hash whose table was given out. */
static int replace_entry(st_data_t *key, st_data_t *value, st_data_t argument, int existing) {
    rd_fill *fill = (rd_fill *)argument;
    (void)key, (void)existing;
    unsigned at = fill->at - 1;
    *value = at < RD_ENV_OWN_COUNT ? fill->own[at] : header_copy((VALUE)*value);
    return ST_CONTINUE;
}

static void fill_all(rd_fill *fill) {
    st_foreach_with_replace(RHASH_TBL(fill->env), visit_entry, replace_entry, (st_data_t)fill);
}

#else

static int copy_entry(VALUE key, VALUE value, VALUE argument) {
    rd_fill *fill = (rd_fill *)argument;
    unsigned at = fill->at++;
    if (at >= fill->end) return ST_STOP;
    if (at >= RD_ENV_OWN_COUNT) rb_hash_aset(fill->env, key, header_copy(value));
    return ST_CONTINUE;
}

static void fill_all(rd_fill *fill) {
    const VALUE keys[RD_ENV_OWN_COUNT] = {RD_ENV_OWN_KEYS};
    for (unsigned i = 0; i < RD_ENV_OWN_COUNT; i++) {
        if (fill->own[i] != Qundef) rb_hash_aset(fill->env, keys[i], fill->own[i]);
    }
    if (fill->end > RD_ENV_OWN_COUNT) rb_hash_foreach(fill->env, copy_entry, (VALUE)fill);
}

#endif

void rd_env_fill(rd_call *call, const VALUE own[RD_ENV_OWN_COUNT], bool copy_headers) {
    rd_fill fill = {.env = call->env, .own = own, .end = RD_ENV_OWN_COUNT};
    if (copy_headers && !call->binding->rules.frozen_headers) {
        fill.end +=
            (unsigned)RHASH_SIZE(call->env) - call->binding->env.base_sizes[call->conn.secure];
    }
    fill_all(&fill);
}

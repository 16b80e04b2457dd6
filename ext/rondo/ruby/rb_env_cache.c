/* SPDX-License-Identifier: MIT
 *
 * Env templates that differ from the base template only in what a peer sends again and again:
 *
 *   by authority and peer    SERVER_NAME, SERVER_PORT, REMOTE_ADDR
 *   by whole header block    those and every HTTP_* key, for requests without a body
 *
 * A block is compared byte by byte, is kept only when it comes a second time, and never holds a
 * secret (rb_env.c decides). Both tables are bounded and direct-mapped. Values of a template are
 * shared, so rd_env_fill() puts a request's own values and copies in place of them.
 */
#include <string.h>

#include "base/alloc.h"
#include "ruby/rb_call.h"
#include "ruby/rb_names.h"

#define BLOCK_MAX 4096

void rd_env_cache_init(rd_binding *binding) {
    rd_env_cache *cache = rd_alloc_zero(sizeof(*cache));
    binding->env_cache = cache;
    RD_BINDING_SET(binding, templates, rb_ary_new_capa(RD_TEMPLATE_CACHE_SIZE));
    RD_BINDING_SET(binding, blocks, rb_ary_new_capa(RD_BLOCK_CACHE_SIZE));
    rb_ary_store(binding->templates, RD_TEMPLATE_CACHE_SIZE - 1, Qnil);
    rb_ary_store(binding->blocks, RD_BLOCK_CACHE_SIZE - 1, Qnil);
}

void rd_env_cache_clear(rd_binding *binding) {
    rd_env_cache *cache = binding->env_cache;
    if (cache == NULL) return;
    for (uint32_t i = 0; i < RD_BLOCK_CACHE_SIZE; i++) rd_free(cache->blocks[i].bytes);
    rd_free(cache);
}

/* ---- by authority and peer ---- */

static bool template_key(rd_template_key *key, const rd_call *call) {
    rd_slice authority = rd_request_slice(call->request, call->request->head.authority);
    if (authority.len > sizeof(key->authority)) return false;
    memset(key, 0, sizeof(*key));
    key->hash = rd_cache_hash(authority) ^ rd_address_hash(&call->peer);
    key->peer = call->peer;
    key->peer.port = 0;
    memcpy(key->authority, authority.ptr, authority.len);
    key->authority_len = (uint8_t)authority.len;
    return true;
}

VALUE rd_env_template(rd_call *call) {
    rd_binding *binding = call->binding;
    rd_template_key key;
    if (!template_key(&key, call)) {
        VALUE env = rb_hash_dup(binding->env_template);
        rd_env_set_place(call, env);
        return env;
    }
    uint32_t at = key.hash % RD_TEMPLATE_CACHE_SIZE;
    rd_template_key *entry = &binding->env_cache->templates[at];
    if (entry->hash == key.hash && memcmp(entry, &key, sizeof(key)) == 0) {
        return RARRAY_AREF(binding->templates, at);
    }
    VALUE env = rb_hash_dup(binding->env_template);
    rd_env_set_place(call, env);
    rb_ary_store(binding->templates, at, env);
    *entry = key;
    return env;
}

/* ---- by header block ---- */

bool rd_block_of(rd_block *block, const rd_call *call) {
    const rd_request *request = call->request;
    const rd_head *head = &request->head;
    uint32_t at = head->target.at + head->target.len;
    const char *line_end = memchr(request->bytes + at, '\n', head->length - at);
    if (line_end == NULL) return false;
    size_t start = (size_t)(line_end - request->bytes) + 1;
    block->bytes = rd_slice_of(request->bytes + start, head->length - start);
    if (block->bytes.len > BLOCK_MAX) return false;
    return true;
}

static bool is_same_peer(const rd_address *a, const rd_address *b) {
    return a->kind == b->kind && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static bool is_at(const rd_call *call, const rd_block *block, uint32_t at) {
    const rd_block_entry *entry = &call->binding->env_cache->blocks[at];
    return entry->len == block->bytes.len && entry->bytes != NULL &&
           is_same_peer(&entry->peer, &call->peer) &&
           memcmp(entry->bytes, block->bytes.ptr, entry->len) == 0;
}

/* Looks first where the connection's last one was: comparing costs a tenth of the hash. */
VALUE rd_block_find(const rd_call *call, rd_block *block) {
    uint8_t *last = &call->binding->env_cache->last_blocks[call->slot % RD_LAST_BLOCKS];
    if (is_at(call, block, *last)) return RARRAY_AREF(call->binding->blocks, *last);
    block->hash = rd_cache_hash(block->bytes) ^ rd_address_hash(&call->peer) ^ call->peer.kind;
    uint32_t at = block->hash % RD_BLOCK_CACHE_SIZE;
    if (!is_at(call, block, at)) return Qnil;
    *last = (uint8_t)at;
    return RARRAY_AREF(call->binding->blocks, at);
}

bool rd_block_is_new(const rd_call *call, const rd_block *block) {
    uint32_t *seen = &call->binding->env_cache->seen[block->hash % RD_BLOCK_SEEN_SIZE];
    bool is_new = *seen != block->hash;
    *seen = block->hash;
    return is_new;
}

void rd_block_keep(const rd_call *call, const rd_block *block, VALUE template) {
    rd_binding *binding = call->binding;
    uint32_t at = block->hash % RD_BLOCK_CACHE_SIZE;
    rd_block_entry *entry = &binding->env_cache->blocks[at];
    rb_ary_store(binding->blocks, at, template);
    rd_free(entry->bytes);
    entry->bytes = rd_alloc(block->bytes.len);
    memcpy(entry->bytes, block->bytes.ptr, block->bytes.len);
    entry->len = (uint32_t)block->bytes.len;
    entry->hash = block->hash;
    entry->peer = call->peer;
}

/* ---- filling ---- */

typedef struct rd_fill {
    const rd_call *call;
    const VALUE *own; /* by position; Qundef: what the template has */
    unsigned base;    /* the header fields begin behind this many keys */
    unsigned at;
    bool copy_headers;
} rd_fill;

/* A mutable String of a template's frozen one. Up to 23 bytes live in the object itself. */
static VALUE header_copy(VALUE shared) {
    long len = RSTRING_LEN(shared);
    return len <= RD_EMBEDDED_MAX ? rb_str_new(RSTRING_PTR(shared), len) : rb_str_dup(shared);
}

#ifdef RHASH_TBL

#include <ruby/st.h>

/* Goes once over the table in its order instead of looking every key up again: hashing thirteen
 * keys costs more than copying their values. */
static int visit_entry(st_data_t key, st_data_t value, st_data_t argument, int error) {
    rd_fill *fill = (rd_fill *)argument;
    (void)key, (void)value, (void)error;
    unsigned at = fill->at++;
    if (at < RD_ENV_OWN_COUNT) return fill->own[at] != Qundef ? ST_REPLACE : ST_CONTINUE;
    return at >= fill->base && fill->copy_headers ? ST_REPLACE : ST_CONTINUE;
}

static int replace_entry(st_data_t *key, st_data_t *value, st_data_t argument, int existing) {
    rd_fill *fill = (rd_fill *)argument;
    (void)key, (void)existing;
    unsigned at = fill->at - 1;
    VALUE object = at < RD_ENV_OWN_COUNT ? fill->own[at] : header_copy((VALUE)*value);
    *value = (st_data_t)object;
    RB_OBJ_WRITTEN(fill->call->env, Qundef, object);
    return ST_CONTINUE;
}

static void fill_all(rd_fill *fill) {
    st_foreach_with_replace(RHASH_TBL(fill->call->env), visit_entry, replace_entry,
                            (st_data_t)fill);
}

#else

static int copy_entry(VALUE key, VALUE value, VALUE argument) {
    rd_fill *fill = (rd_fill *)argument;
    if (fill->at++ >= fill->base) rb_hash_aset(fill->call->env, key, header_copy(value));
    return ST_CONTINUE;
}

static void fill_all(rd_fill *fill) {
    const VALUE keys[RD_ENV_OWN_COUNT] = {RD_ENV_OWN_KEYS};
    for (unsigned i = 0; i < RD_ENV_OWN_COUNT; i++) {
        if (fill->own[i] != Qundef) rb_hash_aset(fill->call->env, keys[i], fill->own[i]);
    }
    if (fill->copy_headers) rb_hash_foreach(fill->call->env, copy_entry, (VALUE)fill);
}

#endif

void rd_env_fill(rd_call *call, const VALUE own[RD_ENV_OWN_COUNT], bool copy_headers) {
    rd_fill fill = {.call = call,
                    .own = own,
                    .base = call->binding->env_base,
                    .copy_headers = copy_headers && !call->binding->frozen_headers};
    fill_all(&fill);
}

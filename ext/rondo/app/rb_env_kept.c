/* SPDX-License-Identifier: MIT
 *
 * The env of an upgraded connection. Applications may never read it, and as a Hash it would be the
 * largest part of the connection's memory. So it is kept as an Array: a list of keys, which all
 * envs with the same keys share, then the values that the base template does not have; header
 * values are interned. Rondo::Client#env in rb_client.c makes the Hash again. The application's own
 * entries are kept as they are.
 */
#include "app/rb_env_kept.h"

#include "base/hash.h"
#include "ruby/rb_names.h"

#include <ruby/encoding.h>

#define KEY_LISTS 64 /* direct-mapped; on a collision a list is not shared */

typedef struct rd_keeping {
    VALUE template;
    VALUE *keys, *values;
    long count;
    size_t found; /* keys of the template */
} rd_keeping;

/* Whether the value is valid only while the request is being answered. */
static bool is_over(VALUE key) {
    return key == rd_key.rack_hijack || key == rd_key.rack_response_finished ||
           key == rd_key.rack_early_hints || key == rd_header_keys[RD_HEADER_SEC_WEBSOCKET_KEY];
}

static bool is_binary(VALUE string) {
    return rb_enc_get_index(string) == rb_ascii8bit_encindex();
}

/* Whether the key's value must be kept nowhere except in the env of its request. */
static bool is_secret(VALUE key) {
    for (unsigned id = 1; id < RD_HEADER_COUNT; id++) {
        if (rd_header_keys[id] == key) return rd_header_id_is_secret(id);
    }
    return key == rd_key.query_string;
}

/* A value from a client, as one String that all equal values share. */
static VALUE shared(VALUE key, VALUE value) {
    if (!RB_TYPE_P(value, T_STRING) || RB_OBJ_FROZEN(value) || !is_binary(value)) return value;
    if (rb_obj_class(value) != rb_cString || is_secret(key)) return value;
    return rb_str_to_interned_str(value);
}

static int keep_pair(VALUE key, VALUE value, VALUE argument) {
    rd_keeping *keeping = (rd_keeping *)argument;
    VALUE usual = rb_hash_lookup2(keeping->template, key, Qundef);
    if (usual != Qundef) keeping->found++;
    if (usual == value || is_over(key)) return ST_CONTINUE;
    keeping->keys[keeping->count] = key;
    keeping->values[keeping->count++] = shared(key, value);
    return ST_CONTINUE;
}

static bool is_list_of(VALUE list, const rd_keeping *keeping) {
    if (NIL_P(list) || RARRAY_LEN(list) != keeping->count) return false;
    for (long i = 0; i < keeping->count; i++) {
        if (RARRAY_AREF(list, i) != keeping->keys[i]) return false;
    }
    return true;
}

/* Keys are interned, so their addresses identify them. When compaction changes the addresses, a new
 * list is made. */
static VALUE key_list(rd_binding *binding, const rd_keeping *keeping) {
    rd_slice bytes =
        rd_slice_of((const char *)keeping->keys, (size_t)keeping->count * sizeof(keeping->keys[0]));
    long at = (long)(rd_hash_weak(bytes) % KEY_LISTS);
    VALUE list = rb_ary_entry(binding->env.key_lists, at);
    if (is_list_of(list, keeping)) return list;
    list = rb_ary_new_from_values(keeping->count, keeping->keys);
    rb_ary_store(binding->env.key_lists, at, list);
    return list;
}

/* Keeps the Hash itself if the application has deleted a key that every env has. */
VALUE rd_env_keep(rd_call *call) {
    VALUE room, kept = call->env;
    size_t most = RHASH_SIZE(call->env) + 1;
    /* Unsigned, because Ruby's macro takes the number as a long and as a size_t. */
    VALUE *places = ALLOCV_N(VALUE, room, (unsigned)(2 * most));
    rd_keeping keeping = {
        .template = call->binding->env.template, .keys = places, .values = places + most + 1};
    places[most] = Qnil;
    rb_hash_foreach(call->env, keep_pair, (VALUE)&keeping);
    if (keeping.found == RHASH_SIZE(keeping.template)) {
        places[most] = key_list(call->binding, &keeping);
        kept = rb_ary_new_from_values(keeping.count + 1, &places[most]);
    }
    ALLOCV_END(room);
    return kept;
}

/* A mutable copy of what shared() has frozen. */
static VALUE own(VALUE value) {
    bool is_shared = RB_TYPE_P(value, T_STRING) && RB_OBJ_FROZEN(value) && is_binary(value);
    return is_shared ? rb_str_dup(value) : value;
}

VALUE rd_env_restore(rd_binding *binding, VALUE kept) {
    VALUE env = rb_hash_dup(binding->env.template), keys = RARRAY_AREF(kept, 0);
    for (long i = 0; i < RARRAY_LEN(keys); i++) {
        rb_hash_aset(env, RARRAY_AREF(keys, i), own(RARRAY_AREF(kept, i + 1)));
    }
    return env;
}

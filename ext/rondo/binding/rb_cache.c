/* SPDX-License-Identifier: MIT
 *
 * Two bounded, direct-mapped caches of Strings: header values (2-7 ns instead of 20-60 for a new
 * String) and HTTP_* keys of names that have no id. The Strings are in Ruby Arrays, so the GC marks
 * them and may move them. C keeps their hashes and lengths. Secrets are never cached (rb_env.c).
 */
#include "binding/rb_cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/ascii.h"
#include "base/hash.h"
#include "binding/rb_binding.h"

#define RD_VALUE_CACHE_SIZE 4096
#define RD_NAME_CACHE_SIZE  512

struct rd_cache_entry {
    uint32_t hash;
    uint32_t len;
};

uint32_t rd_address_hash(const rd_address *address) {
    return rd_hash_weak(rd_slice_of((const char *)address->bytes, sizeof(address->bytes)));
}

void rd_cache_init(rd_binding *binding) {
    binding->strings.value_entries = rd_alloc_zero(RD_VALUE_CACHE_SIZE * sizeof(rd_cache_entry));
    binding->strings.name_entries = rd_alloc_zero(RD_NAME_CACHE_SIZE * sizeof(rd_cache_entry));
    RD_BINDING_SET(binding, strings.values, rb_ary_new_capa(RD_VALUE_CACHE_SIZE));
    RD_BINDING_SET(binding, strings.names, rb_ary_new_capa(RD_NAME_CACHE_SIZE));
    rb_ary_store(binding->strings.values, RD_VALUE_CACHE_SIZE - 1, Qnil);
    rb_ary_store(binding->strings.names, RD_NAME_CACHE_SIZE - 1, Qnil);
}

void rd_cache_clear(rd_binding *binding) {
    rd_free(binding->strings.value_entries);
    rd_free(binding->strings.name_entries);
}

VALUE rd_cached_value(rd_binding *binding, rd_slice bytes) {
    uint32_t hash = rd_hash_weak(bytes);
    uint32_t at = hash % RD_VALUE_CACHE_SIZE;
    rd_cache_entry *entry = &binding->strings.value_entries[at];
    if (entry->hash == hash && entry->len == bytes.len) {
        VALUE found = RARRAY_AREF(binding->strings.values, at);
        if (!NIL_P(found) && memcmp(RSTRING_PTR(found), bytes.ptr, bytes.len) == 0) return found;
    }
    VALUE string = rb_obj_freeze(rb_str_new(bytes.ptr, (long)bytes.len));
    *entry = (rd_cache_entry){hash, (uint32_t)bytes.len};
    rb_ary_store(binding->strings.values, at, string);
    return string;
}

static VALUE key_of(rd_slice name) {
    VALUE key = rb_usascii_str_new("HTTP_", 5);
    rb_str_modify_expand(key, (long)name.len);
    char *to = RSTRING_PTR(key) + 5;
    for (size_t i = 0; i < name.len; i++) {
        to[i] = name.ptr[i] == '-' ? '_' : rd_ascii_upper(name.ptr[i]);
    }
    rb_str_set_len(key, (long)name.len + 5);
    return key;
}

VALUE rd_cached_name(rd_binding *binding, rd_slice name) {
    uint32_t hash = rd_hash_weak(name);
    uint32_t at = hash % RD_NAME_CACHE_SIZE;
    rd_cache_entry *entry = &binding->strings.name_entries[at];
    /* Entries are [name as sent, key] pairs, so that the comparison is a memcmp. */
    if (entry->hash == hash && entry->len == name.len) {
        VALUE pair = RARRAY_AREF(binding->strings.names, at);
        if (!NIL_P(pair) && memcmp(RSTRING_PTR(RARRAY_AREF(pair, 0)), name.ptr, name.len) == 0) {
            return RARRAY_AREF(pair, 1);
        }
    }
    VALUE key = rb_str_to_interned_str(key_of(name));
    VALUE pair = rb_assoc_new(rb_obj_freeze(rb_str_new(name.ptr, (long)name.len)), key);
    /* This may raise NoMemoryError: then the old entry stays valid. */
    rb_ary_store(binding->strings.names, at, pair);
    *entry = (rd_cache_entry){hash, (uint32_t)name.len};
    return key;
}

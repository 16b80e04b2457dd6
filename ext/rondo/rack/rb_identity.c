/* SPDX-License-Identifier: MIT
 *
 * Keys of the env about the client's certificate; see rb_identity.h. lib/rondo/identity.rb makes
 * them.
 *
 * They are kept by the index of the connection, with its number: two connections that had the same
 * index one after the other are never mixed up. What a closed connection leaves is there until
 * another one has its index.
 */
#include "rack/rb_identity.h"

#include "base/alloc.h"
#include "ruby/rb_names.h"
#include "transport/identity.h"

static VALUE number_of(const rd_call *call) {
    return LONG2FIX((long)call->identity.number);
}

/* The keys of this connection, or nil. */
static VALUE kept(const rd_call *call) {
    VALUE all = call->binding->env.identities;
    const long at = (long)call->identity.owner * 2;
    if (at + 1 >= RARRAY_LEN(all) || RARRAY_AREF(all, at) != number_of(call)) return Qnil;
    return RARRAY_AREF(all, at + 1);
}

void rd_identity_note(rd_call *call) {
    rd_conn *owner = rd_identity_owner(call->request->conn);
    if (owner == NULL) return;
    call->identity.number = rd_identity_number(owner);
    call->identity.owner = owner->index;
    call->identity.keys = kept(call);
    if (!NIL_P(call->identity.keys)) return;
    call->identity.read = rd_alloc_zero(sizeof(rd_identity));
    rd_identity_read(call->identity.read, owner);
}

static VALUE text(const char *bytes) {
    return bytes == NULL ? Qnil : rb_usascii_str_new_cstr(bytes);
}

static VALUE make(const rd_identity *identity) {
    const rd_buffer *der = &identity->certificate;
    VALUE certificate =
        rd_buffer_len(der) == 0 ? Qnil : rb_str_new(rd_buffer_ptr(der), (long)rd_buffer_len(der));
    VALUE name = identity->server_name_len == 0
                     ? Qnil
                     : rb_usascii_str_new(identity->server_name, (long)identity->server_name_len);
    return rb_funcall(rb_path2class("Rondo::Identity"), rd_id.keys, 6,
                      identity->is_asked ? Qtrue : Qfalse, certificate, text(identity->invalid),
                      text(identity->protocol), text(identity->cipher), name);
}

static VALUE keep(rd_call *call, VALUE keys) {
    const long at = (long)call->identity.owner * 2;
    rb_ary_store(call->binding->env.identities, at + 1, keys);
    rb_ary_store(call->binding->env.identities, at, number_of(call));
    return keys;
}

void rd_identity_add(rd_call *call) {
    if (call->identity.read != NULL) {
        call->identity.keys = keep(call, make(call->identity.read));
        rd_identity_drop(call);
    }
    rb_hash_update_by(call->env, call->identity.keys, NULL);
}

void rd_identity_drop(rd_call *call) {
    rd_identity *identity = call->identity.read;
    if (identity == NULL) return;
    call->identity.read = NULL;
    rd_identity_clear(identity);
    rd_free(identity);
}

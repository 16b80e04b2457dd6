/* SPDX-License-Identifier: MIT
 *
 * Mailboxes: subscribers whose messages a Ruby thread of the server takes, and the numbers that
 * this thread writes to the scoreboard. lib/rondo/pubsub/presence has that thread.
 */
#include "app/rb_mailbox.h"

#include "ruby/rb_message.h"
#include "ruby/rb_value.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "app/rb_channels.h"

enum { BATCH = 64 };

/* Raises for a key that is not that of a mailbox of this server. */
static rd_endpoint *endpoint_of(const rd_binding *binding, VALUE key) {
    if (rb_hash_lookup(binding->clients.subscribers, key) != Qtrue) {
        rb_raise(rb_eArgError, "there is no such mailbox");
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): only who had the reference is in the Hash
    return (rd_endpoint *)(uintptr_t)NUM2ULL(key);
}

/* @param fd [Integer] gets a byte when the first message comes; the caller's until core_unsubscribe
 * @return [Integer] its key, for core_unsubscribe, too; nil in a child process */
static VALUE core_mailbox(VALUE self, VALUE fd) {
    rd_binding *binding = rd_binding_of(self);
    const int number = NUM2INT(fd);
    if (rd_is_forked(binding)) return Qnil;
    rd_lock(binding);
    rd_endpoint *endpoint = rd_pubsub_mailbox(&binding->server->pubsub, number);
    rd_unlock(binding);
    VALUE key = rd_subscriber_key(endpoint);
    rb_hash_aset(binding->clients.subscribers, key, Qtrue);
    return key;
}

/* @return [void] */
static VALUE core_mailbox_follow(VALUE self, VALUE key, VALUE channel) {
    rd_binding *binding = rd_binding_of(self);
    VALUE name = rd_channel_name_of(channel);
    const rd_pubsub_terms terms = {.as = RD_AS_SENT};
    if (rd_is_forked(binding)) return Qnil;
    rd_endpoint *endpoint = endpoint_of(binding, key);
    rd_lock(binding);
    rd_pubsub_subscribe(&binding->server->pubsub, endpoint, rd_slice_of_string(name), false,
                        &terms);
    rd_unlock(binding);
    RB_GC_GUARD(name);
    return Qnil;
}

/* @return [void] */
static VALUE core_mailbox_leave(VALUE self, VALUE key, VALUE channel) {
    rd_binding *binding = rd_binding_of(self);
    VALUE name = rd_channel_name_of(channel);
    if (rd_is_forked(binding)) return Qnil;
    rd_endpoint *endpoint = endpoint_of(binding, key);
    rd_lock(binding);
    rd_pubsub_unsubscribe(&binding->server->pubsub, endpoint, rd_slice_of_string(name), false);
    rd_unlock(binding);
    RB_GC_GUARD(name);
    return Qnil;
}

static int take(rd_binding *binding, rd_endpoint *endpoint, rd_message **messages) {
    int count = 0;
    rd_lock(binding);
    while (count < BATCH && (messages[count] = rd_mailbox_take(endpoint)) != NULL) count++;
    rd_unlock(binding);
    return count;
}

/* The oldest messages, some at a time: channel, message, channel, message.
 * @return [Array<String>] bytes; empty: there is none */
static VALUE core_mailbox_take(VALUE self, VALUE key) {
    rd_binding *binding = rd_binding_of(self);
    rd_message *messages[BATCH];
    VALUE taken = rb_ary_new();
    if (rd_is_forked(binding)) return taken;
    const int count = take(binding, endpoint_of(binding, key), messages);
    for (int i = 0; i < count; i++) {
        const rd_slice name = rd_message_channel(messages[i]);
        const rd_slice payload = rd_message_payload(messages[i]);
        rb_ary_push(taken, rb_str_new(name.ptr, (long)name.len));
        rb_ary_push(taken, rb_str_new(payload.ptr, (long)payload.len));
    }
    rd_lock(binding);
    for (int i = 0; i < count; i++) rd_message_unref(messages[i]);
    rd_unlock(binding);
    return taken;
}

/* @return [Integer] bytes of the largest message that is published */
static VALUE core_max_publish_bytes(VALUE self) {
    return LL2NUM(rd_binding_of(self)->server->settings.max_publish_bytes);
}

/* Writes numbers to the scoreboard, in the order of scoreboard.def.
 * @param numbers [Array<Integer>] rooms, ids, bytes, processes, refused, lost, repairs, invalid
 * @return [void] */
static VALUE core_note_presence(VALUE self, VALUE numbers) {
    const rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) return Qnil;
    rd_score_row *score = binding->server->score;
    _Atomic uint64_t *const rows[] = {
        &score->presence_rooms,     &score->presence_ids,     &score->presence_bytes,
        &score->presence_processes, &score->presence_refused, &score->presence_lost,
        &score->presence_repairs,   &score->presence_invalid,
    };
    for (long i = 0; i < (long)(sizeof(rows) / sizeof(rows[0])); i++) {
        atomic_store_explicit(rows[i], NUM2ULL(rb_ary_entry(numbers, i)), memory_order_relaxed);
    }
    return Qnil;
}

void rd_init_core_mailbox(VALUE core) {
    rb_define_method(core, "mailbox", core_mailbox, 1);
    rb_define_method(core, "mailbox_follow", core_mailbox_follow, 2);
    rb_define_method(core, "mailbox_leave", core_mailbox_leave, 2);
    rb_define_method(core, "mailbox_take", core_mailbox_take, 1);
    rb_define_method(core, "max_publish_bytes", core_max_publish_bytes, 0);
    rb_define_method(core, "note_presence", core_note_presence, 1);
}

/* SPDX-License-Identifier: MIT
 *
 * Channels for the application: subscribe, unsubscribe and publish of Rondo::Client, and what the
 * module Rondo::PubSub needs of a server (Rondo::Server::Core, see lib/rondo/pubsub/local.rb).
 *
 * C keeps a number for each block, and finds the block by this number in a Hash. When a
 * subscription ends, its block is removed, and a message that is still on its way to it is dropped.
 */
#include "app/rb_channels.h"

#include "base/error.h"
#include "pubsub/history.h"
#include "ruby/rb_message.h"
#include "ruby/rb_names.h"
#include "ruby/rb_value.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "app/rb_client.h"

#include <ruby/encoding.h>

static VALUE mRondo;

/* ---- arguments ---- */

static bool is_pattern(VALUE flag, VALUE match) {
    if (match == Qundef || NIL_P(match)) return RTEST(flag);
    if (match != ID2SYM(rd_id.redis)) rb_raise(rb_eArgError, "match must be :redis or nil");
    return true;
}

static rd_receive_as receive_as(VALUE as) {
    if (as == Qundef || NIL_P(as)) return RD_AS_SENT;
    if (as == ID2SYM(rd_id.text)) return RD_AS_TEXT;
    if (as == ID2SYM(rd_id.binary)) return RD_AS_BINARY;
    rb_raise(rb_eArgError, "as must be :text, :binary or nil");
}

/* What is no id is that of no message. A browser without a last id sends an empty one, or none. */
static bool read_id(rd_slice text, uint64_t *id) {
    if (text.len == 0) return false;
    if (!rd_history_parse_id(text, id)) *id = UINT64_MAX;
    return true;
}

/* Reads `since`: the id or time up to which the client has seen everything. False: not given. */
static bool read_since(VALUE since, uint64_t *id) {
    if (since == Qundef || NIL_P(since)) return false;
    if (RB_TYPE_P(since, T_STRING)) return read_id(rd_slice_of_string(since), id);
    if (rb_obj_is_kind_of(since, rb_cTime)) {
        VALUE us = rb_funcall(rb_funcall(since, rb_intern("to_r"), 0), '*', 1, INT2FIX(1000000));
        since = rb_funcall(us, rb_intern("to_i"), 0);
    }
    if (!RB_INTEGER_TYPE_P(since)) {
        rb_raise(rb_eTypeError, "since must be an Integer, a String or a Time, not %" PRIsVALUE,
                 rb_obj_class(since));
    }
    if (RTEST(rb_funcall(since, '<', 1, INT2FIX(0))))
        rb_raise(rb_eArgError, "since must not be negative");
    *id = NUM2ULL(since);
    return true;
}

/* ---- a client's subscriptions ---- */

typedef struct rd_subscribing {
    VALUE name, block; /* block: nil for none */
    bool is_pattern;
    rd_pubsub_terms terms;
} rd_subscribing;

/* An event stream continues after the last event that the browser has seen. */
static VALUE last_event_id(VALUE self) {
    if (!rd_endpoint_ops_of(rd_client_of(self)->endpoint)->has_ids) return Qnil;
    return rb_hash_lookup(rd_client_env(self), rd_key.http_last_event_id);
}

static void read_arguments(int argc, VALUE *argv, VALUE self, rd_subscribing *to) {
    VALUE channel, flag, options, values[3];
    const ID keywords[] = {rd_id.match, rd_id.as, rd_id.since};
    rb_scan_args(argc, argv, "11:&", &channel, &flag, &options, &to->block);
    rb_get_kwargs(options, keywords, 0, 3, values);
    to->is_pattern = is_pattern(flag, values[0]);
    to->name = rd_channel_pattern_of(channel, to->is_pattern);
    to->terms.as = receive_as(values[1]);
    VALUE since = values[2];
    if (since == Qundef && rd_client_of(self)->endpoint != NULL) since = last_event_id(self);
    to->terms.replays = read_since(since, &to->terms.since);
}

static VALUE block_key(VALUE name, bool is_pattern) {
    VALUE key = rb_str_new_cstr(is_pattern ? "p" : "c");
    rb_str_cat(key, RSTRING_PTR(name), RSTRING_LEN(name));
    RB_GC_GUARD(name);
    return key;
}

/* Keeps the block in place of the previous one. */
static void keep_block(VALUE self, rd_client *client, const rd_subscribing *subscribing) {
    if (NIL_P(client->blocks)) RB_OBJ_WRITE(self, &client->blocks, rb_hash_new());
    VALUE number = ULL2NUM(subscribing->terms.block);
    rb_hash_aset(client->blocks, number, subscribing->block);
    rb_hash_aset(client->blocks, block_key(subscribing->name, subscribing->is_pattern), number);
}

static void drop_block(const rd_client *client, VALUE name, bool is_pattern) {
    if (NIL_P(client->blocks)) return;
    VALUE number = rb_hash_delete(client->blocks, block_key(name, is_pattern));
    if (!NIL_P(number)) rb_hash_delete(client->blocks, number);
}

/* Sends the messages of a channel straight to the client, or to the block. A second call for the
 * same channel replaces the first. Any thread.
 * @overload subscribe(channel, is_pattern = false, match: nil, as: nil, since: nil)
 *   @param channel [String, Symbol] its name, up to 1024 bytes; a pattern up to 255
 *   @param is_pattern [Boolean] a pattern of names: * ? [a-z] [^x], \ before a literal character
 *   @param match [Symbol, nil] :redis: the name is a pattern
 *   @param as [Symbol, nil] :text or :binary: sends all messages in this form
 *   @param since [Integer, String, Time, nil] the last id that was seen, or a time: later messages
 *     that the history has kept are sent first; by default the Last-Event-ID of an event stream
 *   @yieldparam channel [String]
 *   @yieldparam message [String]
 *   @yieldparam id [Integer, nil] in the history
 *   @return [true, nil] nil when the client is closed, or at its limit of subscriptions, which is
 *     logged
 *   @raise [ArgumentError, TypeError] for a name or an option that is not valid */
static VALUE client_subscribe(int argc, VALUE *argv, VALUE self) {
    rd_client *client = rd_client_of(self);
    rd_subscribing to = {.block = Qnil};
    read_arguments(argc, argv, self, &to);
    if (!NIL_P(to.block)) to.terms.block = ++client->binding->clients.last_block;
    if (!rd_client_lock(client)) return Qnil;
    rd_unlock(client->binding);
    drop_block(client, to.name, to.is_pattern);
    if (!NIL_P(to.block)) keep_block(self, client, &to);
    int result = RD_ERR_CLOSED;
    if (rd_client_lock(client)) {
        result = rd_pubsub_subscribe(&client->binding->server->pubsub, client->endpoint,
                                     rd_slice_of_string(to.name), to.is_pattern, &to.terms);
        rd_unlock(client->binding);
    }
    RB_GC_GUARD(to.name);
    if (result >= 0) return Qtrue;
    drop_block(client, to.name, to.is_pattern);
    return Qnil;
}

/* @overload unsubscribe(channel, is_pattern = false, match: nil)
 *   @param channel [String, Symbol] as {#subscribe}
 *   @param is_pattern [Boolean]
 *   @param match [Symbol, nil]
 *   @return [Boolean] whether it was subscribed
 *   @raise [ArgumentError, TypeError] as {#subscribe} */
static VALUE client_unsubscribe(int argc, VALUE *argv, VALUE self) {
    rd_client *client = rd_client_of(self);
    VALUE channel, flag, options, match;
    rb_scan_args(argc, argv, "11:", &channel, &flag, &options);
    rb_get_kwargs(options, &rd_id.match, 0, 1, &match);
    VALUE name = rd_channel_name_of(channel);
    bool as_pattern = is_pattern(flag, match);
    drop_block(client, name, as_pattern);
    if (!rd_client_lock(client)) return Qfalse;
    bool was = rd_pubsub_unsubscribe(&client->binding->server->pubsub, client->endpoint,
                                     rd_slice_of_string(name), as_pattern);
    rd_unlock(client->binding);
    RB_GC_GUARD(name);
    return was ? Qtrue : Qfalse;
}

/* Publishes to all subscribers, including this client. Any thread.
 * @overload publish(channel, message, engine = nil, confirm: nil)
 *   @param channel [String, Symbol]
 *   @param message [String, Hash, Array] a Hash or an Array goes as JSON; bytes that are UTF-8 are
 *     text, whatever their encoding is called, and all others binary
 *   @param engine [Object, false, nil] nil for the default one, false for this process only
 *   @param confirm [Numeric, true, nil] as Rondo.publish; so are the block and the result then
 *   @return [Boolean] whether it is on its way
 *   @raise [ArgumentError, TypeError] for a name or a message that is not valid */
static VALUE client_publish(int argc, VALUE *argv, VALUE self) {
    (void)self;
    return rb_block_given_p() ? rb_funcall_passing_block(mRondo, rd_id.publish, argc, argv)
                              : rb_funcallv(mRondo, rd_id.publish, argc, argv);
}

/* @return [Integer] 0: pub/sub is available, as in the drafts for Rack */
static VALUE client_pubsub(VALUE self) {
    (void)self;
    return INT2FIX(0);
}

/* ---- what a server does for Rondo::PubSub ---- */

VALUE rd_subscriber_key(const rd_endpoint *endpoint) {
    return ULL2NUM((uint64_t)(uintptr_t)endpoint);
}

static rd_reach reach_of(VALUE name) {
    if (name == ID2SYM(rd_id.process)) return RD_REACH_PROCESS;
    if (name == ID2SYM(rd_id.siblings)) return RD_REACH_SIBLINGS;
    if (name == ID2SYM(rd_id.root)) return RD_REACH_ROOT;
    if (name == ID2SYM(rd_id.confirm)) return RD_REACH_CONFIRM;
    return name == ID2SYM(rd_id.engine) ? RD_REACH_ENGINE : RD_REACH_CLUSTER;
}

/* publish(channel, message, :process, :cluster, :engine, :confirm, :siblings or :root)
 * @return [Boolean] false when there is no room for it */
static VALUE core_publish(VALUE self, VALUE channel, VALUE message, VALUE reach) {
    rd_binding *binding = rd_binding_of(self);
    VALUE name = rd_channel_name_of(channel), string = rd_message_text_of(message);
    bool is_text = rd_message_is_published_as_text(string);
    if (rd_is_forked(binding)) return Qfalse;
    rd_lock(binding);
    int result = rd_pubsub_publish(&binding->server->pubsub, rd_slice_of_string(name),
                                   rd_slice_of_string(string), is_text, reach_of(reach));
    rd_unlock(binding);
    RB_GC_GUARD(name);
    RB_GC_GUARD(string);
    if (result == RD_ERR_RELAY_PAYLOAD) rd_message_too_long();
    return result > 0 ? Qtrue : Qfalse;
}

/* A subscriber with a block. @return [Integer] for core_unsubscribe */
static VALUE new_subscriber(rd_binding *binding, VALUE block, rd_endpoint **endpoint) {
    if (!RTEST(rb_obj_is_proc(block)))
        rb_raise(rb_eTypeError, "a subscription without a client needs a block");
    rd_lock(binding);
    *endpoint = rd_pubsub_subscriber(&binding->server->pubsub);
    rd_unlock(binding);
    VALUE key = rd_subscriber_key(*endpoint);
    rb_hash_aset(binding->clients.subscribers, key, block);
    return key;
}

/* Gives the subscriber with this key another block. NULL: the subscriber has ended. */
static rd_endpoint *find_subscriber(const rd_binding *binding, VALUE key, VALUE block) {
    if (NIL_P(key) || NIL_P(rb_hash_lookup(binding->clients.subscribers, key))) return NULL;
    if (!RTEST(rb_obj_is_proc(block)))
        rb_raise(rb_eTypeError, "a subscription without a client needs a block");
    rb_hash_aset(binding->clients.subscribers, key, block);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): only who had the reference is in the Hash
    return (rd_endpoint *)(uintptr_t)NUM2ULL(key);
}

/* `key`: of the subscription to the same channel that this one replaces, or nil. Each message
 * reaches exactly one of the two.
 * @return [Integer, nil] for core_unsubscribe; nil in a child process, whose server is the parent's
 */
static VALUE core_subscribe(VALUE self, VALUE channel, VALUE pattern, VALUE as, VALUE since,
                            VALUE block, VALUE key) {
    rd_binding *binding = rd_binding_of(self);
    rd_subscribing to = {.is_pattern = RTEST(pattern)};
    to.name = rd_channel_pattern_of(channel, to.is_pattern);
    to.terms = (rd_pubsub_terms){.as = receive_as(as), .block = 1};
    to.terms.replays = read_since(since, &to.terms.since);
    if (rd_is_forked(binding)) return Qnil;
    rd_endpoint *endpoint = find_subscriber(binding, key, block);
    if (endpoint == NULL) key = new_subscriber(binding, block, &endpoint);
    rd_lock(binding);
    rd_pubsub_subscribe(&binding->server->pubsub, endpoint, rd_slice_of_string(to.name),
                        to.is_pattern, &to.terms);
    rd_unlock(binding);
    RB_GC_GUARD(to.name);
    return key;
}

/* A signed name of a channel was refused. Any thread. */
static VALUE core_note_signed_refused(VALUE self) {
    const rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) return Qnil;
    atomic_fetch_add_explicit(&binding->server->score->signed_refused, 1, memory_order_relaxed);
    return Qnil;
}

/* Calls the block when first subscribers of channels have come or last ones gone: `change` says
 * which. @return [Integer] for core_unsubscribe */
static VALUE core_observe(VALUE self, VALUE block) {
    rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) return Qnil;
    rd_endpoint *endpoint;
    VALUE key = new_subscriber(binding, block, &endpoint);
    rd_lock(binding);
    rd_pubsub_observe(&binding->server->pubsub, endpoint);
    rd_unlock(binding);
    return key;
}

/* @return [Array(String, Boolean, Boolean), nil] the next change for the observer: name, whether it
 *   is a pattern, whether it has subscribers now; nil: there is none */
static VALUE core_change(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    rd_pubsub_change change;
    if (rd_is_forked(binding)) return Qnil;
    rd_lock(binding);
    const bool is_there = rd_pubsub_take_change(&binding->server->pubsub, &change);
    rd_unlock(binding);
    if (!is_there) return Qnil;
    return rb_ary_new_from_args(3, rb_utf8_str_new(change.name, (long)change.len),
                                change.is_pattern ? Qtrue : Qfalse,
                                change.is_wanted ? Qtrue : Qfalse);
}

static VALUE core_unsubscribe(VALUE self, VALUE key) {
    rd_binding *binding = rd_binding_of(self);
    if (NIL_P(rb_hash_delete(binding->clients.subscribers, key)) || rd_is_forked(binding))
        return Qfalse;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): only who had the reference is in the Hash
    rd_endpoint *endpoint = (rd_endpoint *)(uintptr_t)NUM2ULL(key);
    rd_lock(binding);
    rd_pubsub_release(&binding->server->pubsub, endpoint);
    rd_unlock(binding);
    return Qtrue;
}

/* @return [void]
 * @raise [ArgumentError] for a name that is not valid */
static VALUE core_keep(VALUE self, VALUE channel, VALUE pattern, VALUE size, VALUE ttl_ms,
                       VALUE bytes) {
    rd_binding *binding = rd_binding_of(self);
    VALUE name = rd_channel_pattern_of(channel, RTEST(pattern));
    const rd_relay_terms terms = {NUM2UINT(size), NUM2ULL(ttl_ms), NUM2ULL(bytes)};
    if (rd_is_forked(binding)) return Qnil;
    rd_lock(binding);
    rd_pubsub_keep(&binding->server->pubsub, rd_slice_of_string(name), RTEST(pattern), terms);
    rd_unlock(binding);
    RB_GC_GUARD(name);
    return Qnil;
}

/* ---- to the application ---- */

VALUE rd_channels_call_block(VALUE block, const rd_endpoint_message *message) {
    const rd_message *published = message->published;
    if (NIL_P(block)) return Qnil;
    rd_slice name = rd_message_channel(published), payload = rd_message_payload(published);
    VALUE arguments[] = {
        rb_utf8_str_new(name.ptr, (long)name.len),
        message->is_text ? rb_utf8_str_new(payload.ptr, (long)payload.len)
                         : rb_str_new(payload.ptr, (long)payload.len),
        published->id != 0 ? ULL2NUM(published->id) : Qnil,
    };
    /* A lambda with two parameters is called with two arguments. */
    int count = RTEST(rb_proc_lambda_p(block)) && rb_proc_arity(block) == 2 ? 2 : 3;
    return rb_proc_call_with_block(block, count, arguments, Qnil);
}

void rd_init_channels(VALUE cClient) {
    mRondo = rb_const_get(rb_cObject, rb_intern("Rondo"));
    rb_gc_register_mark_object(mRondo);
    rb_define_method(cClient, "subscribe", client_subscribe, -1);
    rb_define_method(cClient, "unsubscribe", client_unsubscribe, -1);
    rb_define_method(cClient, "publish", client_publish, -1);
    rb_define_method(cClient, "pubsub?", client_pubsub, 0);
}

void rd_init_core_channels(VALUE core) {
    rb_define_method(core, "publish", core_publish, 3);
    rb_define_method(core, "subscribe", core_subscribe, 6);
    rb_define_method(core, "unsubscribe", core_unsubscribe, 1);
    rb_define_method(core, "observe", core_observe, 1);
    rb_define_method(core, "note_signed_refused", core_note_signed_refused, 0);
    rb_define_method(core, "change", core_change, 0);
    rb_define_method(core, "keep", core_keep, 5);
}

/* SPDX-License-Identifier: MIT
 *
 * Rondo::Client: the argument of a handler's callbacks, one object per upgraded or raw connection,
 * from its upgrade until on_close has returned. The binding keeps clients by index. If the handler
 * has no callbacks, there is no client: the binding keeps the handler, so that it lives as long as
 * its connection.
 */
#include "app/rb_client.h"

#include "base/error.h"
#include "base/utf8.h"
#include "ruby/rb_message.h"
#include "ruby/rb_names.h"
#include "ruby/rb_value.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "rack/rb_call.h"
#include "app/rb_env_kept.h"

#include <ruby/encoding.h>

static VALUE cClient;

static void client_mark(void *pointer) {
    rd_client *client = pointer;
    rb_gc_mark_movable(client->handler);
    rb_gc_mark_movable(client->next_handler);
    rb_gc_mark_movable(client->env);
    rb_gc_mark_movable(client->blocks);
    /* The binding's objects live as long as the server, and a client may outlive the server. */
    if (client->binding != NULL) rb_gc_mark(client->binding->self);
}

static void client_compact(void *pointer) {
    rd_client *client = pointer;
    client->handler = rb_gc_location(client->handler);
    client->next_handler = rb_gc_location(client->next_handler);
    client->env = rb_gc_location(client->env);
    client->blocks = rb_gc_location(client->blocks);
}

/* Also frees a client whose server was dropped before on_close could be called. */
static void client_free(void *pointer) {
    rd_client *client = pointer;
    if (client->endpoint != NULL && !rd_is_forked(client->binding)) {
        rd_lock(client->binding);
        rd_endpoint_unref(client->endpoint);
        rd_unlock(client->binding);
    }
    if (client->binding != NULL) rd_binding_unref(client->binding);
    xfree(client);
}

static const rb_data_type_t client_type = {
    .wrap_struct_name = "Rondo::Client",
    .function = {.dmark = client_mark, .dfree = client_free, .dcompact = client_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

rd_client *rd_client_of(VALUE self) {
    return rb_check_typeddata(self, &client_type);
}

/* ---- from the application ---- */

bool rd_client_lock(rd_client *client) {
    if (client->endpoint == NULL || rd_is_forked(client->binding)) return false;
    rd_lock(client->binding);
    if (client->endpoint->conn != NULL && !client->endpoint->is_closing) return true;
    rd_unlock(client->binding);
    return false;
}

/* An event stream is text. Bytes without an encoding may be UTF-8; other encodings are refused. */
static bool needs_text(const rd_client *client, VALUE string) {
    if (!client->kind->text_only) return false;
    rd_slice bytes = rd_slice_of_string(string);
    if (rb_enc_get_index(string) != rb_ascii8bit_encindex() || !rd_utf8_is_text(bytes)) {
        rb_raise(rb_eArgError, "an event stream carries only text: the message must be UTF-8");
    }
    return true;
}

bool rd_client_goes_as_text(const rd_client *client, VALUE string) {
    if (client->kind->bytes_only) return false;
    return rd_message_is_text(string) || needs_text(client, string);
}

/* Queues one message; never blocks. Any thread.
 * @param data [String, Hash, Array] UTF-8 and US-ASCII are sent as text, other encodings as binary,
 *   a Hash or an Array as JSON; an event stream has only text, and takes binary Strings that are
 *   UTF-8; a raw connection sends the bytes of any String as they are
 * @return [Boolean] false when the connection is closed
 * @raise [TypeError] for anything else
 * @raise [ArgumentError] for text that is not valid, and in an event stream for what is not text
 * @see RFC 6455 section 5.6 */
static VALUE client_write(VALUE self, VALUE data) {
    rd_client *client = rd_client_of(self);
    VALUE string = rd_message_text_of(data);
    bool as_text = rd_client_goes_as_text(client, string);
    if (!rd_client_lock(client)) return Qfalse;
    rd_endpoint *endpoint = client->endpoint;
    rd_endpoint_ops_of(endpoint)->write(endpoint, RSTRING_PTR(string), (size_t)RSTRING_LEN(string),
                                        as_text);
    bool still_open = endpoint->conn != NULL;
    rd_unlock(client->binding);
    RB_GC_GUARD(string);
    return still_open ? Qtrue : Qfalse;
}

/* Closes the connection after what is queued. Any thread. Does nothing if it is already closed. An
 * event stream or a raw connection just ends; on_close gets the code and reason.
 * @overload close(code = 1000, reason = "")
 *   @param code [Integer] one that applications may use: 1000 to 1003, 1007 to 1014, 3000 to 4999
 *   @param reason [String] up to 123 bytes of UTF-8; more is cut
 *   @return [nil]
 *   @raise [ArgumentError] for any other code, or a reason that is not UTF-8
 *   @see RFC 6455 section 7.4 */
static VALUE client_close(int argc, VALUE *argv, VALUE self) {
    VALUE code, reason;
    rb_scan_args(argc, argv, "02", &code, &reason);
    int number = NIL_P(code) ? 1000 : NUM2INT(code);
    if (number < 0 || !rd_endpoint_is_close_code((unsigned)number)) {
        rb_raise(
            rb_eArgError,
            "%d is not a close code for applications (1000 to 1003, 1007 to 1014, 3000 to 4999)",
            number);
    }
    if (NIL_P(reason)) reason = rb_utf8_str_new_cstr("");
    StringValue(reason);
    if (!rd_message_is_encoded(reason) || rb_enc_str_coderange(reason) == ENC_CODERANGE_BROKEN) {
        rb_raise(rb_eArgError, "the reason is not valid UTF-8");
    }
    rd_client *client = rd_client_of(self);
    if (!rd_client_lock(client)) return Qnil;
    rd_slice text = rd_slice_of_string(reason);
    rd_endpoint_ops_of(client->endpoint)->close(client->endpoint, (unsigned)number, text);
    rd_unlock(client->binding);
    RB_GC_GUARD(reason);
    return Qnil;
}

/* @return [Boolean] whether write can succeed */
static VALUE client_is_open(VALUE self) {
    rd_client *client = rd_client_of(self);
    if (!rd_client_lock(client)) return Qfalse;
    rd_unlock(client->binding);
    return Qtrue;
}

/* @return [Integer] bytes that are queued; -1 when it is closed */
static VALUE client_pending(VALUE self) {
    rd_client *client = rd_client_of(self);
    if (!rd_client_lock(client)) return INT2FIX(-1);
    size_t bytes = client->endpoint->conn->out.bytes;
    rd_unlock(client->binding);
    return SIZET2NUM(bytes);
}

/* @return [Hash, nil] the env of the request that was upgraded, always the same Hash; nil for a raw
 *   connection that did not begin as a request. It equals the env of the application call, without
 *   what is valid only during that call: rack.hijack, rack.response_finished, rack.early_hints and
 *   the key of the handshake */
VALUE rd_client_env(VALUE self) {
    rd_client *client = rd_client_of(self);
    if (RB_TYPE_P(client->env, T_STRING)) return Qnil;
    if (RB_TYPE_P(client->env, T_ARRAY)) {
        RB_OBJ_WRITE(self, &client->env, rd_env_restore(client->binding, client->env));
    }
    return client->env;
}

/* @return [Array(String, Integer), nil] address and port of the other side: of the socket, or as a
 *   PROXY header says; nil for a Unix socket. The same in on_close. An outgoing connection has it
 *   while it is open */
static VALUE client_peer(VALUE self) {
    rd_client *client = rd_client_of(self);
    char text[RD_ADDRESS_TEXT_MAX];
    if (rd_client_lock(client)) {
        client->peer = client->endpoint->conn->peer;
        rd_unlock(client->binding);
    }
    if (client->peer.kind != RD_ADDRESS_V4 && client->peer.kind != RD_ADDRESS_V6) return Qnil;
    const size_t len = rd_address_text(&client->peer, text);
    return rb_assoc_new(rb_usascii_str_new(text, (long)len), INT2FIX(client->peer.port));
}

/* @return [String, nil] the protocol that the handshake of TLS agreed upon (ALPN); nil: none, or
 *   the connection is closed */
static VALUE client_alpn(VALUE self) {
    rd_client *client = rd_client_of(self);
    char text[RD_ENDPOINT_AGREED_MAX];
    if (!rd_client_lock(client)) return Qnil;
    const rd_slice name = rd_endpoint_agreed(client->endpoint);
    if (name.len > 0) memcpy(text, name.ptr, name.len);
    rd_unlock(client->binding);
    return name.len == 0 ? Qnil : rb_utf8_str_new(text, (long)name.len);
}

/* @return [Object] the object whose callbacks are called */
static VALUE client_handler(VALUE self) {
    const rd_client *client = rd_client_of(self);
    return client->next_handler == Qundef ? client->handler : client->next_handler;
}

bool rd_handler_answers(VALUE handler, ID callback) {
    return rb_obj_respond_to(handler, callback, true);
}

bool rd_handler_wants_events(VALUE handler) {
#define RD_ENDPOINT_EVENT(name, callback)                                                          \
    if (rd_handler_answers(handler, rd_id.callback)) return true;
#define RD_ENDPOINT_STEP(name)
#include "endpoint/endpoint_events.def"
#undef RD_ENDPOINT_EVENT
#undef RD_ENDPOINT_STEP
    return false;
}

void rd_client_set_handler(VALUE self, VALUE handler) {
    rd_client *client = rd_client_of(self);
    RB_OBJ_WRITE(self, &client->handler, handler);
    client->takes_messages = rd_handler_answers(handler, rd_id.on_message);
}

void rd_client_note_wishes(rd_client *client) {
    const bool drained = rd_handler_answers(client->handler, rd_id.on_drained);
    const bool ping = rd_handler_answers(client->handler, rd_id.ping);
    rd_lock(client->binding);
    client->endpoint->wants_drained = drained;
    client->endpoint->wants_ping = ping;
    rd_unlock(client->binding);
}

/* Sets another handler. When the present callback has returned, on_close of the old handler is
 * called, then on_open of the new one. Subscriptions stay. Any thread. Does nothing if the
 * connection is already closed.
 * @param handler [Object, nil] nil closes */
static VALUE client_change_handler(VALUE self, VALUE handler) {
    rd_client *client = rd_client_of(self);
    if (NIL_P(handler)) {
        client_close(0, NULL, self);
        return handler;
    }
    if (!rd_client_lock(client)) return handler;
    RB_OBJ_WRITE(self, &client->next_handler, handler);
    rd_endpoint_set_due(client->endpoint, RD_ENDPOINT_HANDLER);
    rd_endpoint_notify(client->endpoint);
    rd_unlock(client->binding);
    return handler;
}

/* @return [Float] seconds of silence after which the peer gets a ping, or the handler of a raw
 *   connection is asked for one (ping); 0: never */
static VALUE client_timeout(VALUE self) {
    rd_client *client = rd_client_of(self);
    if (!rd_client_lock(client)) return INT2FIX(0);
    uint32_t ms = client->endpoint->ping_interval_ms;
    rd_unlock(client->binding);
    return DBL2NUM(ms / 1000.0);
}

/* @param seconds [Numeric] from now on; 0: never
 * @raise [ArgumentError] for less than 0 or more than a day */
static VALUE client_set_timeout(VALUE self, VALUE seconds) {
    rd_client *client = rd_client_of(self);
    double ms = NUM2DBL(seconds) * 1000;
    if (!(ms >= 0 && ms <= 86400000))
        rb_raise(rb_eArgError, "timeout must be from 0 to 86400 seconds, not %" PRIsVALUE, seconds);
    if (!rd_client_lock(client)) return seconds;
    client->endpoint->ping_interval_ms = (uint32_t)ms;
    rd_endpoint_expect(client->endpoint);
    rd_unlock(client->binding);
    return seconds;
}

/* @return [Symbol] :websocket, :sse or :raw */
static VALUE client_protocol(VALUE self) {
    return rd_upgrade_symbol(rd_client_of(self)->kind);
}

/* @return [Integer, nil] inside on_close: the code of the peer or of this server; 1005 when the
 *   peer gave none, 1006 when the connection ended without a close frame. A raw connection has 1005
 *   when its peer ended it in good order, 1006 when it broke */
static VALUE client_close_code(VALUE self) {
    const rd_endpoint *endpoint = rd_client_of(self)->endpoint;
    return endpoint != NULL && rd_endpoint_is_ending(endpoint) ? INT2FIX(endpoint->close_code)
                                                               : Qnil;
}

/* @return [String, nil] inside on_close: the reason that came with the code */
static VALUE client_close_reason(VALUE self) {
    const rd_endpoint *endpoint = rd_client_of(self)->endpoint;
    if (endpoint == NULL || !rd_endpoint_is_ending(endpoint)) return Qnil;
    const rd_slice reason = rd_endpoint_reason_of(endpoint);
    return rb_utf8_str_new(reason.ptr, (long)reason.len);
}

/* From now on Rondo::Presence is told of its end.
 * @return [Boolean] false: it has ended
 * @api private */
static VALUE client_note_joined(VALUE self) {
    rd_client *client = rd_client_of(self);
    if (!rd_client_lock(client)) return Qfalse;
    rd_unlock(client->binding);
    client->has_joined = true;
    return Qtrue;
}

/* @return [String] always the same: applications log what they are given */
static VALUE client_inspect(VALUE self) {
    (void)self;
    return rb_usascii_str_new_cstr("#<Rondo::Client>");
}

/* ---- the upgrade ---- */

VALUE rd_client_new(rd_binding *binding, const rd_upgrade_row *kind, VALUE handler, VALUE env) {
    rd_client *client;
    VALUE self = TypedData_Make_Struct(cClient, rd_client, &client_type, client);
    client->env = client->blocks = Qnil;
    client->next_handler = Qundef;
    client->handler = Qnil;
    rd_client_set_handler(self, handler);
    RB_OBJ_WRITE(self, &client->env, env);
    rd_binding_ref(binding);
    client->binding = binding;
    RB_OBJ_WRITTEN(self, Qundef, binding->self);
    client->kind = kind;
    return self;
}

rd_client_seat rd_client_seat_new(rd_binding *binding, VALUE client, VALUE handler) {
    rd_client_seat seat = {.self = client};
    seat.wants_drained = rd_handler_answers(handler, rd_id.on_drained);
    seat.wants_ping = rd_handler_answers(handler, rd_id.ping);
    seat.index = rd_client_keep(binding, NIL_P(client) ? handler : client);
    return seat;
}

void rd_client_attach(const rd_client_seat *seat, rd_endpoint *endpoint) {
    endpoint->index = seat->index;
    endpoint->is_unclaimed = false;
    endpoint->wants_drained = seat->wants_drained;
    endpoint->wants_ping = seat->wants_ping;
    endpoint->is_deaf = NIL_P(seat->self);
    if (endpoint->is_deaf) {
        rd_endpoint_unref(endpoint); /* there is no client to keep it */
    } else {
        rd_client *client = rd_client_of(seat->self);
        client->endpoint = endpoint;
        if (endpoint->conn != NULL) client->peer = endpoint->conn->peer;
    }
}

uint32_t rd_client_keep(rd_binding *binding, VALUE object) {
    uint32_t index = rd_indexes_acquire(&binding->clients.indexes);
    rb_ary_store(binding->clients.objects, index, object);
    return index;
}

void rd_client_let_go(rd_binding *binding, uint32_t index) {
    rb_ary_store(binding->clients.objects, index, Qnil);
    rd_indexes_release(&binding->clients.indexes, index);
}

/* Document-class: Rondo::Client
 * An upgraded connection, a WebSocket or an event stream, or a raw connection. Callbacks of its
 * handler get it. */
void rd_init_client(VALUE rondo) {
    cClient = rb_define_class_under(rondo, "Client", rb_cObject);
    rb_undef_alloc_func(cClient);
    rb_define_method(cClient, "write", client_write, 1);
    rb_define_method(cClient, "close", client_close, -1);
    rb_define_method(cClient, "open?", client_is_open, 0);
    rb_define_method(cClient, "pending", client_pending, 0);
    rb_define_method(cClient, "env", rd_client_env, 0);
    rb_define_method(cClient, "peer", client_peer, 0);
    rb_define_method(cClient, "alpn", client_alpn, 0);
    rb_define_method(cClient, "handler", client_handler, 0);
    rb_define_method(cClient, "handler=", client_change_handler, 1);
    rb_define_method(cClient, "timeout", client_timeout, 0);
    rb_define_method(cClient, "timeout=", client_set_timeout, 1);
    rb_define_method(cClient, "protocol", client_protocol, 0);
    rb_define_method(cClient, "close_code", client_close_code, 0);
    rb_define_method(cClient, "close_reason", client_close_reason, 0);
    rb_define_method(cClient, "inspect", client_inspect, 0);
    rb_define_private_method(cClient, "note_joined", client_note_joined, 0);
}

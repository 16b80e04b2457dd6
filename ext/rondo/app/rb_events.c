/* SPDX-License-Identifier: MIT
 *
 * Events of upgraded connections and of subscriptions: which method or block is called, and with
 * which arguments; see rb_events.h.
 */
#include "app/rb_events.h"

#include "base/apart.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "binding/rb_report.h"
#include "app/rb_channels.h"
#include "app/rb_client.h"
#include "app/rb_connect.h"
#include "app/rb_raw.h"

#include <ruby/encoding.h>

/* Methods of the handler, by event; NULL: the event has none. */
static const ID *const callbacks[RD_ENDPOINT_EVENT_COUNT] = {
#define RD_ENDPOINT_EVENT(name, callback) [RD_ENDPOINT_##name] = &rd_id.callback,
#define RD_ENDPOINT_STEP(name)
#include "endpoint/endpoint_events.def"
#undef RD_ENDPOINT_EVENT
#undef RD_ENDPOINT_STEP
};

/* ---- connections ---- */

typedef struct rd_dispatching {
    rd_binding *binding;
    const rd_event *event;
    rd_endpoint *endpoint;
    VALUE client;
} rd_dispatching;

/* A text was checked when it came, so Ruby need not look at it again. The name of a channel was
 * not. */
static VALUE data_of(const rd_endpoint_message *message) {
    const char *bytes = rd_buffer_ptr(&message->payload);
    long len = (long)rd_buffer_len(&message->payload);
    if (!message->is_text) {
        return message->is_gap ? rb_utf8_str_new(bytes, len) : rb_str_new(bytes, len);
    }
    VALUE string = rb_str_new(bytes, len);
    RB_ENCODING_SET_INLINED(string, rb_utf8_encindex());
    RB_ENC_CODERANGE_SET(string,
                         message->is_ascii ? RUBY_ENC_CODERANGE_7BIT : RUBY_ENC_CODERANGE_VALID);
    return string;
}

/* Calls on_close of the old handler, then on_open of the new one. */
static VALUE change_handler(VALUE self) {
    rd_client *client = rd_client_of(self);
    VALUE before = client->handler, after = client->next_handler;
    client->next_handler = Qundef;
    rd_client_set_handler(self, after);
    rd_client_note_wishes(client);
    rb_check_funcall(before, rd_id.on_close, 1, &self);
    if (rd_is_forked(client->binding)) return Qnil;
    return rb_check_funcall(after, rd_id.on_open, 1, &self);
}

static VALUE dispatch(VALUE argument) {
    rd_dispatching *dispatching = (rd_dispatching *)argument;
    const unsigned kind = dispatching->event->kind;
    const rd_endpoint_message *message = rd_endpoint_message_of(dispatching->event);
    rd_client *client = rd_client_of(dispatching->client);
    VALUE arguments[] = {dispatching->client, Qnil};
    if (kind == RD_ENDPOINT_HANDLER) return change_handler(dispatching->client);
    if (kind == RD_ENDPOINT_PUBLISHED) {
        return rd_channels_call_block(rb_hash_lookup(client->blocks, ULL2NUM(message->block)),
                                      message);
    }
    if (message != NULL) arguments[1] = data_of(message);
    if (dispatching->endpoint->is_dialing) {
        rd_report_dial(dispatching->binding, dispatching->endpoint, dispatching->client);
        arguments[0] = Qnil;
    }
    if (kind == RD_ENDPOINT_MESSAGE && client->takes_messages) { /* saves 270 instructions */
        return rb_funcallv(client->handler, *callbacks[kind], 2, arguments);
    }
    return rb_check_funcall(client->handler, *callbacks[kind], message != NULL ? 2 : 1, arguments);
}

/* It leaves all rooms. */
static VALUE leave_rooms(VALUE self) {
    VALUE presence = rb_path2class("Rondo::Presence");
    return rb_funcall(presence, rb_intern("ended"), 1, self);
}

RD_APART static void end_presence(rd_binding *binding, VALUE self) {
    int state = 0;
    rb_protect(leave_rooms, self, &state);
    if (state == 0) return;
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    if (rb_obj_is_kind_of(error, rb_eException)) rd_report_error(binding, error, Qnil);
}

/* The connection has ended: no callback can be called for it any more. */
RD_APART static void forget(rd_binding *binding, rd_endpoint *endpoint, VALUE self) {
    if (endpoint->index != RD_ENDPOINT_NOBODY) rd_client_let_go(binding, endpoint->index);
    if (endpoint->is_deaf) return;
    rd_client *client = rd_client_of(self);
    client->endpoint = NULL;
    rd_lock(binding);
    rd_endpoint_unref(endpoint);
    rd_unlock(binding);
    if (client->has_joined) end_presence(binding, self);
}

/* An exception ends this connection and no other. A Thread#kill ends the thread. */
RD_APART static int handle_failure(rd_binding *binding, rd_endpoint *endpoint, int state) {
    VALUE error = rb_errinfo();
    rd_lock(binding);
    if (endpoint->conn != NULL && !endpoint->is_closing)
        rd_endpoint_ops_of(endpoint)->close(endpoint, 1011, RD_SLICE(""));
    rd_unlock(binding);
    if (!rb_obj_is_kind_of(error, rb_eException)) return state;
    rb_set_errinfo(Qnil);
    rd_report_error(binding, error, Qnil);
    return 0;
}

/* The first event of a connection that a listener accepted: this makes its handler. */
RD_APART static VALUE claim(VALUE argument) {
    const rd_dispatching *dispatching = (const rd_dispatching *)argument;
    rd_binding *binding = dispatching->binding;
    VALUE maker = RARRAY_AREF(binding->clients.objects, dispatching->endpoint->index);
    VALUE handler = rb_funcallv(maker, rd_id.call, 0, NULL);
    if (rd_is_forked(binding)) return Qnil;
    rd_raw_claim(binding, dispatching->endpoint, handler);
    return Qnil;
}

/* Without a handler the connection ends, and nobody gets its events. */
RD_APART static int try_claim(rd_dispatching *dispatching) {
    rd_endpoint *endpoint = dispatching->endpoint;
    int state = 0;
    rb_protect(claim, (VALUE)dispatching, &state);
    if (rd_is_forked(dispatching->binding) || !endpoint->is_unclaimed) return state;
    rd_lock(dispatching->binding);
    endpoint->index = RD_ENDPOINT_NOBODY;
    endpoint->is_unclaimed = false;
    endpoint->is_deaf = true;
    if (state == 0 && endpoint->conn != NULL && !endpoint->is_closing)
        rd_endpoint_ops_of(endpoint)->close(endpoint, 1000, RD_SLICE(""));
    rd_unlock(dispatching->binding);
    return state;
}

static VALUE object_of(const rd_binding *binding, const rd_endpoint *endpoint) {
    if (endpoint->index == RD_ENDPOINT_NOBODY) return Qnil;
    return RARRAY_AREF(binding->clients.objects, endpoint->index);
}

static int dispatch_connection(rd_binding *binding, const rd_event *event) {
    rd_endpoint *endpoint = rd_endpoint_of_source(event->source);
    rd_dispatching dispatching = {binding, event, endpoint, Qnil};
    int state = endpoint->is_unclaimed ? try_claim(&dispatching) : 0;
    if (rd_is_forked(binding)) return 0;
    VALUE self = dispatching.client = object_of(binding, endpoint);
    if (state == 0 && !endpoint->is_deaf) rb_protect(dispatch, (VALUE)&dispatching, &state);
    if (rd_is_forked(binding)) return 0;
    if (state != 0) state = handle_failure(binding, endpoint, state);
    if (event->kind == RD_ENDPOINT_CLOSE) forget(binding, endpoint, self);
    RB_GC_GUARD(self);
    return state;
}

/* ---- subscriptions of the application itself ---- */

static VALUE call_block(VALUE argument) {
    const rd_dispatching *dispatching = (const rd_dispatching *)argument;
    VALUE block = rb_hash_lookup(dispatching->binding->clients.subscribers,
                                 rd_subscriber_key(dispatching->endpoint));
    return rd_channels_call_block(block, rd_endpoint_message_of(dispatching->event));
}

RD_APART static int dispatch_subscriber(rd_binding *binding, const rd_event *event) {
    rd_endpoint *endpoint = rd_endpoint_of_source(event->source);
    rd_dispatching dispatching = {binding, event, endpoint, Qnil};
    int state = 0;
    rb_protect(call_block, (VALUE)&dispatching, &state);
    if (rd_is_forked(binding)) return 0;
    return state != 0 ? handle_failure(binding, endpoint, state) : 0;
}

/* ---- all events ---- */

int rd_event_dispatch(rd_binding *binding, const rd_event *event) {
    switch (event->source->ops->family) {
    case RD_EVENTS_OF_CONNECTION:
        return dispatch_connection(binding, event);
    case RD_EVENTS_OF_SUBSCRIBER:
        return dispatch_subscriber(binding, event);
    case RD_EVENT_FAMILY_COUNT:
        break;
    }
    return 0;
}

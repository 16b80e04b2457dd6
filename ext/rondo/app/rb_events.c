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

/* Methods of the handler, by event; NULL: the event has none. */
static const ID *const callbacks[RD_PUSH_EVENT_COUNT] = {
#define RD_PUSH_EVENT(name, callback) [RD_PUSH_##name] = &rd_id.callback,
#define RD_PUSH_STEP(name)
#include "http/push_events.def"
#undef RD_PUSH_EVENT
#undef RD_PUSH_STEP
};

bool rd_event_is_wanted(VALUE handler) {
    for (unsigned event = 0; event < RD_PUSH_EVENT_COUNT; event++) {
        if (callbacks[event] != NULL && rd_handler_answers(handler, *callbacks[event])) return true;
    }
    return false;
}

/* ---- connections ---- */

typedef struct rd_telling {
    rd_binding *binding;
    const rd_event *event;
    rd_push *push;
    VALUE client;
} rd_telling;

static VALUE data_of(const rd_push_message *message) {
    const char *bytes = rd_buffer_ptr(&message->payload);
    long len = (long)rd_buffer_len(&message->payload);
    return message->is_text ? rb_utf8_str_new(bytes, len) : rb_str_new(bytes, len);
}

/* Calls on_close of the old handler, then on_open of the new one. */
static VALUE change_handler(VALUE self) {
    rd_client *client = rd_client_of(self);
    VALUE before = client->handler, after = client->next_handler;
    client->next_handler = Qundef;
    RB_OBJ_WRITE(self, &client->handler, after);
    rd_client_watch_drained(client);
    rb_check_funcall(before, rd_id.on_close, 1, &self);
    if (rd_is_forked(client->binding)) return Qnil;
    return rb_check_funcall(after, rd_id.on_open, 1, &self);
}

static VALUE tell(VALUE argument) {
    rd_telling *telling = (rd_telling *)argument;
    const unsigned kind = telling->event->kind;
    const rd_push_message *message = rd_push_message_of(telling->event);
    rd_client *client = rd_client_of(telling->client);
    VALUE arguments[] = {telling->client, Qnil};
    if (kind == RD_PUSH_HANDLER) return change_handler(telling->client);
    if (kind == RD_PUSH_PUBLISHED) {
        return rd_channels_tell(rb_hash_lookup(client->blocks, ULL2NUM(message->block)), message);
    }
    if (message != NULL) arguments[1] = data_of(message);
    return rb_check_funcall(client->handler, *callbacks[kind], message != NULL ? 2 : 1, arguments);
}

/* The connection has ended: no callback can be called for it any more. */
RD_APART static void forget(rd_binding *binding, rd_push *push, VALUE self) {
    rd_client_let_go(binding, push->slot);
    if (push->is_deaf) return;
    rd_client_of(self)->push = NULL;
    rd_lock(binding);
    rd_push_unref(push);
    rd_unlock(binding);
}

/* An exception ends this connection and no other. A Thread#kill ends the thread. */
RD_APART static int handle_failure(rd_binding *binding, rd_push *push, int state) {
    VALUE error = rb_errinfo();
    rd_lock(binding);
    if (push->conn != NULL && !push->closing) push->ops->close(push, 1011, RD_SLICE(""));
    rd_unlock(binding);
    if (!rb_obj_is_kind_of(error, rb_eException)) return state;
    rb_set_errinfo(Qnil);
    rd_report_error(binding, error, Qnil);
    return 0;
}

static int tell_connection(rd_binding *binding, const rd_event *event) {
    rd_push *push = rd_push_of_source(event->source);
    VALUE self = RARRAY_AREF(binding->clients.objects, push->slot);
    rd_telling telling = {binding, event, push, self};
    int state = 0;
    if (!push->is_deaf) rb_protect(tell, (VALUE)&telling, &state);
    if (rd_is_forked(binding)) return 0;
    if (state != 0) state = handle_failure(binding, push, state);
    if (event->kind == RD_PUSH_CLOSE) forget(binding, push, self);
    RB_GC_GUARD(self);
    return state;
}

/* ---- subscriptions of the application itself ---- */

static VALUE call_block(VALUE argument) {
    const rd_telling *telling = (const rd_telling *)argument;
    VALUE block =
        rb_hash_lookup(telling->binding->clients.subscribers, rd_subscriber_key(telling->push));
    return rd_channels_tell(block, rd_push_message_of(telling->event));
}

RD_APART static int tell_subscriber(rd_binding *binding, const rd_event *event) {
    rd_push *push = rd_push_of_source(event->source);
    rd_telling telling = {binding, event, push, Qnil};
    int state = 0;
    rb_protect(call_block, (VALUE)&telling, &state);
    if (rd_is_forked(binding)) return 0;
    return state != 0 ? handle_failure(binding, push, state) : 0;
}

/* ---- all events ---- */

int rd_event_tell(rd_binding *binding, const rd_event *event) {
    switch (event->source->ops->family) {
    case RD_EVENTS_OF_CONNECTION:
        return tell_connection(binding, event);
    case RD_EVENTS_OF_SUBSCRIBER:
        return tell_subscriber(binding, event);
    case RD_EVENT_FAMILY_COUNT:
        break;
    }
    return 0;
}

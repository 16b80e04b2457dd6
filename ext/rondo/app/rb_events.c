/* SPDX-License-Identifier: MIT
 *
 * Events of upgraded connections and of subscriptions: which method or block is called with what;
 * see rb_events.h.
 */
#include "app/rb_events.h"

#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "binding/rb_report.h"
#include "app/rb_channels.h"
#include "app/rb_client.h"

typedef struct rd_telling {
    rd_binding *binding;
    const rd_event *event;
    VALUE client;
} rd_telling;

static VALUE data_of(const rd_push_message *message) {
    const char *bytes = rd_buffer_ptr(&message->payload);
    long len = (long)rd_buffer_len(&message->payload);
    return message->is_text ? rb_utf8_str_new(bytes, len) : rb_str_new(bytes, len);
}

/* The old one is told of its end, the new one of its beginning. */
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
    rd_client *client = rd_client_of(telling->client);
    VALUE arguments[] = {telling->client, Qnil};
    const rd_push_message *message = telling->event->message;
    switch (telling->event->kind) {
    case RD_PUSH_OPEN:
        return rb_check_funcall(client->handler, rd_id.on_open, 1, arguments);
    case RD_PUSH_MESSAGE:
        arguments[1] = data_of(message);
        return rb_check_funcall(client->handler, rd_id.on_message, 2, arguments);
    case RD_PUSH_PUBLISHED:
        return rd_channels_tell(rb_hash_lookup(client->blocks, ULL2NUM(message->block)), message);
    case RD_PUSH_HANDLER:
        return change_handler(telling->client);
    case RD_PUSH_DRAINED:
        return rb_check_funcall(client->handler, rd_id.on_drained, 1, arguments);
    case RD_PUSH_SHUTDOWN:
        return rb_check_funcall(client->handler, rd_id.on_shutdown, 1, arguments);
    case RD_PUSH_CLOSE:
        return rb_check_funcall(client->handler, rd_id.on_close, 1, arguments);
    case RD_PUSH_NOTHING:
        break;
    }
    return Qnil;
}

/* The connection is over: nobody can be told of it any more. */
static void forget(rd_binding *binding, rd_push *push, VALUE self) {
    rd_client_let_go(binding, push->slot);
    if (push->is_deaf) return;
    rd_client_of(self)->push = NULL;
    rd_lock(binding);
    rd_push_unref(push);
    rd_unlock(binding);
}

/* An exception is the end of this connection and of no other; a Thread#kill is for the thread. */
static int handle_failure(rd_telling *telling, int state) {
    VALUE error = rb_errinfo();
    rd_push *push = telling->event->push;
    rd_lock(telling->binding);
    if (push->conn != NULL && !push->closing) push->ops->close(push, 1011, RD_SLICE(""));
    rd_unlock(telling->binding);
    if (!rb_obj_is_kind_of(error, rb_eException)) return state;
    rb_set_errinfo(Qnil);
    rd_report_error(telling->binding, error, Qnil);
    return 0;
}

/* A subscription of the application itself: its block. */
static VALUE tell_subscriber(VALUE argument) {
    const rd_telling *telling = (const rd_telling *)argument;
    VALUE block =
        rb_hash_lookup(telling->binding->subscribers, rd_subscriber_key(telling->event->push));
    return rd_channels_tell(block, telling->event->message);
}

int rd_event_tell(rd_binding *binding, const rd_event *event) {
    int state = 0;
    bool is_own = rd_push_is_own(event->push);
    VALUE self = is_own ? Qnil : RARRAY_AREF(binding->clients, event->push->slot);
    rd_telling telling = {binding, event, self};
    if (!event->push->is_deaf) rb_protect(is_own ? tell_subscriber : tell, (VALUE)&telling, &state);
    if (rd_is_forked(binding)) return 0;
    if (state != 0) state = handle_failure(&telling, state);
    if (event->kind == RD_PUSH_CLOSE) forget(binding, event->push, self);
    RB_GC_GUARD(self);
    return state;
}

/* SPDX-License-Identifier: MIT
 *
 * Rondo::Client#event: an event of an event stream with its name, its id and the time to reconnect.
 */
#include "app/rb_client_event.h"

#include "base/utf8.h"
#include "ruby/rb_message.h"
#include "ruby/rb_names.h"
#include "ruby/rb_value.h"
#include "binding/rb_binding.h"
#include "app/rb_client.h"

#include <ruby/encoding.h>

static rd_slice slice_or_none(VALUE string) {
    return NIL_P(string) ? rd_slice_of(NULL, 0) : rd_slice_of_string(string);
}

/* A name or an id as a String, or nil. */
static VALUE line_of(VALUE value, const char *what) {
    if (NIL_P(value)) return Qnil;
    if (RB_SYMBOL_P(value) || RB_INTEGER_TYPE_P(value)) value = rb_obj_as_string(value);
    StringValue(value);
    if (!rd_utf8_is_line(rd_slice_of_string(value))) {
        rb_raise(rb_eArgError, "the %s of an event must be one line of UTF-8 without NUL", what);
    }
    return value;
}

static int64_t retry_of(VALUE value) {
    if (NIL_P(value)) return -1;
    if (!RB_FIXNUM_P(value) || FIX2LONG(value) < 0) {
        rb_raise(rb_eArgError, "retry must be a number of milliseconds, not %+" PRIsVALUE, value);
    }
    return FIX2LONG(value);
}

/* Queues an event; never blocks. Any thread. A WebSocket has no fields: it gets the data alone, as
 * by {#write}.
 * @overload event(data, event: nil, id: nil, retry: nil)
 *   @param data [String, Hash, Array, nil] as for {#write}; nil: sends no event, only id and retry
 *   @param event [String, Symbol, nil] its name; nil: "message"
 *   @param id [String, Integer, nil] what the client sends as Last-Event-ID when it reconnects
 *   @param retry [Integer, nil] milliseconds that the client waits before it reconnects
 *   @return [Boolean] false when the connection is closed
 *   @raise [TypeError, ArgumentError] as {#write}; also for event or id with CR, LF or NUL
 *   @see WHATWG HTML, section 9.2 */
static VALUE client_event(int argc, VALUE *argv, VALUE self) {
    VALUE data, options, values[3] = {Qundef, Qundef, Qundef};
    const ID names[] = {rd_id.event, rd_id.id, rd_id.retry};
    rd_client *client = rd_client_of(self);
    rb_scan_args(argc, argv, "1:", &data, &options);
    if (!NIL_P(options)) rb_get_kwargs(options, names, 0, 3, values);
    for (int i = 0; i < 3; i++) {
        if (values[i] == Qundef) values[i] = Qnil;
    }
    VALUE string = NIL_P(data) ? Qnil : rd_message_text_of(data);
    bool as_text = !NIL_P(string) && rd_client_goes_as_text(client, string);
    VALUE type = line_of(values[0], "name"), id = line_of(values[1], "id");
    const int64_t retry_ms = retry_of(values[2]);
    if (!rd_client_lock(client)) return Qfalse;
    const rd_named_event event = {.type = slice_or_none(type),
                                  .id = slice_or_none(id),
                                  .retry_ms = retry_ms,
                                  .data = slice_or_none(string),
                                  .is_text = as_text};
    rd_endpoint_ops_of(client->endpoint)->event(client->endpoint, &event);
    bool still_open = client->endpoint->conn != NULL;
    rd_unlock(client->binding);
    RB_GC_GUARD(string);
    RB_GC_GUARD(type);
    RB_GC_GUARD(id);
    return still_open ? Qtrue : Qfalse;
}

void rd_init_client_event(VALUE cClient) {
    rb_define_method(cClient, "event", client_event, -1);
}

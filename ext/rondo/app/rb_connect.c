/* SPDX-License-Identifier: MIT
 *
 * From Rondo.connect to an endpoint that is dialing (protocol/outgoing.h), and what the log says
 * when that fails. lib/rondo/process/outgoing.rb has checked the arguments.
 */
#include "app/rb_connect.h"

#include "base/alloc.h"
#include "http/field.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "ruby/rb_value.h"
#include "binding/rb_fork.h"
#include "app/rb_client.h"

#include <ruby/encoding.h>

static VALUE eDialLimit;

/* A call of Rondo.connect. On the stack, so the GC finds the objects, and does not move them. */
typedef struct rd_calling {
    rd_binding *binding;
    VALUE handler, where;
    VALUE host, peer_name, websocket[4]; /* Strings into which `to` and `call` point */
    rd_destination to;
    rd_targets found;
    rd_ws_call call;
    rd_client_seat seat;
    bool has_seat; /* and no endpoint has taken it yet */
} rd_calling;

static void read_targets(rd_calling *calling) {
    VALUE path = rd_option(calling->where, "path");
    rd_destination *to = &calling->to;
    if (NIL_P(calling->host)) {
        if (!rd_targets_of_path(&calling->found, StringValueCStr(path)))
            rb_raise(rd_eAddressError, "the path of a Unix socket is too long: %" PRIsVALUE, path);
        return;
    }
    to->port = (uint16_t)NUM2UINT(rd_option(calling->where, "port"));
    to->host = StringValueCStr(calling->host);
    if (rd_targets_read(&calling->found, to->host, to->port)) to->host = NULL;
}

static rd_slice text_of(VALUE hash, const char *name, VALUE *place) {
    *place = rd_option(hash, name);
    StringValue(*place);
    return rd_slice_of_string(*place);
}

/* The Strings have been checked. */
static void read_websocket(rd_calling *calling) {
    VALUE websocket = rd_option(calling->where, "websocket"), *texts = calling->websocket;
    if (NIL_P(websocket)) return;
    calling->call = (rd_ws_call){.target = text_of(websocket, "target", &texts[0]),
                                 .host = text_of(websocket, "host", &texts[1]),
                                 .fields = text_of(websocket, "fields", &texts[2]),
                                 .protocols = text_of(websocket, "protocols", &texts[3]),
                                 .deflates = calling->binding->server->settings.deflate != 0};
    calling->to.websocket = &calling->call;
}

/* Every such handler has a client, even one without callbacks, for the report of a failure. */
static void take_seat(rd_calling *calling) {
    const bool is_websocket = calling->to.websocket != NULL;
    const rd_upgrade_row *kind = is_websocket ? rd_upgrade_websocket() : &rd_upgrade_raw;
    VALUE place = rb_str_dup(rd_option(calling->where, "url"));
    if (is_websocket) rb_str_append(rb_str_cat_cstr(place, " "), calling->websocket[3]);
    VALUE client = rd_client_new(calling->binding, kind, calling->handler, rb_str_freeze(place));
    calling->seat = rd_client_seat_new(calling->binding, client, calling->handler);
    calling->has_seat = true;
}

/* Files were read already. */
static void read_tls(rd_calling *calling) {
    VALUE tls = rd_option(calling->where, "tls");
    if (NIL_P(tls)) return;
    calling->peer_name = rd_option(tls, "peer_name");
    calling->to.peer_name = StringValueCStr(calling->peer_name);
    calling->to.transport = rd_tls_client_from(&calling->binding->tls_clients, tls);
}

static bool is_full(rd_binding *binding) {
    rd_lock(binding);
    const bool is_full = rd_outgoings_are_full(&binding->server->outgoings);
    rd_unlock(binding);
    return is_full;
}

NORETURN(static void refuse(const rd_binding *binding));
static void refuse(const rd_binding *binding) {
    rb_raise(eDialLimit, "too many connections are being made: max_dials is %lld",
             (long long)binding->server->settings.max_dials);
}

/* The loop hears of it at once. Under the lock. */
static void begin_now(rd_calling *calling) {
    rd_server *server = calling->binding->server;
    rd_destination *to = &calling->to;
    if (to->host == NULL) {
        to->targets = rd_alloc(sizeof(*to->targets));
        *to->targets = calling->found;
    }
    rd_endpoint *endpoint = rd_outgoing_endpoint(&server->outgoings, to);
    rd_endpoint_ref(endpoint);
    rd_client_attach(&calling->seat, endpoint);
    calling->has_seat = false;
    rd_outgoing_begin(&server->outgoings, endpoint, to);
    rd_loop_wakeup(&server->loop);
}

/* False: other threads have begun so many since we looked. */
static bool begin(rd_calling *calling) {
    rd_binding *binding = calling->binding;
    rd_lock(binding);
    const bool has_room = !rd_outgoings_are_full(&binding->server->outgoings);
    if (has_room) begin_now(calling);
    rd_unlock(binding);
    return has_room;
}

static VALUE call(VALUE argument) {
    rd_calling *calling = (rd_calling *)argument;
    VALUE timeout = rd_option(calling->where, "timeout_ms");
    const int64_t usual_ms = calling->binding->server->settings.dial_timeout_ms;
    if (is_full(calling->binding)) refuse(calling->binding);
    calling->to.timeout_ms = NIL_P(timeout) ? (uint64_t)usual_ms : NUM2ULL(timeout);
    read_targets(calling);
    read_websocket(calling);
    take_seat(calling);
    read_tls(calling);
    if (!begin(calling)) refuse(calling->binding);
    return Qnil;
}

static VALUE leave(VALUE argument) {
    const rd_calling *calling = (const rd_calling *)argument;
    if (calling->has_seat) rd_client_let_go(calling->binding, calling->seat.index);
    if (calling->to.transport != NULL) rd_transport_unref(calling->to.transport);
    return Qnil;
}

/* connect(handler, where): `where` has url, host and port or path, and perhaps timeout_ms and
 * tls (rb_tls.h), with peer_name; of a WebSocket also websocket: target, host, fields, protocols */
static VALUE core_connect(VALUE self, VALUE handler, VALUE where) {
    rd_calling calling = {.binding = rd_own_binding_of(self), .handler = handler, .where = where};
    calling.host = rd_option(where, "host");
    return rb_ensure(call, (VALUE)&calling, leave, (VALUE)&calling);
}

/* ---- what the client remembers of it ---- */

/* The URL has no blank. Empty behind it: no sub-protocol was offered. */
static rd_slice split(VALUE place, rd_slice *offered) {
    const rd_slice all = rd_slice_of_string(place);
    const char *blank = memchr(all.ptr, ' ', all.len);
    *offered = RD_SLICE("");
    if (blank == NULL) return all;
    const size_t len = (size_t)(blank - all.ptr);
    *offered = rd_slice_of(blank + 1, all.len - len - 1);
    return rd_slice_of(all.ptr, len);
}

static unsigned chosen(const rd_client *client) {
    if (!RB_TYPE_P(client->env, T_STRING) || client->kind != rd_upgrade_websocket()) return 0;
    if (client->endpoint == NULL || rd_is_forked(client->binding)) return 0;
    rd_lock(client->binding);
    const unsigned place = rd_outgoing_subprotocol(client->endpoint);
    rd_unlock(client->binding);
    return place;
}

/* @return [String, nil] the sub-protocol that the server of an outgoing WebSocket has chosen; nil:
 *   none, or on_close has returned. A WebSocket of this server has what its application answered
 * @see RFC 6455 section 4.1 */
static VALUE client_subprotocol(VALUE self) {
    const rd_client *client = rd_client_of(self);
    rd_slice offered, name;
    unsigned left = chosen(client);
    if (left == 0) return Qnil;
    VALUE place = client->env;
    split(place, &offered);
    while (left > 0 && rd_field_next_element(&offered, &name)) left--;
    VALUE chosen_name = left > 0 ? Qnil : rb_utf8_str_new(name.ptr, (long)name.len);
    RB_GC_GUARD(place); /* the name is in it: it may be moved if the stack does not have it */
    return chosen_name;
}

void rd_init_client_connect(VALUE cClient) {
    rb_define_method(cClient, "subprotocol", client_subprotocol, 0);
}

typedef struct rd_dial_report {
    rd_binding *binding;
    VALUE place;
    rd_slice why;
} rd_dial_report;

static VALUE report(VALUE argument) {
    const rd_dial_report *failed = (const rd_dial_report *)argument;
    rd_slice offered;
    const rd_slice url = split(failed->place, &offered);
    return rb_funcall(failed->binding->app.reporter, rb_intern("report_dial"), 2,
                      rb_enc_str_new(url.ptr, (long)url.len, rb_enc_get(failed->place)),
                      rb_utf8_str_new(failed->why.ptr, (long)failed->why.len));
}

void rd_report_dial(rd_binding *binding, const rd_endpoint *endpoint, VALUE client) {
    const rd_dial_report failed = {binding, rd_client_of(client)->env,
                                   rd_endpoint_reason_of(endpoint)};
    int state = 0;
    rb_protect(report, (VALUE)&failed, &state);
    if (state != 0) rb_set_errinfo(Qnil);
}

void rd_init_core_connect(VALUE core, VALUE rondo) {
    /* Document-class: Rondo::DialLimitError
     * There are max_dials connections that are being made already. */
    eDialLimit = rb_define_class_under(rondo, "DialLimitError", rd_eError);
    rb_define_method(core, "connect", core_connect, 2);
}

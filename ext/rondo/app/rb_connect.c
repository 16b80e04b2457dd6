/* SPDX-License-Identifier: MIT
 *
 * From Rondo.connect to an endpoint that is dialing (protocol/outgoing.h), and what the log says
 * when that fails. lib/rondo/process/outgoing.rb has checked the arguments.
 */
#include "app/rb_connect.h"

#include "base/alloc.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "ruby/rb_value.h"
#include "app/rb_client.h"

static VALUE eDialLimit;

/* Once this is filled in, nothing raises before the endpoint is there. */
static rd_destination read_destination(VALUE where, uint64_t timeout_ms, rd_targets *targets) {
    VALUE host = rd_option(where, "host"), path = rd_option(where, "path");
    VALUE timeout = rd_option(where, "timeout_ms");
    rd_destination to = {.timeout_ms = NIL_P(timeout) ? timeout_ms : NUM2ULL(timeout)};
    if (NIL_P(host)) {
        if (!rd_targets_of_path(targets, StringValueCStr(path)))
            rb_raise(rd_eAddressError, "the path of a Unix socket is too long: %" PRIsVALUE, path);
        return to;
    }
    to.port = (uint16_t)NUM2UINT(rd_option(where, "port"));
    to.host = StringValueCStr(host);
    if (rd_targets_read(targets, to.host, to.port)) to.host = NULL;
    return to;
}

/* Files were read already. Returns the name into which `to` points. */
static VALUE read_tls(rd_binding *binding, VALUE where, rd_destination *to) {
    VALUE tls = rd_option(where, "tls");
    if (NIL_P(tls)) return Qnil;
    VALUE name = rd_option(tls, "peer_name");
    to->peer_name = StringValueCStr(name);
    to->transport = rd_tls_client_from(&binding->tls_clients, tls);
    return name;
}

static rd_slice text_of(VALUE hash, const char *name, volatile VALUE *place) {
    VALUE text = rd_option(hash, name);
    StringValue(text);
    *place = text;
    return rd_slice_of_string(text);
}

/* The Strings have been checked. */
static bool read_websocket(rd_binding *binding, VALUE where, rd_ws_call *call,
                           volatile VALUE texts[4]) {
    VALUE websocket = rd_option(where, "websocket");
    if (NIL_P(websocket)) return false;
    *call = (rd_ws_call){.target = text_of(websocket, "target", &texts[0]),
                         .host = text_of(websocket, "host", &texts[1]),
                         .fields = text_of(websocket, "fields", &texts[2]),
                         .protocols = text_of(websocket, "protocols", &texts[3]),
                         .deflates = binding->server->settings.deflate != 0};
    return true;
}

static void check_room(rd_binding *binding) {
    rd_lock(binding);
    const bool is_full = rd_outgoings_are_full(&binding->server->outgoings);
    rd_unlock(binding);
    if (!is_full) return;
    rb_raise(eDialLimit, "too many connections are being made: max_dials is %lld",
             (long long)binding->server->settings.max_dials);
}

/* Every such handler has a client, even one without callbacks, for the report of a failure. */
static rd_client_seat new_seat(rd_binding *binding, const rd_upgrade_row *kind, VALUE handler,
                               VALUE url) {
    VALUE client = rd_client_new(binding, kind, handler, url);
    return rd_client_seat_new(binding, client, handler);
}

/* The loop hears of it at once. */
static void begin(rd_server *server, const rd_client_seat *seat, const rd_destination *to) {
    rd_endpoint *endpoint = rd_outgoing_endpoint(&server->outgoings, to);
    rd_endpoint_ref(endpoint);
    rd_client_attach(seat, endpoint);
    rd_outgoing_begin(&server->outgoings, endpoint, to);
    rd_loop_wakeup(&server->loop);
}

/* connect(handler, where): `where` has url, host and port or path, and perhaps timeout_ms and
 * tls (rb_tls.h), with peer_name; of a WebSocket also websocket: target, host, fields, protocols */
static VALUE core_connect(VALUE self, VALUE handler, VALUE where) {
    rd_binding *binding = rd_own_binding_of(self);
    VALUE url = rb_str_new_frozen(rd_option(where, "url")), host = rd_option(where, "host");
    rd_targets found;
    rd_ws_call call;
    volatile VALUE texts[4] = {Qnil, Qnil, Qnil, Qnil}; /* on the stack, so they do not move */
    check_room(binding);
    const int64_t timeout_ms = binding->server->settings.dial_timeout_ms;
    rd_destination to = read_destination(where, (uint64_t)timeout_ms, &found);
    VALUE peer_name = read_tls(binding, where, &to);
    const bool is_websocket = read_websocket(binding, where, &call, texts);
    if (is_websocket) to.websocket = &call;
    const rd_client_seat seat =
        new_seat(binding, is_websocket ? rd_upgrade_websocket() : &rd_upgrade_raw, handler, url);
    if (to.host == NULL) {
        to.targets = rd_alloc(sizeof(found));
        *to.targets = found;
    }
    rd_lock(binding);
    begin(binding->server, &seat, &to);
    rd_unlock(binding);
    RB_GC_GUARD(host); /* `to` points into these, and what only a Hash holds may move */
    RB_GC_GUARD(peer_name);
    return Qnil;
}

typedef struct rd_dial_report {
    rd_binding *binding;
    VALUE url;
    rd_slice why;
} rd_dial_report;

static VALUE report(VALUE argument) {
    const rd_dial_report *failed = (const rd_dial_report *)argument;
    return rb_funcall(failed->binding->app.reporter, rb_intern("report_dial"), 2, failed->url,
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

/* SPDX-License-Identifier: MIT
 *
 * From a response to an upgraded connection: whether the upgrade in rack.upgrade, or the raw
 * connection in upgrade.tcp, is possible and allowed (lib/rondo/upgrades.rb has the messages), and
 * the switch to the handler. rb_dispatch.c calls it; rb_client.c has what the handler gets.
 */
#include "app/rb_upgrade.h"

#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "rack/rb_call.h"
#include "rack/rb_fields.h"
#include "app/rb_client.h"
#include "app/rb_env_kept.h"

/* ---- upgrades that are refused ---- */

/* The answer in place of an upgrade that is not possible; nil: the application's own. */
static VALUE answer_to_impossible(const rd_call *call, VALUE handler) {
    VALUE arguments[] = {handler, call->env, call->answer.status};
    return rb_funcallv(call->binding->app.upgrades, rd_id.report_impossible, 3, arguments);
}

/* The answer to a request from a page of another origin, RFC 6455 section 10.2. Nil: the origin is
 * allowed. */
static VALUE answer_to_stranger(const rd_call *call) {
    const rd_binding *binding = call->binding;
    bool is_trusted =
        rd_networks_contain(binding->proxies.trusted, binding->proxies.count, &call->conn.peer);
    VALUE arguments[] = {call->env, is_trusted ? Qtrue : Qfalse};
    if (!call->upgrade->same_origin) return Qnil;
    return rb_funcallv(binding->app.upgrades, rd_id.refuse, 2, arguments);
}

/* ---- the switch to the handler ---- */

/* Whether all fields that the application has given are kept. */
static bool choose_protocol(const rd_call *call, rd_collector *collector) {
    if (call->upgrade->choose == NULL) return true;
    collector->head.count =
        call->upgrade->choose(call->request, collector->fields, collector->count);
    return collector->head.count == collector->count;
}

static void report_protocol(const rd_call *call, VALUE handler) {
    VALUE arguments[] = {handler, call->env};
    rb_funcallv(call->binding->app.upgrades, rd_id.report_protocol, 2, arguments);
}

static VALUE new_client(rd_call *call, VALUE handler) {
    if (!rd_handler_wants_events(handler)) return Qnil;
    return rd_client_new(call->binding, call->upgrade, handler, rd_env_keep(call));
}

/* Under the lock. */
static rd_endpoint *begin(const rd_call *call, int status, const rd_response_head *head) {
    if (call->upgrade != &rd_upgrade_raw)
        return call->upgrade->begin(call->request, head->fields, head->count);
    return rd_raw_upgrade(call->request, status, head->fields, head->count);
}

/* Everything that can raise comes before the lock: an answer that has begun cannot be undone. */
static void upgrade(rd_call *call, VALUE handler, int status) {
    rd_binding *binding = call->binding;
    rd_collector collector;
    VALUE self = new_client(call, handler);
    rd_collector_init(&collector, call);
    collector.head.raw = true;
    rd_collector_read(&collector, call->answer.headers);
    bool all_stay = choose_protocol(call, &collector);
    const rd_client_seat seat = rd_client_seat_new(binding, self, handler);
    rd_lock(binding);
    call->state.started = call->state.done = true;
    call->answer.status = INT2FIX(status);
    rd_endpoint *endpoint = begin(call, status, &collector.head);
    if (endpoint != NULL) rd_client_attach(&seat, endpoint);
    rd_unlock(binding);
    RD_COLLECTOR_GUARD(&collector);
    RB_GC_GUARD(self);
    if (endpoint == NULL)
        rd_client_let_go(binding, seat.index); /* the client is gone: it was never open */
    if (!all_stay) report_protocol(call, handler);
}

/* ---- raw connections ---- */

/* The status of the answer; what is no status is 101. */
static int raw_status(int status) {
    if (status >= 100 && status < 200 && status != 101)
        rd_refuse_response("an informational status is not a response", INT2FIX(status));
    return status < 100 ? 101 : status;
}

/* The answer in place of a raw connection that is not possible; nil: the application's own. */
static VALUE answer_to_not_raw(const rd_call *call, VALUE handler) {
    VALUE arguments[] = {handler, call->env, call->answer.status};
    return rb_funcallv(call->binding->app.upgrades, rd_id.report_not_raw, 3, arguments);
}

static bool can_be_raw(const rd_call *call) {
    rd_lock(call->binding);
    const bool can = call->request->conn == NULL || rd_raw_is_possible(call->request);
    rd_unlock(call->binding);
    return can;
}

static bool upgrade_raw(rd_call *call) {
    VALUE handler = rb_hash_lookup(call->env, rd_key.upgrade_tcp);
    if (!RTEST(handler)) return false;
    const int status = NUM2INT(rb_Integer(call->answer.status));
    if (status >= 300) return false;
    if (!can_be_raw(call)) {
        VALUE response = answer_to_not_raw(call, handler);
        if (!NIL_P(response)) rd_call_replace_response(call, response);
        return false;
    }
    call->upgrade = &rd_upgrade_raw;
    upgrade(call, handler, raw_status(status));
    return true;
}

bool rd_upgrade(rd_call *call) {
    VALUE handler = rb_hash_lookup(call->env, rd_key.rack_upgrade);
    if (!RTEST(handler)) return upgrade_raw(call);
    if (NUM2INT(rb_Integer(call->answer.status)) >= 300) return false;
    VALUE response =
        call->upgrade != NULL ? answer_to_stranger(call) : answer_to_impossible(call, handler);
    if (!NIL_P(response)) rd_call_replace_response(call, response);
    if (!NIL_P(response) || call->upgrade == NULL) return false;
    upgrade(call, handler, call->upgrade->status);
    return true;
}

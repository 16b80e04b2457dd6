/* SPDX-License-Identifier: MIT
 *
 * From a response to an upgraded connection: whether the upgrade in rack.upgrade is possible and
 * allowed (lib/rondo/upgrades.rb has the messages), and the switch to the handler. rb_dispatch.c
 * calls it; rb_client.c has what the handler gets.
 */
#include "app/rb_upgrade.h"

#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "rack/rb_call.h"
#include "rack/rb_fields.h"
#include "app/rb_client.h"
#include "app/rb_events.h"

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

/* Under the lock, so that no event of the connection can be delivered before. */
static void attach_client(rd_endpoint *endpoint, rd_client *client, uint32_t index,
                          bool wants_drained) {
    endpoint->index = index;
    endpoint->wants_drained = wants_drained;
    endpoint->is_deaf = client == NULL;
    if (client != NULL) {
        client->endpoint = endpoint;
    } else {
        rd_endpoint_unref(endpoint); /* there is no client to keep it */
    }
}

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

/* Everything that can raise comes before the lock: an answer that has begun cannot be undone. */
static void upgrade(rd_call *call, VALUE handler) {
    rd_binding *binding = call->binding;
    rd_collector collector;
    bool wants_drained = rd_handler_answers(handler, rd_id.on_drained);
    VALUE self = rd_event_is_wanted(handler) ? rd_client_new(call, handler) : Qnil;
    rd_collector_init(&collector, call);
    collector.head.raw = true;
    rd_collector_read(&collector, call->answer.headers);
    bool all_stay = choose_protocol(call, &collector);
    uint32_t index = rd_client_keep(binding, NIL_P(self) ? handler : self);
    rd_lock(binding);
    call->state.started = call->state.done = true;
    call->answer.status = INT2FIX(call->upgrade->status);
    rd_endpoint *endpoint =
        call->upgrade->begin(call->request, collector.head.fields, collector.head.count);
    if (endpoint != NULL)
        attach_client(endpoint, NIL_P(self) ? NULL : rd_client_of(self), index, wants_drained);
    rd_unlock(binding);
    RD_COLLECTOR_GUARD(&collector);
    if (endpoint == NULL)
        rd_client_let_go(binding, index); /* the client is gone: it was never open */
    if (!all_stay) report_protocol(call, handler);
}

bool rd_upgrade(rd_call *call) {
    VALUE handler = rb_hash_lookup(call->env, rd_key.rack_upgrade);
    if (!RTEST(handler) || NUM2INT(rb_Integer(call->answer.status)) >= 300) return false;
    VALUE response =
        call->upgrade != NULL ? answer_to_stranger(call) : answer_to_impossible(call, handler);
    if (!NIL_P(response)) rd_call_replace_response(call, response);
    if (!NIL_P(response) || call->upgrade == NULL) return false;
    upgrade(call, handler);
    return true;
}

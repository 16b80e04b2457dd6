/* SPDX-License-Identifier: MIT
 *
 * Rondo::Server::Core: one server as a Ruby object. lib/rondo/server.rb wraps it and documents the
 * public interface; this class only passes the calls to C.
 */
#include "threads/rb_server.h"

#include "base/alloc.h"
#include "http/target.h"
#include "http2/http2.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "binding/rb_binding.h"
#include "binding/rb_cache.h"
#include "binding/rb_fork.h"
#include "binding/rb_listeners.h"
#include "binding/rb_pool.h"
#include "binding/rb_siblings.h"
#include "rack/rb_env.h"
#include "rack/rb_input.h"
#include "app/rb_channels.h"
#include "app/rb_mailbox.h"
#include "app/rb_connect.h"
#include "threads/rb_options.h"
#include "app/rb_raw.h"
#include "threads/rb_supervisor.h"

#define LINK_FINISH_MS 1000

static VALUE cCore;

/* ---- making one ---- */

/* Core.new(app, {setting: Integer}, {option: Object}) */
static VALUE core_initialize(VALUE self, VALUE app, VALUE numbers, VALUE options) {
    rd_binding *binding = rd_binding_allocated(self);
    rd_settings settings;
    if (binding->server != NULL) rb_raise(rd_eError, "initialised twice");
    rd_settings_init(&settings);
    rd_take_settings(&settings, numbers);
    binding->server = rd_server_new(&settings);
    if (binding->server == NULL) rb_sys_fail("cannot make a poller");
    binding->rules.early_hints = settings.early_hints != 0;
    binding->rules.frozen_headers = settings.frozen_headers != 0;
    binding->files.boundaries = rd_boundaries_random();
    RD_BINDING_SET(binding, app.object, app);
    RD_BINDING_SET(binding, clients.objects, rb_ary_new());
    RD_BINDING_SET(binding, clients.subscribers, rb_hash_new());
    RD_BINDING_SET(binding, tasks.objects, rb_ary_new());
    RD_BINDING_SET(binding, env.key_lists, rb_ary_new());
    RD_BINDING_SET(binding, env.identities, rb_ary_new());
    RD_BINDING_SET(binding, lent.strings, rb_ary_new());
    RD_BINDING_SET(binding, app.threads, rb_ary_new());
    RD_BINDING_SET(binding, env.empty_input, rd_input_empty());
    rd_take_options(binding, options);
    rd_pool_init(binding);
    rd_cache_init(binding);
    rd_env_init(binding);
    rd_list_append(&rd_all_bindings, &binding->in_all); /* last, because an option may raise */
    return self;
}

/* ---- running ---- */

static VALUE core_run(VALUE self) {
    rd_binding *binding = rd_own_binding_of(self);
    if (binding->running) rb_raise(rd_eError, "the server is already running");
    rd_supervisor_run(binding);
    return Qnil;
}

static VALUE core_stop(VALUE self, VALUE force, VALUE drain, VALUE spread) {
    rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) return Qnil; /* nothing runs here; an at_exit block may call it */
    if (!RTEST(drain) || !RTEST(spread)) {
        rd_lock(binding);
        if (!RTEST(drain)) rd_server_leave_queues(binding->server);
        if (!RTEST(spread)) rd_server_end_in_one_go(binding->server);
        rd_unlock(binding);
    }
    rd_server_stop(binding->server, RTEST(force) ? RD_STOP_NOW : RD_STOP_DRAIN);
    return Qnil;
}

static void finish_link_nogvl(void *link) {
    rd_link_finish(link, LINK_FINISH_MS);
}

/* Sends what was published, before the process ends. */
static VALUE core_finish_link(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    rd_link *link = binding->server->pubsub.link;
    if (link != NULL && !rd_is_forked(binding)) rd_gvl_run(finish_link_nogvl, link);
    return Qnil;
}

static void put_stat(VALUE stats, const char *name, uint64_t value) {
    rb_hash_aset(stats, ID2SYM(rb_intern(name)), ULL2NUM(value));
}

/* The numbers of the scoreboard, and numbers that only this process knows. */
static VALUE core_stats(VALUE self) {
    rd_binding *binding = rd_own_binding_of(self);
    rd_server *server = binding->server;
    VALUE stats = rb_hash_new();
    rd_lock(binding);
    rd_server_write_scores(server);
    uint32_t active = server->http.requests.live;
    rd_unlock(binding);
    for (size_t i = 0; i < rd_score_count; i++) {
        const rd_score_info *row = &rd_score_table[i];
        if (row->kind != RD_SCORE_FACT)
            put_stat(stats, row->name, rd_score_get(server->score, row));
    }
    put_stat(stats, "active", active);
    put_stat(stats, "waiting", binding->pool.waiting);
    put_stat(stats, "request_log_lost", binding->log.lost);
    return stats;
}

/* Several applications: this one finds the right one by core_site(). Before the first of their
 * listeners is open. */
static VALUE core_set_app(VALUE self, VALUE app) {
    rd_binding *binding = rd_binding_of(self);
    RD_BINDING_SET(binding, app.object, app);
    return app;
}

/* The number of the application that the request of this thread is for. */
static VALUE core_site(VALUE self) {
    const rd_visit *visit = rd_visit_current(rd_binding_of(self));
    return UINT2NUM(visit == NULL || visit->request == NULL ? 0 : visit->request->site);
}

static VALUE core_in_flight(VALUE self) {
    return rd_supervisor_in_flight(rd_own_binding_of(self));
}

/* The limit of connections. */
static VALUE core_connection_limit(VALUE self) {
    return UINT2NUM(rd_binding_of(self)->server->accepting.limit);
}

static VALUE core_poller(VALUE self) {
    return rb_str_new_cstr(rd_binding_of(self)->server->loop.ops->name);
}

/* @return [String, nil] the library and its version; nil: this build has no HTTP/2 */
static VALUE core_http2_library(VALUE self) {
    (void)self;
    const char *library = rd_http2_library();
    return library == NULL ? Qnil : rb_sprintf("nghttp2 %s", library);
}

void rd_init_server(VALUE rondo) {
    VALUE server = rb_define_class_under(rondo, "Server", rb_cObject);
    rd_init_forks();
    /* Document-class: Rondo::Server::Core
     * What Rondo::Server is in the extension.
     * @api private */
    cCore = rb_define_class_under(server, "Core", rb_cObject);
    rb_define_alloc_func(cCore, rd_binding_allocate);
    rb_define_singleton_method(cCore, "http2_library", core_http2_library, 0);
    rb_define_method(cCore, "initialize", core_initialize, 3);
    rb_define_method(cCore, "run", core_run, 0);
    rb_define_method(cCore, "stop", core_stop, 3);
    rb_define_method(cCore, "finish_link", core_finish_link, 0);
    rb_define_method(cCore, "stats", core_stats, 0);
    rb_define_method(cCore, "in_flight", core_in_flight, 0);
    rb_define_method(cCore, "poller", core_poller, 0);
    rb_define_method(cCore, "app=", core_set_app, 1);
    rb_define_method(cCore, "site", core_site, 0);
    rb_define_method(cCore, "connection_limit", core_connection_limit, 0);
    rd_init_core_listening(cCore);
    rd_init_core_channels(cCore);
    rd_init_core_mailbox(cCore);
    rd_init_core_raw(cCore);
    rd_init_core_connect(cCore, rondo);
    rd_init_core_siblings(cCore);
    rb_define_const(cCore, "DESCRIPTORS_KEPT", INT2FIX(RD_DESCRIPTORS_KEPT));
}

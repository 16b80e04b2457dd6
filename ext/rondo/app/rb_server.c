/* SPDX-License-Identifier: MIT
 *
 * Rondo::Server::Core: one server as a Ruby object. lib/rondo/server.rb wraps it and documents
 * what people use; this class only carries the calls into C.
 */
#include "base/alloc.h"
#include "http/target.h"
#include "ruby/rb_call.h"
#include "ruby/rb_client.h"
#include "ruby/rb_error.h"
#include "rack/rb_file.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_listen.h"
#include "ruby/rb_names.h"
#include "binding/rb_siblings.h"
#include "ruby/rb_value.h"

#define LINK_FINISH_MS 1000

static VALUE cCore;

/* ---- life ---- */

static void core_mark(void *pointer) {
    rd_binding *binding = pointer;
    if (binding == NULL) return;
#define MARK(name) rb_gc_mark_movable(binding->name);
    RD_BINDING_VALUES(MARK)
#undef MARK
}

static void core_compact(void *pointer) {
    rd_binding *binding = pointer;
    if (binding == NULL) return;
#define MOVE(name) binding->name = rb_gc_location(binding->name);
    MOVE(self)
    RD_BINDING_VALUES(MOVE)
#undef MOVE
}

static void core_free(void *pointer) {
    if (pointer != NULL) rd_binding_unref(pointer);
}

static size_t core_size(const void *pointer) {
    return pointer == NULL ? 0 : sizeof(rd_binding) + sizeof(rd_server);
}

static const rb_data_type_t core_type = {
    .wrap_struct_name = "Rondo::Server::Core",
    .function = {.dmark = core_mark,
                 .dfree = core_free,
                 .dsize = core_size,
                 .dcompact = core_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

void rd_binding_ref(rd_binding *binding) {
    binding->refs++;
}

void rd_binding_unref(rd_binding *binding) {
    if (--binding->refs > 0) return;
    if (rd_is_forked(binding)) return; /* the parent's: removing a socket here removes it there */
    if (binding->server != NULL) {
        if (rd_list_is_linked(&binding->in_all)) rd_list_unlink(&binding->in_all);
        rd_server_free(binding->server);
    }
    rd_borrow_clear(binding);
    rd_slots_clear(&binding->client_slots);
    rd_cache_clear(binding);
    rd_env_cache_clear(binding);
    rd_file_roots_clear(&binding->file_roots);
    rd_free(binding->trusted);
    rd_free(binding->log_bytes);
    rd_free(binding);
}

rd_binding *rd_binding_of(VALUE self) {
    rd_binding *binding = rb_check_typeddata(self, &core_type);
    if (binding == NULL || binding->server == NULL)
        rb_raise(rd_eError, "server is not initialised");
    return binding;
}

rd_binding *rd_own_binding_of(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) rb_raise(rd_eError, "this server belongs to the parent process");
    return binding;
}

static VALUE core_allocate(VALUE klass) {
    VALUE self = TypedData_Wrap_Struct(klass, &core_type, NULL);
    rd_binding *binding = rd_alloc_zero(sizeof(*binding));
    binding->self = self;
    binding->refs = 1;
    binding->forks = rd_forks();
    rd_list_init(&binding->in_all);
#define CLEAR(name) binding->name = Qnil;
    RD_BINDING_VALUES(CLEAR)
#undef CLEAR
    DATA_PTR(self) = binding;
    return self;
}

/* ---- settings ---- */

static int take_setting(VALUE key, VALUE value, VALUE argument) {
    rd_settings *settings = (rd_settings *)argument;
    VALUE name = rb_sym2str(key);
    const rd_setting_info *row = rd_setting_find(RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    if (row == NULL) rb_raise(rd_eSettingError, "unknown setting %s", RSTRING_PTR(name));
    int64_t number = value == Qtrue ? 1 : value == Qfalse ? 0 : NUM2LL(value);
    if (rd_settings_set(settings, row, number) != 0) {
        rb_raise(rd_eSettingError, "%s %lld is not between %lld and %lld", row->name,
                 (long long)number, (long long)row->min, (long long)row->max);
    }
    return ST_CONTINUE;
}

static rd_network *networks_of(VALUE list, const char *what, size_t *count) {
    *count = 0;
    if (NIL_P(list)) return NULL;
    Check_Type(list, T_ARRAY);
    size_t len = (size_t)RARRAY_LEN(list);
    VALUE room = rb_str_buf_new((long)(len * sizeof(rd_network)));
    rd_network *parsed = (rd_network *)(void *)RSTRING_PTR(room);
    for (size_t i = 0; i < len; i++) {
        VALUE text = rb_obj_as_string(RARRAY_AREF(list, (long)i));
        if (!rd_network_parse(&parsed[i], RSTRING_PTR(text), (size_t)RSTRING_LEN(text))) {
            rb_raise(rd_eSettingError, "%s: %s is no address or network", what,
                     StringValueCStr(text));
        }
    }
    rd_network *networks = rd_alloc(len * sizeof(rd_network) + 1);
    memcpy(networks, parsed, len * sizeof(rd_network));
    *count = len;
    RB_GC_GUARD(room);
    return networks;
}

static VALUE shared_value(VALUE text) {
    if (NIL_P(text)) return Qnil;
    if (strcmp(StringValueCStr(text), "https") == 0) return rd_key.https;
    if (strcmp(StringValueCStr(text), "http") == 0) return rd_key.http;
    return rb_str_to_interned_str(rb_str_dup(text));
}

static void take_default_host(rd_binding *binding, VALUE text) {
    if (NIL_P(text)) return;
    uint32_t host_len;
    uint16_t port;
    StringValue(text);
    if (rd_authority_parse(RSTRING_PTR(text), (size_t)RSTRING_LEN(text), &host_len, &port) < 0) {
        rb_raise(rd_eSettingError, "default_host: %" PRIsVALUE " is no HOST or HOST:PORT", text);
    }
    RD_BINDING_SET(binding, default_host, rb_str_to_interned_str(rb_str_substr(text, 0, host_len)));
    if (port == 0) return;
    VALUE digits = rb_obj_as_string(UINT2NUM(port));
    RD_BINDING_SET(binding, default_port, rb_str_to_interned_str(digits));
}

/* A socket to the hub of a cluster, which is taken over. */
static void take_link(rd_binding *binding, VALUE link) {
    if (NIL_P(link)) return;
    const int number = NUM2INT(link);
    rd_lock(binding);
    const int opened = rd_pubsub_link(&binding->server->pubsub, number);
    rd_unlock(binding);
    if (opened != 0) rb_sys_fail("link");
}

static void take_options(rd_binding *binding, VALUE options) {
    size_t count;
    RD_BINDING_SET(binding, reporter, rd_option(options, "reporter"));
    RD_BINDING_SET(binding, upgrades, rd_option(options, "upgrades"));
    RD_BINDING_SET(binding, request_log, rd_option(options, "request_log"));
    RD_BINDING_SET(binding, scheme, shared_value(rd_option(options, "url_scheme")));
    binding->log_json = rd_option(options, "request_log_format") == ID2SYM(rb_intern("json"));
    binding->split_newlines = RTEST(rd_option(options, "split_newlines"));
    take_default_host(binding, rd_option(options, "default_host"));
    rd_take_slot(binding, options);
    take_link(binding, rd_option(options, "link"));
    rd_serve_folder(binding, rd_option(options, "public"),
                    RTEST(rd_option(options, "public_only")));
    rd_allow_file_roots(binding, rd_option(options, "x_sendfile_roots"));
    RD_BINDING_SET(binding, sendfile_type, rd_option(options, "sendfile_type"));
    RD_BINDING_SET(binding, thread_start, rd_option(options, "thread_start"));
    RD_BINDING_SET(binding, thread_exit, rd_option(options, "thread_exit"));
    binding->trusted =
        networks_of(rd_option(options, "trusted_proxies"), "trusted_proxies", &count);
    binding->trusted_count = count;
    rd_network *proxies =
        networks_of(rd_option(options, "proxy_protocol_from"), "proxy_protocol_from", &count);
    rd_server_set_proxies(binding->server, proxies, count);
}

/* Core.new(app, {setting: Integer}, {option: Object}) */
static VALUE core_initialize(VALUE self, VALUE app, VALUE numbers, VALUE options) {
    rd_binding *binding = rb_check_typeddata(self, &core_type);
    rd_settings settings;
    if (binding->server != NULL) rb_raise(rd_eError, "initialised twice");
    rd_settings_init(&settings);
    rb_hash_foreach(numbers, take_setting, (VALUE)&settings);
    binding->server = rd_server_new(&settings);
    if (binding->server == NULL) rb_sys_fail("cannot make a poller");
    binding->early_hints = settings.early_hints != 0;
    binding->frozen_headers = settings.frozen_headers != 0;
    binding->boundaries = rd_boundaries_random();
    RD_BINDING_SET(binding, app, app);
    RD_BINDING_SET(binding, clients, rb_ary_new());
    RD_BINDING_SET(binding, subscribers, rb_hash_new());
    RD_BINDING_SET(binding, key_lists, rb_ary_new());
    RD_BINDING_SET(binding, borrowed, rb_ary_new());
    RD_BINDING_SET(binding, threads, rb_ary_new());
    RD_BINDING_SET(binding, empty_input, rd_input_empty());
    take_options(binding, options);
    rd_pool_init(binding);
    rd_cache_init(binding);
    rd_env_init(binding);
    rd_list_append(&rd_all_bindings, &binding->in_all); /* last: an option may have raised */
    return self;
}

/* ---- running ---- */

static VALUE core_run(VALUE self) {
    rd_binding *binding = rd_own_binding_of(self);
    if (binding->running) rb_raise(rd_eError, "the server is running already");
    rd_pool_run(binding);
    return Qnil;
}

static VALUE core_stop(VALUE self, VALUE force) {
    rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) return Qnil; /* nothing runs here; an at_exit may ask */
    rd_server_stop(binding->server, RTEST(force) ? RD_STOP_NOW : RD_STOP_DRAIN);
    return Qnil;
}

static void finish_link_nogvl(void *link) {
    rd_link_finish(link, LINK_FINISH_MS);
}

/* What was published leaves before the process ends. */
static VALUE core_finish_link(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    rd_link *link = binding->server->pubsub.link;
    if (link != NULL && !rd_is_forked(binding)) rd_gvl_run(finish_link_nogvl, link);
    return Qnil;
}

static void put_stat(VALUE stats, const char *name, uint64_t value) {
    rb_hash_aset(stats, ID2SYM(rb_intern(name)), ULL2NUM(value));
}

/* The numbers of the scoreboard, and what only this process knows. */
static VALUE core_stats(VALUE self) {
    rd_binding *binding = rd_own_binding_of(self);
    rd_server *server = binding->server;
    VALUE stats = rb_hash_new();
    rd_lock(binding);
    rd_server_publish(server);
    uint32_t active = server->http.requests.live;
    rd_unlock(binding);
    for (size_t i = 0; i < rd_score_count; i++) {
        const rd_score_info *row = &rd_score_table[i];
        if (row->kind != RD_SCORE_FACT)
            put_stat(stats, row->name, rd_score_get(server->score, row));
    }
    put_stat(stats, "active", active);
    put_stat(stats, "waiting", binding->pool.waiting);
    put_stat(stats, "request_log_lost", binding->log_lost);
    return stats;
}

static VALUE core_in_flight(VALUE self) {
    return rd_pool_in_flight(rd_own_binding_of(self));
}

/* How many connections there can be at once. */
static VALUE core_connection_limit(VALUE self) {
    return UINT2NUM(rd_binding_of(self)->server->connection_limit);
}

static VALUE core_poller(VALUE self) {
    return rb_str_new_cstr(rd_binding_of(self)->server->loop.ops->name);
}

void rd_init_server(VALUE rondo) {
    VALUE server = rb_define_class_under(rondo, "Server", rb_cObject);
    rd_init_forks();
    cCore = rb_define_class_under(server, "Core", rb_cObject);
    rb_define_alloc_func(cCore, core_allocate);
    rb_define_method(cCore, "initialize", core_initialize, 3);
    rb_define_method(cCore, "run", core_run, 0);
    rb_define_method(cCore, "stop", core_stop, 1);
    rb_define_method(cCore, "finish_link", core_finish_link, 0);
    rb_define_method(cCore, "stats", core_stats, 0);
    rb_define_method(cCore, "in_flight", core_in_flight, 0);
    rb_define_method(cCore, "poller", core_poller, 0);
    rb_define_method(cCore, "connection_limit", core_connection_limit, 0);
    rd_init_core_listening(cCore);
    rd_init_core_channels(cCore);
    rd_init_core_siblings(cCore);
    rb_define_const(cCore, "DESCRIPTORS_KEPT", INT2FIX(RD_DESCRIPTORS_KEPT));
}

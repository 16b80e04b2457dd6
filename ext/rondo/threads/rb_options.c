/* SPDX-License-Identifier: MIT
 *
 * The arguments of Rondo::Server::Core.new; see rb_options.h.
 */
#include "threads/rb_options.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "http/target.h"
#include "server/files.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "ruby/rb_value.h"
#include "binding/rb_binding.h"
#include "binding/rb_siblings.h"

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

void rd_take_settings(rd_settings *settings, VALUE numbers) {
    rb_hash_foreach(numbers, take_setting, (VALUE)settings);
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
            rb_raise(rd_eSettingError, "%s: %s is not an address or network", what,
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
        rb_raise(rd_eSettingError, "default_host: %" PRIsVALUE " is not HOST or HOST:PORT", text);
    }
    RD_BINDING_SET(binding, env.default_host,
                   rb_str_to_interned_str(rb_str_substr(text, 0, host_len)));
    if (port == 0) return;
    VALUE digits = rb_obj_as_string(UINT2NUM(port));
    RD_BINDING_SET(binding, env.default_port, rb_str_to_interned_str(digits));
}

/* What REMOTE_ADDR is, or the key of the env under which proxies say it. */
static void take_client(rd_binding *binding, VALUE client, VALUE key) {
    if (!NIL_P(client)) RD_BINDING_SET(binding, env.client, rb_str_to_interned_str(client));
    if (!NIL_P(key)) RD_BINDING_SET(binding, env.client_field, rb_str_to_interned_str(key));
}

/* Takes over a socket to the hub of a cluster. */
static void take_link(rd_binding *binding, VALUE link) {
    if (NIL_P(link)) return;
    const int number = NUM2INT(link);
    rd_lock(binding);
    const int opened = rd_pubsub_link(&binding->server->pubsub, number);
    rd_unlock(binding);
    if (opened != 0) rb_sys_fail("link");
}

/* Serves a static folder, an absolute path or nil. `alone`: there is no application. */
static void serve_folder(rd_binding *binding, VALUE folder, bool alone) {
    if (NIL_P(folder)) return;
    if (rd_files_open(binding->server, StringValueCStr(folder), alone) == 0) return;
    rb_raise(rd_eSettingError, "public: cannot read the folder %" PRIsVALUE ": %s", folder,
             strerror(errno));
}

/* Allows X-Sendfile to name files in these folders: an Array of absolute paths, or nil. */
static void allow_file_roots(rd_binding *binding, VALUE folders) {
    if (NIL_P(folders)) return;
    Check_Type(folders, T_ARRAY);
    for (long i = 0; i < RARRAY_LEN(folders); i++) {
        VALUE folder = RARRAY_AREF(folders, i);
        if (rd_file_roots_add(&binding->files.roots, StringValueCStr(folder)) == 0) continue;
        rb_raise(rd_eSettingError, "x_sendfile_root: cannot read the folder %" PRIsVALUE ": %s",
                 folder, strerror(errno));
    }
}

void rd_take_options(rd_binding *binding, VALUE options) {
    size_t count;
    RD_BINDING_SET(binding, app.reporter, rd_option(options, "reporter"));
    RD_BINDING_SET(binding, app.upgrades, rd_option(options, "upgrades"));
    RD_BINDING_SET(binding, log.output, rd_option(options, "request_log"));
    RD_BINDING_SET(binding, env.scheme, shared_value(rd_option(options, "url_scheme")));
    binding->log.json = rd_option(options, "request_log_format") == ID2SYM(rb_intern("json"));
    binding->log.ids = RTEST(rd_option(options, "request_ids"));
    binding->rules.split_newlines = RTEST(rd_option(options, "split_newlines"));
    take_default_host(binding, rd_option(options, "default_host"));
    take_client(binding, rd_option(options, "client_address"), rd_option(options, "client_field"));
    rd_attach_siblings(binding, options);
    take_link(binding, rd_option(options, "link"));
    serve_folder(binding, rd_option(options, "public"), RTEST(rd_option(options, "public_only")));
    allow_file_roots(binding, rd_option(options, "x_sendfile_roots"));
    RD_BINDING_SET(binding, env.sendfile_type, rd_option(options, "sendfile_type"));
    RD_BINDING_SET(binding, cluster.tickets, rd_option(options, "tickets"));
    RD_BINDING_SET(binding, app.thread_start, rd_option(options, "thread_start"));
    RD_BINDING_SET(binding, app.thread_exit, rd_option(options, "thread_exit"));
    binding->proxies.trusted =
        networks_of(rd_option(options, "trusted_proxies"), "trusted_proxies", &count);
    binding->proxies.count = count;
    binding->server->http.trusted = binding->proxies.trusted;
    binding->server->http.trusted_count = count;
    rd_network *proxies =
        networks_of(rd_option(options, "proxy_protocol_from"), "proxy_protocol_from", &count);
    rd_server_set_proxies(binding->server, proxies, count);
    binding->server->http.proxy_optional = RTEST(rd_option(options, "proxy_protocol_optional"));
}

/* SPDX-License-Identifier: MIT
 *
 * The env without the request's own values: the base templates, client and server addresses. What
 * others say about the client is used only from trusted proxies.
 */
#include "rack/rb_env_place.h"

#include "base/decimal.h"
#include "request/forwarded.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_cache.h"
#include "rack/rb_env_cache.h"

/* ---- templates ---- */

/* The scheme, unless a proxy says otherwise. */
static VALUE scheme_of(const rd_binding *binding, bool secure) {
    if (!NIL_P(binding->env.scheme)) return binding->env.scheme;
    return secure ? rd_key.https : rd_key.http;
}

static VALUE new_base(rd_binding *binding, bool secure) {
    const VALUE scheme = scheme_of(binding, secure);
    VALUE env = rb_hash_new();
    const VALUE keys[RD_ENV_COUNT] = {RD_ENV_KEYS};
    const VALUE values[RD_ENV_COUNT] = {
        [RD_ENV_METHOD] = rd_method_names[RD_METHOD_GET],
        [RD_ENV_SCRIPT_NAME] = rd_key.empty,
        [RD_ENV_PATH] = rd_key.slash,
        [RD_ENV_QUERY] = rd_key.empty,
        [RD_ENV_SERVER_NAME] = rd_key.localhost,
        [RD_ENV_SERVER_PORT] = rd_key.port_80,
        [RD_ENV_PROTOCOL] = rd_version_names[RD_HTTP_1_1],
        [RD_ENV_REMOTE_ADDR] = rd_key.empty,
        [RD_ENV_SCHEME] = scheme,
        [RD_ENV_ERRORS] = rb_const_get(rb_path2class("Rondo"), rb_intern("ERRORS")),
        [RD_ENV_INPUT] = binding->env.empty_input,
        [RD_ENV_IS_HIJACK] = Qtrue,
        [RD_ENV_HIJACK] = Qnil,
        [RD_ENV_FINISHED] = Qnil,
        [RD_ENV_CAN_UPGRADE] = Qnil,
    };
    for (unsigned i = 0; i < RD_ENV_COUNT; i++) rb_hash_aset(env, keys[i], values[i]);
    rb_hash_update_by(env, rb_const_get(rb_path2class("Rondo"), rb_intern("ENV_EXTRAS")), NULL);
    if (!NIL_P(binding->env.sendfile_type)) {
        rb_hash_aset(env, rd_key.sendfile_type, binding->env.sendfile_type);
    }
    /* If only a setting says https, a proxy has the certificate, and HTTPS is not set. */
    if (secure && scheme == rd_key.https) rb_hash_aset(env, rd_key.https_key, rd_key.on);
    return env;
}

void rd_env_place_init(rd_binding *binding) {
    RD_BINDING_SET(binding, env.template, new_base(binding, false));
    RD_BINDING_SET(binding, env.secure_template, new_base(binding, true));
    binding->env.base_sizes[false] = (unsigned)RHASH_SIZE(binding->env.template);
    binding->env.base_sizes[true] = (unsigned)RHASH_SIZE(binding->env.secure_template);
}

static VALUE base_of(const rd_call *call) {
    return call->conn.secure ? call->binding->env.secure_template : call->binding->env.template;
}

/* ---- client and server addresses ---- */

static void set_address(rd_binding *binding, VALUE env, const rd_address *address) {
    char text[RD_ADDRESS_TEXT_MAX];
    size_t len = rd_address_text(address, text);
    rb_hash_aset(env, rd_key.remote_addr, rd_cached_value(binding, rd_slice_of(text, len)));
}

static VALUE port_string(rd_binding *binding, unsigned port) {
    char room[RD_DECIMAL_MAX];
    if (port == 80) return rd_key.port_80;
    if (port == 443) return rd_key.port_443;
    return rd_cached_value(binding, rd_decimal(port, room));
}

static void set_host(rd_binding *binding, VALUE env, const rd_request *request, bool https) {
    const rd_head *head = &request->head;
    VALUE name, port;
    if (head->host.len > 0) {
        name = rd_cached_value(binding, rd_request_slice(request, head->host));
        port = head->port != 0 ? port_string(binding, head->port)
                               : (https ? rd_key.port_443 : rd_key.port_80);
    } else {
        name = NIL_P(binding->env.default_host) ? rd_key.localhost : binding->env.default_host;
        port = NIL_P(binding->env.default_port) ? rd_key.port_80 : binding->env.default_port;
    }
    rb_hash_aset(env, rd_key.server_name, name);
    rb_hash_aset(env, rd_key.server_port, port);
}

VALUE rd_env_new_template(rd_call *call) {
    rd_binding *binding = call->binding;
    const unsigned version = call->request->head.version;
    VALUE env = rb_hash_dup(base_of(call));
    set_host(binding, env, call->request, scheme_of(binding, call->conn.secure) == rd_key.https);
    set_address(binding, env, &call->conn.peer);
    if (!NIL_P(binding->env.client)) rb_hash_aset(env, rd_key.remote_addr, binding->env.client);
    if (version != RD_HTTP_1_1) {
        rb_hash_aset(env, rd_key.server_protocol, rd_version_names[version]);
    }
    /* A stream of HTTP/2 cannot be taken out of the server, unless it is a WebSocket. */
    if (version == RD_HTTP_2) rb_hash_aset(env, rd_key.rack_is_hijack, Qfalse);
    return env;
}

/* Sets the client that a field of its own names, the first one if there are several. What is no
 * address does not count. */
static void set_named_client(rd_call *call) {
    rd_address address;
    VALUE value = rb_hash_lookup(call->env, call->binding->env.client_field);
    if (!RB_TYPE_P(value, T_STRING)) return;
    const char *text = RSTRING_PTR(value);
    size_t len = 0;
    while (len < (size_t)RSTRING_LEN(value) && memchr(", \t", text[len], 3) == NULL) len++;
    if (rd_address_parse(&address, text, len)) set_address(call->binding, call->env, &address);
}

static bool is_client_set(const rd_binding *binding) {
    return !NIL_P(binding->env.client) || !NIL_P(binding->env.client_field);
}

/* Sets what a trusted proxy says about the client; others are ignored. */
void rd_env_set_forwarded(rd_call *call) {
    rd_binding *binding = call->binding;
    rd_forwarded said;
    unsigned fields = (unsigned)binding->server->settings.trusted_proxy_fields;
    rd_forwarded_read(&said, call->request, fields, binding->proxies.trusted,
                      binding->proxies.count);
    if (said.has_client && !is_client_set(binding)) set_address(binding, call->env, &said.client);
    if (!NIL_P(binding->env.client_field)) set_named_client(call);
    if (said.scheme != RD_FORWARDED_NO_SCHEME) {
        bool https = said.scheme == RD_FORWARDED_HTTPS;
        rb_hash_aset(call->env, rd_key.rack_url_scheme, https ? rd_key.https : rd_key.http);
        if (!https && call->conn.secure) rb_hash_delete(call->env, rd_key.https_key);
        if (call->request->head.port == 0) set_host(binding, call->env, call->request, https);
    }
    if (said.port != 0) {
        rb_hash_aset(call->env, rd_key.server_port, port_string(binding, said.port));
    }
}

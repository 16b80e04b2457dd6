/* SPDX-License-Identifier: MIT
 *
 * From a request to its env: a dup of the template, the values that differ, the header fields
 * (Rack SPEC, RFC 3875 section 4.1). A new Hash every time, because applications keep them. Values
 * of the client are ASCII-8BIT; HTTP_* ones are mutable copies unless frozen_headers is set.
 */
#include "http/forwarded.h"
#include "ruby/rb_call.h"
#include "ruby/rb_names.h"

/* Longer values share the bytes of a cached String (copy-on-write); shorter ones are copied into
 * the object itself, which is as fast. */
#define EMBEDDED_MAX 23

void rd_env_init(rd_binding *binding) {
    VALUE env = rb_hash_new();
    VALUE errors = rb_const_get(rb_path2class("Rondo"), rb_intern("ERRORS"));
    rb_hash_aset(env, rd_key.request_method, rd_method_names[RD_METHOD_GET]);
    rb_hash_aset(env, rd_key.script_name, rd_key.empty);
    rb_hash_aset(env, rd_key.path_info, rd_key.slash);
    rb_hash_aset(env, rd_key.query_string, rd_key.empty);
    rb_hash_aset(env, rd_key.server_name, rd_key.localhost);
    rb_hash_aset(env, rd_key.server_port, rd_key.port_80);
    rb_hash_aset(env, rd_key.server_protocol, rd_key.http_1_1);
    rb_hash_aset(env, rd_key.remote_addr, rd_key.empty);
    rb_hash_aset(env, rd_key.rack_url_scheme,
                 NIL_P(binding->scheme) ? rd_key.http : binding->scheme);
    rb_hash_aset(env, rd_key.rack_errors, errors);
    rb_hash_aset(env, rd_key.rack_input, binding->empty_input);
    rb_hash_aset(env, rd_key.rack_is_hijack, Qtrue);
    rb_hash_aset(env, rd_key.rack_hijack, Qnil);
    rb_hash_aset(env, rd_key.rack_response_finished, Qnil);
    rb_hash_update_by(env, rb_const_get(rb_path2class("Rondo"), rb_intern("ENV_EXTRAS")), NULL);
    RD_BINDING_SET(binding, env_template, env);
}

static VALUE new_string(rd_slice bytes) {
    return rb_str_new(bytes.ptr, (long)bytes.len);
}

/* ---- header fields ---- */

static bool is_secret(unsigned id) {
    return id == RD_HEADER_AUTHORIZATION || id == RD_HEADER_COOKIE ||
           id == RD_HEADER_PROXY_AUTHORIZATION || id == RD_HEADER_X_API_KEY ||
           id == RD_HEADER_X_CSRF_TOKEN;
}

static VALUE header_value(rd_binding *binding, const rd_header *header, rd_slice bytes) {
    if (is_secret(header->id)) return new_string(bytes);
    if (binding->frozen_headers) return rd_cached_value(binding, bytes);
    if (bytes.len <= EMBEDDED_MAX) return new_string(bytes);
    return rb_str_dup(rd_cached_value(binding, bytes));
}

/* A field that came before: its values are one list, RFC 9110 section 5.3. */
static VALUE joined(const rd_header *header, VALUE before, VALUE value) {
    switch (rd_header_id_repeat(header->id)) {
    case RD_REPEAT_REFUSE:
        return before;
    case RD_REPEAT_SEMICOLON:
        return rb_str_append(rb_str_cat_cstr(rb_str_dup(before), "; "), value);
    default:
        return rb_str_append(rb_str_cat_cstr(rb_str_dup(before), ", "), value);
    }
}

static void add_header(rd_call *call, const rd_header *header) {
    const rd_request *request = call->request;
    VALUE key = header->id != RD_HEADER_OTHER
                    ? rd_header_keys[header->id]
                    : rd_cached_name(call->binding, rd_request_header_name(request, header));
    VALUE value = header_value(call->binding, header, rd_request_header_value(request, header));
    if (header->id == RD_HEADER_OTHER || request->head.repeated) {
        VALUE before = rb_hash_lookup(call->env, key);
        if (!NIL_P(before)) value = joined(header, before, value);
    }
    rb_hash_aset(call->env, key, value);
}

static void add_headers(rd_call *call) {
    const rd_head *head = &call->request->head;
    for (unsigned i = 0; i < head->header_count; i++) {
        const rd_header *header = &head->headers[i];
        if (header->id == RD_HEADER_CONTENT_LENGTH) continue;
        /* The application sees the body without its coding, so the coding is not its business. */
        if (header->id == RD_HEADER_TRANSFER_ENCODING && call->request->body_complete) continue;
        add_header(call, header);
    }
    /* An absolute-form's authority replaces Host, RFC 9112 section 3.2.2. */
    if (head->form == RD_TARGET_ABSOLUTE) {
        rb_hash_aset(call->env, rd_key.http_host,
                     new_string(rd_request_slice(call->request, head->authority)));
    }
}

/* ---- who and where ---- */

static VALUE decimal(uint64_t number) {
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
    return rb_usascii_str_new(digits, len);
}

static void set_address(rd_binding *binding, VALUE env, const rd_address *address) {
    char text[RD_ADDRESS_TEXT_MAX];
    size_t len = rd_address_text(address, text);
    rb_hash_aset(env, rd_key.remote_addr, rd_cached_value(binding, rd_slice_of(text, len)));
}

static VALUE port_string(rd_binding *binding, unsigned port) {
    char digits[8];
    if (port == 80) return rd_key.port_80;
    if (port == 443) return rd_key.port_443;
    int len = snprintf(digits, sizeof(digits), "%u", port);
    return rd_cached_value(binding, rd_slice_of(digits, (size_t)len));
}

static void set_host(rd_binding *binding, VALUE env, const rd_request *request, bool https) {
    const rd_head *head = &request->head;
    VALUE name, port;
    if (head->host.len > 0) {
        name = rd_cached_value(binding, rd_request_slice(request, head->host));
        port = head->port != 0 ? port_string(binding, head->port)
                               : (https ? rd_key.port_443 : rd_key.port_80);
    } else {
        name = NIL_P(binding->default_host) ? rd_key.localhost : binding->default_host;
        port = NIL_P(binding->default_port) ? rd_key.port_80 : binding->default_port;
    }
    rb_hash_aset(env, rd_key.server_name, name);
    rb_hash_aset(env, rd_key.server_port, port);
}

/* The template with SERVER_NAME, SERVER_PORT and REMOTE_ADDR of this authority and peer: between
 * the requests of a connection, and of all connections of a proxy, these do not change. Three
 * stores less a request: 1,900 instructions of 15,900. */
static VALUE template_for(rd_call *call) {
    rd_binding *binding = call->binding;
    const rd_request *request = call->request;
    rd_slice authority = rd_request_slice(request, request->head.authority);
    rd_template_key key;
    if (authority.len > sizeof(key.authority)) return Qnil;
    memset(&key, 0, sizeof(key));
    key.hash = rd_cache_hash(authority) ^ rd_address_hash(&call->peer);
    key.peer = call->peer;
    key.peer.port = 0;
    memcpy(key.authority, authority.ptr, authority.len);
    key.authority_len = (uint8_t)authority.len;
    uint32_t at = key.hash % RD_TEMPLATE_CACHE_SIZE;
    rd_template_key *entry = &binding->template_keys[at];
    if (entry->hash == key.hash && memcmp(entry, &key, sizeof(key)) == 0) {
        return RARRAY_AREF(binding->templates, at);
    }
    VALUE env = rb_hash_dup(binding->env_template);
    set_host(binding, env, request, binding->scheme == rd_key.https);
    set_address(binding, env, &call->peer);
    rb_ary_store(binding->templates, at, env);
    *entry = key;
    return env;
}

static VALUE env_for(rd_call *call) {
    VALUE template = template_for(call);
    if (!NIL_P(template)) return rb_hash_dup(template);
    VALUE env = rb_hash_dup(call->binding->env_template);
    set_host(call->binding, env, call->request, call->binding->scheme == rd_key.https);
    set_address(call->binding, env, &call->peer);
    return env;
}

static bool is_trusted(const rd_binding *binding, const rd_address *peer) {
    for (size_t i = 0; i < binding->trusted_count; i++) {
        if (rd_network_contains(&binding->trusted[i], peer)) return true;
    }
    return false;
}

/* What a listed proxy says of the client; nobody else is believed. */
static void set_forwarded(rd_call *call) {
    rd_binding *binding = call->binding;
    rd_forwarded said;
    rd_forwarded_read(&said, call->request, binding->trusted, binding->trusted_count);
    if (said.has_client) set_address(binding, call->env, &said.client);
    if (said.scheme != RD_FORWARDED_NO_SCHEME) {
        bool https = said.scheme == RD_FORWARDED_HTTPS;
        rb_hash_aset(call->env, rd_key.rack_url_scheme, https ? rd_key.https : rd_key.http);
        if (call->request->head.port == 0) set_host(binding, call->env, call->request, https);
    }
    if (said.port != 0) {
        rb_hash_aset(call->env, rd_key.server_port, port_string(binding, said.port));
    }
}

/* ---- the request line and the body ---- */

static void set_target(rd_call *call) {
    const rd_head *head = &call->request->head;
    VALUE path = head->form == RD_TARGET_AUTHORITY ? rd_key.empty
                 : head->path.len == 0             ? rb_str_dup(rd_key.slash)
                                       : new_string(rd_request_slice(call->request, head->path));
    if (head->form == RD_TARGET_AUTHORITY) {
        path = new_string(rd_request_slice(call->request, head->authority));
    }
    rb_hash_aset(call->env, rd_key.path_info, path);
    if (head->query.len > 0) {
        rb_hash_aset(call->env, rd_key.query_string,
                     new_string(rd_request_slice(call->request, head->query)));
    }
}

static void set_body(rd_call *call) {
    const rd_request *request = call->request;
    if (request->head.framing == RD_FRAMING_NONE) return;
    call->input = rd_input_new(call->binding, call->request);
    rb_hash_aset(call->env, rd_key.rack_input, call->input);
    if (request->body_complete) {
        rb_hash_aset(call->env, rd_key.content_length, decimal(request->body.size));
    } else if (request->head.framing == RD_FRAMING_LENGTH) {
        rb_hash_aset(call->env, rd_key.content_length, decimal(request->head.content_length));
    }
}

VALUE rd_env_build(rd_call *call) {
    rd_binding *binding = call->binding;
    const rd_head *head = &call->request->head;
    VALUE env = call->env = env_for(call);
    if (head->method_id == RD_METHOD_OTHER) {
        rb_hash_aset(env, rd_key.request_method,
                     new_string(rd_request_slice(call->request, head->method)));
    } else if (head->method_id != RD_METHOD_GET) {
        rb_hash_aset(env, rd_key.request_method, rd_method_names[head->method_id]);
    }
    set_target(call);
    if (head->minor == 0) rb_hash_aset(env, rd_key.server_protocol, rd_key.http_1_0);
    rb_hash_aset(env, rd_key.rack_hijack, call->connection);
    rb_hash_aset(env, rd_key.rack_response_finished, call->finished);
    set_body(call);
    add_headers(call);
    if (binding->trusted_count > 0 && is_trusted(binding, &call->peer)) set_forwarded(call);
    if (binding->early_hints && head->minor == 1) {
        rb_hash_aset(env, rd_key.rack_early_hints, rd_early_hints_new(call->connection));
    }
    return env;
}

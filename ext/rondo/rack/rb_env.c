/* SPDX-License-Identifier: MIT
 *
 * Makes the env of a request: a dup of the template, the values that differ, the header fields
 * (Rack SPEC, RFC 3875 section 4.1). Each request gets a new Hash, because applications keep it.
 * Values from the client are ASCII-8BIT. HTTP_* values are mutable copies unless frozen_headers is
 * set.
 */
#include "rack/rb_env.h"

#include "base/decimal.h"
#include "system/clock.h"
#include "request/request_start.h"
#include "ruby/rb_names.h"
#include "binding/rb_cache.h"
#include "rack/rb_call.h"
#include "rack/rb_connection.h"
#include "rack/rb_early_hints.h"
#include "rack/rb_env_cache.h"
#include "rack/rb_env_place.h"
#include "rack/rb_identity.h"
#include "rack/rb_input.h"

#define PLAUSIBLE_US 86400000000ll /* a day: beyond that the proxy's clock is wrong */

void rd_env_init(rd_binding *binding) {
    rd_env_place_init(binding);
    rd_env_cache_init(binding);
}

static VALUE new_string(rd_slice bytes) {
    return rb_str_new(bytes.ptr, (long)bytes.len);
}

/* ---- header fields ---- */

static VALUE header_value(const rd_call *call, const rd_header *header, rd_slice bytes) {
    rd_binding *binding = call->binding;
    bool may_be_secret = header->id == RD_HEADER_OTHER && call->request->head.doubtful;
    if (may_be_secret || rd_header_id_is_secret(header->id)) return new_string(bytes);
    if (binding->rules.frozen_headers) return rd_cached_value(binding, bytes);
    if (bytes.len <= RD_EMBEDDED_MAX) return new_string(bytes);
    return rb_str_dup(rd_cached_value(binding, bytes));
}

/* Joins the values of a repeated field into one list, RFC 9110 section 5.3. A String that is not
 * frozen is the request's own, and grows: a client may repeat a field many times. */
static VALUE joined(const rd_header *header, VALUE before, VALUE value) {
    unsigned repeat = rd_header_id_repeat(header->id);
    if (repeat == RD_REPEAT_REFUSE) return before;
    VALUE list = RB_OBJ_FROZEN(before) ? rb_str_dup(before) : before;
    rb_str_cat_cstr(list, repeat == RD_REPEAT_SEMICOLON ? "; " : ", ");
    return rb_str_append(list, value);
}

/* Fields with which a proxy controls Rack::Sendfile. If this server obeys X-Sendfile, there is no
 * such proxy, so a client must not send them. */
static bool is_about_files(const rd_binding *binding, VALUE key) {
    if (binding->files.roots.count == 0) return false;
    return key == rd_key.http_x_sendfile_type || key == rd_key.http_x_accel_mapping ||
           key == rd_key.http_x_sendfile || key == rd_key.http_x_accel_redirect;
}

static VALUE key_of(const rd_call *call, const rd_header *header) {
    if (header->id != RD_HEADER_OTHER) return rd_header_keys[header->id];
    return rd_cached_name(call->binding, rd_request_header_name(call->request, header));
}

/* Returns whether its value is part of a list now. */
static bool add_header(rd_call *call, const rd_header *header) {
    const rd_request *request = call->request;
    VALUE key = key_of(call, header), before = Qnil;
    if (is_about_files(call->binding, key)) return false;
    VALUE value = header_value(call, header, rd_request_header_value(request, header));
    if (header->id == RD_HEADER_OTHER || request->head.repeated) {
        before = rb_hash_lookup(call->env, key);
        if (!NIL_P(before)) value = joined(header, before, value);
    }
    rb_hash_aset(call->env, key, value);
    return !NIL_P(before);
}

/* Whatever else there is of fields is frozen already. */
static void freeze_lists(rd_call *call) {
    const rd_head *head = &call->request->head;
    for (unsigned i = 0; i < head->header_count; i++) {
        VALUE value = rb_hash_lookup(call->env, key_of(call, &head->headers[i]));
        if (!NIL_P(value)) rb_obj_freeze(value);
    }
}

static void add_headers(rd_call *call) {
    const rd_head *head = &call->request->head;
    bool has_lists = false;
    for (unsigned i = 0; i < head->header_count; i++) {
        const rd_header *header = &head->headers[i];
        if (header->id == RD_HEADER_CONTENT_LENGTH) continue;
        /* The application reads the decoded body, so it does not get the coding. */
        if (header->id == RD_HEADER_TRANSFER_ENCODING && call->whole) continue;
        has_lists |= add_header(call, header);
    }
    if (has_lists && call->binding->rules.frozen_headers) freeze_lists(call);
    /* An absolute-form's authority replaces Host, RFC 9112 section 3.2.2. */
    if (head->form == RD_TARGET_ABSOLUTE) {
        rb_hash_aset(call->env, rd_key.http_host,
                     new_string(rd_request_slice(call->request, head->authority)));
    }
}

/* ---- client and server addresses ---- */

static VALUE decimal(uint64_t number) {
    char room[RD_DECIMAL_MAX];
    const rd_slice digits = rd_decimal(number, room);
    return rb_usascii_str_new(digits.ptr, (long)digits.len);
}

/* ---- the request line and the body ---- */

static VALUE path_of(const rd_request *request) {
    const rd_head *head = &request->head;
    if (head->form == RD_TARGET_AUTHORITY) {
        return new_string(rd_request_slice(request, head->authority));
    }
    if (head->path.len == 0) return rb_str_dup(rd_key.slash);
    return new_string(rd_request_slice(request, head->path));
}

static VALUE method_of(const rd_request *request) {
    uint8_t id = request->head.method_id;
    if (id != RD_METHOD_OTHER) return rd_method_names[id];
    return new_string(rd_request_slice(request, request->head.method));
}

/* Sets the values that differ from the template's. */
static void set_unusual(const rd_call *call) {
    const rd_request *request = call->request;
    if (request->head.method_id != RD_METHOD_GET) {
        rb_hash_aset(call->env, rd_key.request_method, method_of(request));
    }
    if (request->head.query.len > 0) {
        rb_hash_aset(call->env, rd_key.query_string,
                     new_string(rd_request_slice(request, request->head.query)));
    }
    if (call->upgrade) {
        rb_hash_aset(call->env, rd_key.rack_can_upgrade, rd_upgrade_symbol(call->upgrade));
        if (rd_connection_is_takeable(call)) {
            rb_hash_aset(call->env, rd_key.rack_is_hijack, Qtrue);
        }
    }
}

/* Sets everything that is the request's own, in one pass over the new env. */
static void set_own(rd_call *call, bool copy_headers) {
    const rd_request *request = call->request;
    VALUE own[RD_ENV_OWN_COUNT];
    for (unsigned i = 0; i < RD_ENV_OWN_COUNT; i++) own[i] = Qundef;
    own[RD_ENV_PATH] = path_of(request);
    own[RD_ENV_HIJACK] = call->connection;
    own[RD_ENV_FINISHED] = call->finished;
    rd_env_fill(call, own, copy_headers);
    set_unusual(call);
    for (unsigned i = 0; i < RD_ENV_OWN_COUNT; i++) RB_GC_GUARD(own[i]);
}

static void set_body(rd_call *call) {
    const rd_request *request = call->request;
    if (request->head.framing == RD_FRAMING_NONE) return;
    call->input = rd_input_new(call);
    rb_hash_aset(call->env, rd_key.rack_input, call->input);
    if (call->whole) {
        rb_hash_aset(call->env, rd_key.content_length, decimal(request->body.size));
    } else if (request->head.framing == RD_FRAMING_LENGTH) {
        rb_hash_aset(call->env, rd_key.content_length, decimal(request->head.content_length));
    }
}

/* ---- header fields once more: a section that came before ---- */

typedef struct rd_sorting {
    VALUE template;
    VALUE secret; /* the key that a template must not have; Qundef: none */
    unsigned base, at;
    bool shared; /* true: takes the keys that stand last; false: all others */
} rd_sorting;

static int take_pair(VALUE key, VALUE value, VALUE argument) {
    rd_sorting *sorting = (rd_sorting *)argument;
    unsigned at = sorting->at++;
    if (sorting->shared != (at >= RD_ENV_OWN_COUNT && at < sorting->base)) return ST_CONTINUE;
    if (key == sorting->secret) return ST_CONTINUE;
    if (RB_TYPE_P(value, T_STRING) && !RB_OBJ_FROZEN(value)) {
        VALUE frozen = rb_obj_freeze(rb_str_new(RSTRING_PTR(value), RSTRING_LEN(value)));
        RB_GC_GUARD(value); /* only the env refers to it, and compaction may move it */
        value = frozen;
    }
    rb_hash_aset(sorting->template, key, value);
    return ST_CONTINUE;
}

/* Makes a template from an env that lacks only the request's own values. Its order: own values,
 * header fields, keys that all requests share. */
static VALUE new_template(const rd_call *call) {
    const rd_header *secret = rd_head_secret(&call->request->head);
    rd_sorting sorting = {.template = rb_hash_new(),
                          .secret = secret == NULL ? Qundef : rd_header_keys[secret->id],
                          .base = call->binding->env.base_sizes[call->conn.secure]};
    rb_hash_foreach(call->env, take_pair, (VALUE)&sorting);
    sorting.at = 0;
    sorting.shared = true;
    rb_hash_foreach(call->env, take_pair, (VALUE)&sorting);
    return sorting.template;
}

static void build_from_section(rd_call *call) {
    VALUE template = rd_env_section_find(call);
    if (!NIL_P(template)) {
        const rd_header *secret = rd_head_secret(&call->request->head);
        call->env = rb_hash_dup(template);
        set_own(call, true);
        if (secret != NULL) add_header(call, secret);
        return;
    }
    call->env = rb_hash_dup(rd_env_template(call));
    call->upgrade = rd_upgrade_asked(call->request);
    add_headers(call);
    /* An upgraded connection sends no second request, and a template must be right for any method,
     * so a request that names an upgrade makes none. */
    if (!rd_env_section_is_new(call) && !rd_upgrade_is_named(call->request)) {
        rd_env_section_keep(call, new_template(call));
    }
    set_own(call, false);
}

static void build_afresh(rd_call *call) {
    call->env = rb_hash_dup(rd_env_template(call));
    call->upgrade = rd_upgrade_asked(call->request);
    set_own(call, false);
    set_body(call);
    add_headers(call);
}

/* The time from readable until now. If a trusted proxy says when the request began, from then. */
static uint64_t queue_time_us(const rd_call *call, bool is_trusted) {
    const rd_request *request = call->request;
    uint64_t waited = (request->times.taken_ns - request->times.ready_ns) / 1000;
    const rd_header *field = rd_head_find(&request->head, RD_HEADER_X_REQUEST_START);
    if (!is_trusted || field == NULL) return waited;
    int64_t began = rd_request_start_us(rd_request_header_value(request, field));
    int64_t now = rd_clock_wall_us();
    if (began < 0 || began > now || now - began > PLAUSIBLE_US) return waited;
    return (uint64_t)(now - began) > waited ? (uint64_t)(now - began) : waited;
}

VALUE rd_env_build(rd_call *call) {
    rd_binding *binding = call->binding;
    if (call->request->head.section != 0) {
        build_from_section(call);
    } else {
        build_afresh(call);
    }
    bool is_trusted =
        rd_networks_contain(binding->proxies.trusted, binding->proxies.count, &call->conn.peer);
    if (is_trusted) rd_env_set_forwarded(call);
    if (binding->server->settings.queue_time) {
        call->queue_us = queue_time_us(call, is_trusted);
        rb_hash_aset(call->env, rd_key.rondo_queue_time, ULL2NUM(call->queue_us));
    }
    if (binding->rules.early_hints && rd_http_versions[call->request->head.version].has_interim) {
        rb_hash_aset(call->env, rd_key.rack_early_hints, rd_early_hints_new(call->connection));
    }
    if (call->identity.number != 0) rd_identity_add(call);
    call->env_size = RHASH_SIZE(call->env);
    return call->env;
}

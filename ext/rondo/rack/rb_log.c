/* SPDX-License-Identifier: MIT
 *
 * Request lines, collected during a turn and written with one call, in the common log format with
 * the duration at the end, or as JSON. Everything from a client is escaped, so that no request can
 * forge a line or control a terminal.
 */
#include "rack/rb_log.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "system/clock.h"
#include "http/date.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "ruby/rb_value.h"

static void put(rd_binding *binding, const char *bytes, size_t len) {
    if (binding->log.len + len > binding->log.capacity) {
        size_t capacity = binding->log.capacity ? binding->log.capacity * 2 : 4096;
        while (capacity < binding->log.len + len) capacity *= 2;
        binding->log.bytes = rd_realloc(binding->log.bytes, capacity);
        binding->log.capacity = capacity;
    }
    memcpy(binding->log.bytes + binding->log.len, bytes, len);
    binding->log.len += len;
}

#define PUT(binding, literal) put((binding), (literal), sizeof(literal) - 1)

/* CTL, DEL, quotes, backslashes and bytes above 0x7f as \xHH, in JSON as \u00HH. */
static void put_escaped(rd_binding *binding, rd_slice text) {
    const char *format = binding->log.json ? "\\u%04x" : "\\x%02X";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            put(binding, text.ptr + i, 1);
        } else {
            char escaped[8];
            put(binding, escaped, (size_t)snprintf(escaped, sizeof(escaped), format, c));
        }
    }
}

static void put_number(rd_binding *binding, const char *format, uint64_t number) {
    char text[32];
    put(binding, text, (size_t)snprintf(text, sizeof(text), format, (unsigned long long)number));
}

static void put_version(rd_binding *binding, const rd_request *request) {
    const rd_slice text = rd_http_versions[request->head.version].text;
    put(binding, text.ptr, text.len);
}

/* Formatted once a second. */
static const char *log_time(rd_binding *binding) {
    int64_t now = rd_clock_wall_seconds();
    if (binding->log.second != now) {
        binding->log.second = now;
        if (binding->log.json) {
            rd_date_format_iso(now, binding->log.time);
        } else {
            rd_date_format_common(now, binding->log.time);
        }
    }
    return binding->log.time;
}

static rd_slice client_of(const rd_call *call) {
    VALUE address = NIL_P(call->env) ? Qnil : rb_hash_lookup(call->env, rd_key.remote_addr);
    if (!RB_TYPE_P(address, T_STRING)) return RD_SLICE("-");
    return rd_slice_of_string(address);
}

/* Of env["rondo.ids"]. The application may have put anything there. */
static int put_id(VALUE name, VALUE id, VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    if (!RB_TYPE_P(name, T_STRING) || !RB_TYPE_P(id, T_STRING)) return ST_CONTINUE;
    put(binding, binding->log.json ? ",\"" : " ", binding->log.json ? 2 : 1);
    put_escaped(binding, rd_slice_of_string(name));
    put(binding, binding->log.json ? "\":\"" : "=", binding->log.json ? 3 : 1);
    put_escaped(binding, rd_slice_of_string(id));
    if (binding->log.json) PUT(binding, "\"");
    return ST_CONTINUE;
}

static void put_ids(const rd_call *call) {
    if (!call->binding->log.ids || NIL_P(call->env)) return;
    VALUE ids = rb_hash_lookup(call->env, rd_key.rondo_ids);
    if (RB_TYPE_P(ids, T_HASH)) rb_hash_foreach(ids, put_id, (VALUE)call->binding);
}

static void put_common(const rd_call *call, rd_slice client, uint64_t took_us) {
    rd_binding *binding = call->binding;
    const rd_request *request = call->request;
    put_escaped(binding, client);
    PUT(binding, " - - [");
    put(binding, log_time(binding), strlen(log_time(binding)));
    PUT(binding, "] \"");
    put_escaped(binding, rd_request_slice(request, request->head.method));
    PUT(binding, " ");
    put_escaped(binding, rd_request_slice(request, request->head.target));
    PUT(binding, " ");
    put_version(binding, request);
    PUT(binding, "\" ");
    put_number(binding, "%llu ", (uint64_t)request->status);
    put_number(binding, "%llu ", request->bytes_out);
    put_number(binding, "%llu.", took_us / 1000000);
    put_number(binding, "%06llu", took_us % 1000000);
    if (binding->server->settings.queue_time) {
        put_number(binding, " %llu.", call->queue_us / 1000000);
        put_number(binding, "%06llu", call->queue_us % 1000000);
    }
    put_ids(call);
    PUT(binding, "\n");
}

static void put_json(const rd_call *call, rd_slice client, uint64_t took_us) {
    rd_binding *binding = call->binding;
    const rd_request *request = call->request;
    PUT(binding, "{\"time\":\"");
    put(binding, log_time(binding), strlen(log_time(binding)));
    PUT(binding, "\",\"client\":\"");
    put_escaped(binding, client);
    PUT(binding, "\",\"method\":\"");
    put_escaped(binding, rd_request_slice(request, request->head.method));
    PUT(binding, "\",\"target\":\"");
    put_escaped(binding, rd_request_slice(request, request->head.target));
    PUT(binding, "\",\"protocol\":\"");
    put_version(binding, request);
    put_number(binding, "\",\"status\":%llu", (uint64_t)request->status);
    put_number(binding, ",\"bytes\":%llu", request->bytes_out);
    put_number(binding, ",\"duration_us\":%llu", took_us);
    if (binding->server->settings.queue_time) {
        put_number(binding, ",\"queue_us\":%llu", call->queue_us);
    }
    put_ids(call);
    PUT(binding, "}\n");
}

void rd_log_request(rd_call *call) {
    uint64_t took_us = (rd_clock_ns() - call->request->times.taken_ns) / 1000;
    rd_slice client = client_of(call);
    if (call->binding->log.json) {
        put_json(call, client, took_us);
    } else {
        put_common(call, client, took_us);
    }
}

static VALUE write_lines(VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    VALUE lines = rb_str_new(binding->log.bytes, (long)binding->log.len);
    binding->log.len = 0; /* before the write, during which other threads may add lines */
    return rb_funcall(binding->log.output, rd_id.write, 1, lines);
}

void rd_log_flush(rd_binding *binding) {
    int state = 0;
    rb_protect(write_lines, (VALUE)binding, &state);
    if (state == 0) return;
    binding->log.lost++;
    if (rd_ends_thread(rb_errinfo())) rb_jump_tag(state);
    /* If the log cannot be written, the server goes on, and counts the lines as lost. */
    rb_set_errinfo(Qnil);
}

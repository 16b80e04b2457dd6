/* SPDX-License-Identifier: MIT
 *
 * The floor on MRI: the cheapest loop that could be called a Ruby server. One thread that keeps the
 * GVL, epoll, one send for each readiness. It dups an env, makes strings of the header fields,
 * calls the application, and sends status, fields and body. It knows no rule, limit, deadline,
 * thread or log, and reads no body of a request: it is there to be compared with. An extension of
 * Ruby, which mri_floor.rb loads: MRIFloor.serve(port, application, template of the env). */
#include "floor_base.h"

#include <errno.h>
#include <ruby.h>
#include <ruby/encoding.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_BYTES = 16384, OUT_BYTES = 1 << 20, NAME_MAX_BYTES = 64, KEYS = 1024 };

/* Bytes of a request that is not whole yet. */
typedef struct rd_held {
    size_t len;
    char bytes[IN_BYTES];
} rd_held;

/* A field's name as it was sent, and the key of the env. */
typedef struct rd_known {
    size_t len;
    char name[NAME_MAX_BYTES];
    VALUE key;
} rd_known;

static rd_held *held[RD_FLOOR_MAX_FD];
static rd_known known[KEYS];
static char out[OUT_BYTES];
static size_t out_len;
static VALUE template, get, request_method, path_info, query_string, http_connection;
static ID id_call;

static void put(const char *bytes, size_t len) {
    if (out_len + len > sizeof out) rb_raise(rb_eRuntimeError, "the answers do not fit");
    memcpy(out + out_len, bytes, len);
    out_len += len;
}

static VALUE key_make(const char *name, size_t len) {
    char key[NAME_MAX_BYTES + 5] = "HTTP_";
    for (size_t i = 0; i < len; i++) {
        const char c = name[i];
        key[5 + i] = (char)(c == '-' ? '_' : c >= 'a' && c <= 'z' ? c - 32 : c);
    }
    return rb_interned_str(key, (long)len + 5);
}

/* Names are few, so each has a place of its own in the table, found from its length and some bytes.
 */
static VALUE key_of(const char *name, size_t len) {
    if (len == 0 || len > NAME_MAX_BYTES)
        rb_raise(rb_eRuntimeError, "a field without a usable name");
    unsigned at = (unsigned)len * 31 + (unsigned char)name[0] * 17 +
                  (unsigned char)name[len - 1] * 7 + (unsigned char)name[len / 2];
    for (;; at++) {
        rd_known *one = &known[at % KEYS];
        if (one->len == len && memcmp(one->name, name, len) == 0) return one->key;
        if (one->len != 0) continue;
        one->key = key_make(name, len);
        rb_gc_register_mark_object(one->key);
        memcpy(one->name, name, len);
        one->len = len;
        return one->key;
    }
}

static void take_target(VALUE env, const char *target, size_t len) {
    const char *query = memchr(target, '?', len);
    const size_t path = query ? (size_t)(query - target) : len;
    rb_hash_aset(env, path_info, rb_str_new(target, (long)path));
    if (query) rb_hash_aset(env, query_string, rb_str_new(query + 1, (long)(len - path - 1)));
}

/* `head` ends with an empty line. */
static VALUE env_make(const char *head, const char *end, bool *closes) {
    VALUE env = rb_hash_dup(template);
    const char *line_end = memchr(head, '\r', (size_t)(end - head));
    const char *target = memchr(head, ' ', (size_t)(line_end - head));
    const char *after = target ? memchr(target + 1, ' ', (size_t)(line_end - target - 1)) : NULL;
    if (!after) rb_raise(rb_eRuntimeError, "no request line");
    const bool is_get = target - head == 3 && memcmp(head, "GET", 3) == 0;
    rb_hash_aset(env, request_method, is_get ? get : rb_str_new(head, target - head));
    take_target(env, target + 1, (size_t)(after - target - 1));
    for (const char *at = line_end + 2; *at != '\r'; at = line_end + 2) {
        line_end = memchr(at, '\r', (size_t)(end - at));
        const char *colon = memchr(at, ':', (size_t)(line_end - at));
        if (!colon) rb_raise(rb_eRuntimeError, "a line without a colon");
        const char *value = colon[1] == ' ' ? colon + 2 : colon + 1;
        VALUE key = key_of(at, (size_t)(colon - at));
        if (key == http_connection)
            *closes = line_end - value == 5 && strncasecmp(value, "close", 5) == 0;
        rb_hash_aset(env, key, rb_str_new(value, line_end - value));
    }
    return env;
}

static int put_field(VALUE name, VALUE value, VALUE unused) {
    (void)unused;
    if (RSTRING_LEN(name) == 14 && memcmp(RSTRING_PTR(name), "content-length", 14) == 0)
        return ST_CONTINUE;
    put(RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    put(": ", 2);
    put(RSTRING_PTR(value), (size_t)RSTRING_LEN(value));
    put("\r\n", 2);
    return ST_CONTINUE;
}

static void answer(VALUE app, const char *head, const char *end, bool *closes) {
    VALUE env = env_make(head, end, closes);
    VALUE response = rb_funcallv(app, id_call, 1, &env);
    VALUE body = rb_ary_entry(response, 2);
    Check_Type(body, T_ARRAY);
    char line[64];
    size_t bytes = 0;
    for (long i = 0; i < RARRAY_LEN(body); i++) bytes += (size_t)RSTRING_LEN(RARRAY_AREF(body, i));
    put(line, (size_t)snprintf(line, sizeof line, "HTTP/1.1 %d OK\r\n",
                               NUM2INT(rb_ary_entry(response, 0))));
    rb_hash_foreach(rb_ary_entry(response, 1), put_field, Qnil);
    put(line, (size_t)snprintf(line, sizeof line, "content-length: %zu\r\n\r\n", bytes));
    for (long i = 0; i < RARRAY_LEN(body); i++) {
        put(RSTRING_PTR(RARRAY_AREF(body, i)), (size_t)RSTRING_LEN(RARRAY_AREF(body, i)));
    }
    RB_GC_GUARD(response);
}

static bool receive(int fd) {
    rd_held *in = held[fd];
    ssize_t got = recv(fd, in->bytes + in->len, sizeof in->bytes - in->len, 0);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    in->len += (size_t)got;
    return true;
}

/* False: the connection is over. */
static bool serve(VALUE app, int fd) {
    rd_held *in = held[fd];
    bool closes = false;
    if (!receive(fd)) return false;
    out_len = 0;
    const char *at = in->bytes, *end = in->bytes + in->len, *blank;
    while ((blank = memmem(at, (size_t)(end - at), "\r\n\r\n", 4)) != NULL) {
        answer(app, at, blank + 4, &closes);
        at = blank + 4;
    }
    in->len = (size_t)(end - at);
    if (at != in->bytes && in->len > 0) memmove(in->bytes, at, in->len);
    if (out_len > 0 && send(fd, out, out_len, MSG_NOSIGNAL) != (ssize_t)out_len) return false;
    return !closes && in->len < sizeof in->bytes;
}

static VALUE floor_serve(VALUE self, VALUE port, VALUE app, VALUE env) {
    static struct epoll_event events[RD_FLOOR_EVENTS];
    const rd_floor floor = rd_floor_open(StringValueCStr(port));
    (void)self;
    template = env;
    rb_gc_register_mark_object(env);
    for (;;) {
        const int ready = epoll_wait(floor.poller, events, RD_FLOOR_EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == floor.listener) {
                while ((fd = rd_floor_accept(&floor)) >= 0) {
                    if (held[fd] == NULL) held[fd] = malloc(sizeof *held[fd]);
                    if (held[fd] == NULL) rd_floor_fail("malloc");
                    held[fd]->len = 0;
                }
            } else if (!serve(app, fd)) {
                close(fd);
            }
        }
    }
    return app; /* keeps it on the stack */
}

static VALUE interned(const char *text) {
    VALUE string = rb_interned_str_cstr(text);
    rb_gc_register_mark_object(string);
    return string;
}

void Init_mri_floor(void);

void Init_mri_floor(void) {
    id_call = rb_intern("call");
    get = interned("GET");
    request_method = interned("REQUEST_METHOD");
    path_info = interned("PATH_INFO");
    query_string = interned("QUERY_STRING");
    http_connection = interned("HTTP_CONNECTION");
    rb_define_singleton_method(rb_define_module("MRIFloor"), "serve", floor_serve, 3);
}

/* SPDX-License-Identifier: MIT
 *
 * From the application's [status, headers, body] to the responder: checks every name and value
 * (a CR, LF or NUL is an error of the application, never bytes on the wire), finds out what kind
 * of body it is and sends it. Rack SPEC, "The Response".
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "http/status.h"
#include "protocol/http1_field.h"
#include "ruby/rb_call.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"

#define FIELDS_INLINE 40
#define FIELDS_MAX    4096
#define BORROW_MIN    16384

typedef struct rd_collect {
    rd_call *call;
    rd_field *fields;
    size_t count, capacity;
    VALUE room;   /* a String that holds the fields once there are many */
    VALUE kept;   /* Array of Strings made from other objects, or nil */
    VALUE pinned; /* a String with the bytes of all fields, or nil */
    VALUE hijack; /* rack.hijack of the response (partial hijack), or nil */
    rd_response_head head;
    bool has_connection;
    bool keep_all; /* nobody else holds the Strings that `each` gives */
    rd_field first[FIELDS_INLINE];
} rd_collect;

/* ---- fields ---- */

NORETURN(static void refuse_response(const char *what, VALUE object));

static void refuse_response(const char *what, VALUE object) {
    VALUE shown = rb_inspect(object);
    rb_raise(rd_eResponseError, "%s: %.200s", what, StringValueCStr(shown));
}

/* RFC 9110 section 5.6.2. */
static bool is_token(rd_slice text) {
    for (size_t i = 0; i < text.len; i++) {
        if (!rd_http1_name_bytes[(unsigned char)text.ptr[i]]) return false;
    }
    return text.len > 0;
}

/* Whether one of the eight bytes is 0. */
static uint64_t has_zero(uint64_t bytes) {
    return (bytes - 0x0101010101010101u) & ~bytes & 0x8080808080808080u;
}

/* No CR, LF or NUL; eight bytes at a time. */
static bool is_field_value(rd_slice text) {
    size_t i = 0;
    for (; i + 8 <= text.len; i += 8) {
        uint64_t bytes;
        memcpy(&bytes, text.ptr + i, 8);
        if (has_zero(bytes) | has_zero(bytes ^ 0x0d0d0d0d0d0d0d0du) |
            has_zero(bytes ^ 0x0a0a0a0a0a0a0a0au)) {
            return false;
        }
    }
    for (; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\r' || c == '\n' || c == '\0') return false;
    }
    return true;
}

static rd_slice slice_of(VALUE string) {
    return rd_slice_of(RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

static bool is_named(rd_slice name, const char *literal, size_t len) {
    return name.len == len && strncasecmp(name.ptr, literal, len) == 0;
}

#define IS_NAMED(name, literal) is_named((name), (literal), sizeof(literal) - 1)

static void grow_fields(rd_collect *collect) {
    if (collect->count >= FIELDS_MAX) rb_raise(rd_eResponseError, "too many header fields");
    size_t capacity = collect->capacity * 2;
    VALUE room = rb_str_buf_new((long)(capacity * sizeof(rd_field)));
    memcpy(RSTRING_PTR(room), collect->fields, collect->count * sizeof(rd_field));
    collect->room = room;
    collect->fields = (rd_field *)(void *)RSTRING_PTR(room);
    collect->capacity = capacity;
}

static void add_field(rd_collect *collect, rd_slice name, rd_slice value) {
    if (collect->count == collect->capacity) grow_fields(collect);
    collect->fields[collect->count++] = (rd_field){name, value};
}

static int64_t parse_length(VALUE value) {
    rd_slice text = slice_of(value);
    int64_t length = 0;
    if (text.len == 0 || text.len > 18) refuse_response("invalid content-length", value);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            refuse_response("invalid content-length", value);
        length = length * 10 + (text.ptr[i] - '0');
    }
    return length;
}

static bool is_separator(char c) {
    return c == ',' || c == ' ' || c == '\t';
}

/* Whether a comma-separated list names the token, RFC 9110 section 5.6.1. */
static bool has_token(rd_slice list, const char *token, size_t len) {
    for (size_t i = 0; i + len <= list.len; i++) {
        bool begins = i == 0 || is_separator(list.ptr[i - 1]);
        bool ends = i + len == list.len || is_separator(list.ptr[i + len]);
        if (begins && ends && strncasecmp(list.ptr + i, token, len) == 0) return true;
    }
    return false;
}

/* Fields that the server decides itself; true when this one is dealt with. RFC 9112 section 6. */
static bool take_special(rd_collect *collect, rd_slice name, VALUE value) {
    switch (name.len) {
    case 4:
        if (IS_NAMED(name, "date")) collect->head.has_date = true;
        return false;
    case 10:
        if (!IS_NAMED(name, "connection")) return false;
        collect->has_connection = true;
        if (has_token(slice_of(value), "close", 5)) collect->head.close = true;
        return !collect->head.raw;
    case 14:
        if (!IS_NAMED(name, "content-length")) return false;
        collect->head.length = parse_length(value);
        return !collect->head.raw;
    case 17:
        return IS_NAMED(name, "transfer-encoding") && !collect->head.raw;
    default:
        return false;
    }
}

/* A "\n" separates values in Rack 2 only; in Rack 3 it is a mistake, or an attack. */
static void add_lines(rd_collect *collect, VALUE shown, rd_slice name, rd_slice value) {
    while (collect->call->binding->split_newlines) {
        const char *end = memchr(value.ptr, '\n', value.len);
        if (end == NULL) break;
        rd_slice line = rd_slice_of(value.ptr, (size_t)(end - value.ptr));
        if (!is_field_value(line)) refuse_response("header value with a control byte", shown);
        if (line.len > 0) add_field(collect, name, line);
        value = rd_slice_of(end + 1, value.len - line.len - 1);
    }
    if (!is_field_value(value)) refuse_response("header value with a control byte", shown);
    add_field(collect, name, value);
}

static VALUE kept_string(rd_collect *collect, VALUE object) {
    bool is_string = RB_TYPE_P(object, T_STRING);
    if (is_string && !collect->keep_all) return object;
    VALUE string = rb_str_new_frozen(is_string ? object : rb_obj_as_string(object));
    if (NIL_P(collect->kept)) collect->kept = rb_ary_new();
    rb_ary_push(collect->kept, string);
    return string;
}

static void add_value(rd_collect *collect, rd_slice name, VALUE object) {
    VALUE value = kept_string(collect, object);
    if (take_special(collect, name, value)) return;
    add_lines(collect, value, name, slice_of(value));
}

static int collect_header(VALUE key, VALUE value, VALUE argument) {
    rd_collect *collect = (rd_collect *)argument;
    VALUE shown = kept_string(collect, key);
    rd_slice name = slice_of(shown);
    if (name.len > 5 && memcmp(name.ptr, "rack.", 5) == 0) {
        if (rd_slice_equal(name, RD_SLICE("rack.hijack"))) collect->hijack = value;
        return ST_CONTINUE; /* between server and application only */
    }
    if (!is_token(name)) refuse_response("invalid header name", shown);
    if (RB_TYPE_P(value, T_ARRAY)) {
        for (long i = 0; i < RARRAY_LEN(value); i++) {
            add_value(collect, name, RARRAY_AREF(value, i));
        }
    } else {
        add_value(collect, name, value);
    }
    return ST_CONTINUE;
}

static VALUE collect_pair(RB_BLOCK_CALL_FUNC_ARGLIST(pair, collect)) {
    (void)pair;
    if (argc == 1 && RB_TYPE_P(argv[0], T_ARRAY) && RARRAY_LEN(argv[0]) == 2) {
        collect_header(RARRAY_AREF(argv[0], 0), RARRAY_AREF(argv[0], 1), collect);
    } else if (argc == 2) {
        collect_header(argv[0], argv[1], collect);
    }
    return Qnil;
}

static void collect_headers(rd_collect *collect, VALUE headers) {
    collect->fields = collect->first;
    collect->count = 0;
    collect->capacity = FIELDS_INLINE;
    collect->kept = collect->room = collect->pinned = Qnil;
    if (RB_TYPE_P(headers, T_HASH)) {
        rb_hash_foreach(headers, collect_header, (VALUE)collect);
    } else if (!NIL_P(headers)) {
        collect->keep_all = true;
        rb_block_call(headers, rd_id.each, 0, NULL, collect_pair, (VALUE)collect);
    }
    collect->head.fields = collect->fields;
    collect->head.count = collect->count;
}

/* Copies what the fields point to: code of the application that runs before the head is written
 * (to_path, to_ary) could change or drop the checked Strings. */
static void pin_fields(rd_collect *collect) {
    size_t size = 0;
    for (size_t i = 0; i < collect->count; i++) {
        size += collect->fields[i].name.len + collect->fields[i].value.len;
    }
    VALUE copy = rb_str_buf_new((long)size + 1);
    char *to = RSTRING_PTR(copy);
    for (size_t i = 0; i < collect->count; i++) {
        rd_slice *parts[] = {&collect->fields[i].name, &collect->fields[i].value};
        for (int part = 0; part < 2; part++) {
            memcpy(to, parts[part]->ptr, parts[part]->len);
            parts[part]->ptr = to;
            to += parts[part]->len;
        }
    }
    collect->pinned = copy;
}

/* ---- the head ---- */

static int status_of(VALUE object) {
    int status = FIXNUM_P(object) ? FIX2INT(object) : NUM2INT(rb_Integer(object));
    if (status < 100 || status > 999) refuse_response("invalid status", object);
    return status;
}

static void begin_collect(rd_collect *collect, rd_call *call) {
    memset(collect, 0, offsetof(rd_collect, first));
    collect->call = call;
    collect->head.length = -1;
    collect->hijack = Qnil;
    collect->head.status = status_of(call->status);
    collect->head.raw = collect->head.status == 101 && rb_respond_to(call->body, rd_id.call);
    collect_headers(collect, call->headers);
    if (!NIL_P(collect->hijack) && !collect->head.raw) {
        collect->head.raw = true; /* found on the way: once more, leaving every field as it is */
        collect_headers(collect, call->headers);
    }
    if (collect->head.status < 200 && !collect->head.raw) {
        refuse_response("an informational status is no response", call->status);
    }
    if (collect->head.raw && !collect->has_connection) {
        add_field(collect, RD_SLICE("connection"), RD_SLICE("close"));
        collect->head.fields = collect->fields;
        collect->head.count = collect->count;
    }
}

static int start_locked(rd_collect *collect) {
    rd_call *call = collect->call;
    call->started = true;
    /* A stop asked for meanwhile: the client shall not send the next request here. */
    if (rd_server_is_stopping(call->binding->server)) collect->head.close = true;
    return call->request->responder->start(call->request, &collect->head);
}

static void start(rd_collect *collect) {
    rd_binding *binding = collect->call->binding;
    rd_lock(binding);
    int code = start_locked(collect);
    rd_unlock(binding);
    RB_GC_GUARD(collect->kept);
    RB_GC_GUARD(collect->room);
    RB_GC_GUARD(collect->pinned);
    if (code < 0) rd_raise_closed();
}

static void finish(rd_call *call) {
    rd_lock(call->binding);
    call->request->responder->finish(call->request);
    rd_unlock(call->binding);
    call->done = true;
}

/* ---- bodies ---- */

/* Under the lock. */
static int queue_copy(rd_call *call, VALUE part) {
    return call->request->responder->write(call->request, RSTRING_PTR(part),
                                           (size_t)RSTRING_LEN(part));
}

/* Small parts are copied; large ones are kept as they are, frozen so that they stay so. Under the
 * lock only the queueing: making Ruby objects comes before. */
int rd_write_part(rd_call *call, VALUE part) {
    rd_binding *binding = call->binding;
    int code;
    if (RSTRING_LEN(part) < BORROW_MIN) {
        rd_lock(binding);
        code = queue_copy(call, part);
        rd_unlock(binding);
        return code;
    }
    VALUE frozen = rb_str_new_frozen(part);
    rd_release *held = rd_borrow_string(binding, frozen);
    rd_lock(binding);
    code = call->request->responder->borrow(call->request, RSTRING_PTR(frozen),
                                            (size_t)RSTRING_LEN(frozen), held);
    rd_unlock(binding);
    return code;
}

static bool all_small_strings(VALUE array, size_t *total) {
    *total = 0;
    bool small = true;
    for (long i = 0; i < RARRAY_LEN(array); i++) {
        VALUE part = RARRAY_AREF(array, i);
        if (!RB_TYPE_P(part, T_STRING)) refuse_response("body part is not a String", part);
        if (RSTRING_LEN(part) >= BORROW_MIN) small = false;
        *total += (size_t)RSTRING_LEN(part);
    }
    return small;
}

/* The common case: everything is there, one visit to the lock does it all. */
static void respond_array(rd_collect *collect, VALUE array) {
    rd_call *call = collect->call;
    size_t total;
    bool small = all_small_strings(array, &total);
    if (collect->head.length < 0) collect->head.length = (int64_t)total;
    if (!small) {
        start(collect);
        for (long i = 0; i < RARRAY_LEN(array); i++) rd_write_part(call, RARRAY_AREF(array, i));
        finish(call);
        return;
    }
    rd_lock(call->binding);
    int code = start_locked(collect);
    for (long i = 0; i < RARRAY_LEN(array) && code >= 0; i++) {
        code = queue_copy(call, RARRAY_AREF(array, i));
    }
    if (code >= 0) call->request->responder->finish(call->request);
    rd_unlock(call->binding);
    call->done = true;
    RB_GC_GUARD(collect->kept);
    RB_GC_GUARD(collect->room);
    RB_GC_GUARD(collect->pinned);
}

static bool has_no_body(const rd_collect *collect) {
    return collect->call->request->head.method_id == RD_METHOD_HEAD ||
           !rd_status_has_body(collect->head.status);
}

static void respond_nothing(rd_collect *collect) {
    start(collect);
    finish(collect->call);
}

/* A regular file that can be opened, or false: then the body's each has to do. */
static bool respond_file(rd_collect *collect, VALUE body) {
    if (!rb_respond_to(body, rd_id.to_path)) return false;
    VALUE path = rb_funcall(body, rd_id.to_path, 0);
    if (NIL_P(path)) return false;
    struct stat info;
    FilePathValue(path); /* a Pathname will do */
    int fd = open(StringValueCStr(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return false;
    }
    rd_call *call = collect->call;
    if (collect->head.length < 0) collect->head.length = info.st_size;
    rd_lock(call->binding);
    int code = start_locked(collect);
    if (code >= 0) {
        code = call->request->responder->send_file(call->request, fd, 0, (size_t)info.st_size);
        call->request->responder->finish(call->request);
    } else {
        close(fd);
    }
    rd_unlock(call->binding);
    call->done = true;
    RB_GC_GUARD(collect->kept);
    RB_GC_GUARD(collect->room);
    RB_GC_GUARD(collect->pinned);
    return true;
}

/* One part leaves at once; a full queue holds the body up until the client has read. */
static VALUE each_part(RB_BLOCK_CALL_FUNC_ARGLIST(part, argument)) {
    rd_call *call = (rd_call *)argument;
    if (!RB_TYPE_P(part, T_STRING)) refuse_response("body part is not a String", part);
    if (RSTRING_LEN(part) == 0) return Qnil;
    int code = rd_write_part(call, part);
    rd_lock(call->binding);
    if (code >= 0) code = call->request->responder->flush(call->request);
    bool drained = rd_has_drained(call->request);
    rd_unlock(call->binding);
    if (code >= 0 && !drained) rd_wait_until(call->binding, call->request, rd_has_drained);
    if (code < 0 || call->request->conn == NULL) rb_iter_break();
    rd_borrow_release_all(call->binding);
    return Qnil;
}

static void respond_each(rd_collect *collect, VALUE body) {
    rd_call *call = collect->call;
    start(collect);
    rb_block_call(body, rd_id.each, 0, NULL, each_part, (VALUE)call);
    finish(call);
}

static void respond_raw(rd_collect *collect) {
    rd_call *call = collect->call;
    VALUE taker = NIL_P(collect->hijack) ? call->body : collect->hijack;
    start(collect);
    VALUE io = rd_connection_detach(call);
    call->hijacked = true;
    rb_funcall(taker, rd_id.call, 1, io);
}

static void respond_stream(rd_collect *collect) {
    rd_call *call = collect->call;
    start(collect);
    call->stream = rd_stream_new(call);
    rb_funcall(call->body, rd_id.call, 1, call->stream);
    rd_stream_after_call(call);
}

/* Rails answers to to_ary for every body, with something that is no Array where it has none. */
static bool respond_to_ary(rd_collect *collect, VALUE body) {
    if (!rb_respond_to(body, rd_id.to_ary)) return false;
    VALUE array = rb_funcall(body, rd_id.to_ary, 0);
    if (!RB_TYPE_P(array, T_ARRAY)) return false;
    respond_array(collect, array);
    return true;
}

static void respond_body(rd_collect *collect) {
    VALUE body = collect->call->body;
    if (RB_TYPE_P(body, T_ARRAY)) {
        respond_array(collect, body);
    } else if (has_no_body(collect)) {
        respond_nothing(collect);
    } else if (respond_file(collect, body)) {
        return;
    } else if (respond_to_ary(collect, body)) {
        return;
    } else if (rb_respond_to(body, rd_id.each)) {
        respond_each(collect, body);
    } else if (rb_respond_to(body, rd_id.call)) {
        respond_stream(collect);
    } else {
        refuse_response("body answers neither each nor call", body);
    }
}

void rd_respond(rd_call *call) {
    rd_collect collect;
    begin_collect(&collect, call);
    if (!RB_TYPE_P(call->body, T_ARRAY)) pin_fields(&collect);
    if (collect.head.raw) {
        respond_raw(&collect);
    } else {
        respond_body(&collect);
    }
}

void rd_close_body(rd_call *call) {
    if (call->body_closed || RB_SPECIAL_CONST_P(call->body)) return;
    call->body_closed = true;
    if (RB_TYPE_P(call->body, T_ARRAY) && RBASIC_CLASS(call->body) == rb_cArray) return;
    if (rb_respond_to(call->body, rd_id.close)) rb_funcall(call->body, rd_id.close, 0);
}

void rd_early_hints_send(rd_call *call, VALUE headers) {
    rd_collect collect;
    memset(&collect, 0, offsetof(rd_collect, first));
    collect.call = call;
    collect.head.status = 103;
    collect.hijack = Qnil;
    collect_headers(&collect, headers);
    rd_lock(call->binding);
    if (call->request->responder->inform(call->request, &collect.head) >= 0) {
        call->request->responder->flush(call->request);
    }
    rd_unlock(call->binding);
    RB_GC_GUARD(collect.kept);
    RB_GC_GUARD(collect.room);
}

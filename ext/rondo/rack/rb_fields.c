/* SPDX-License-Identifier: MIT
 *
 * Checks and collects header fields; see rb_fields.h.
 */
#include "rack/rb_fields.h"

#include "base/ascii.h"
#include "http/field.h"
#include "http/field_list.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "ruby/rb_value.h"

#define FIELDS_MAX  4096
#define CHUNK_BYTES 16384 /* a String of this size is never embedded */

void rd_refuse_response(const char *what, VALUE object) {
    VALUE shown = rb_inspect(object);
    rb_raise(rd_eResponseError, "%s: %.200s", what, StringValueCStr(shown));
}

/* Whether all of the eight bytes are a to z or "-". In most field names they are. */
static bool are_usual(const char *bytes) {
    uint64_t eight;
    memcpy(&eight, bytes, 8);
    const uint64_t ones = 0x0101010101010101u, high = 0x80 * ones;
    /* Replaces dashes by "m"; then no byte below 0x80 carries into its neighbour. */
    const uint64_t dashes = ~(((eight ^ '-' * ones) & ~high) + 0x7f * ones) & high;
    const uint64_t letters = eight ^ (dashes >> 1);
    const uint64_t from_a = letters + (0x80 - 'a') * ones, after_z = letters + (0x7f - 'z') * ones;
    return ((eight | ~from_a | after_z) & high) == 0;
}

/* RFC 9110 section 5.6.2. Eight bytes at a time save about 60 instructions per response. */
static bool is_token(rd_slice text) {
    if (text.len >= 8 && text.len <= 16 && are_usual(text.ptr) &&
        are_usual(text.ptr + text.len - 8)) {
        return true;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (!rd_field_name_bytes[(unsigned char)text.ptr[i]]) return false;
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

#define IS_NAMED(name, literal) rd_ascii_is((name), RD_SLICE(literal))

static void grow_fields(rd_collect *collect) {
    if (collect->count >= FIELDS_MAX) rb_raise(rd_eResponseError, "too many header fields");
    size_t capacity = collect->capacity * 2;
    VALUE room = rb_str_buf_new((long)(capacity * sizeof(rd_field)));
    memcpy(RSTRING_PTR(room), collect->fields, collect->count * sizeof(rd_field));
    collect->room = room;
    collect->fields = (rd_field *)(void *)RSTRING_PTR(room);
    collect->capacity = capacity;
}

void rd_collect_reserve(rd_collect *collect, size_t count) {
    while (collect->capacity - collect->count < count) grow_fields(collect);
    collect->head.fields = collect->fields;
}

static void add_field(rd_collect *collect, rd_slice name, rd_slice value) {
    if (collect->count == collect->capacity) grow_fields(collect);
    collect->fields[collect->count++] = (rd_field){name, value};
}

static int64_t parse_length(VALUE value) {
    rd_slice text = rd_slice_of_string(value);
    int64_t length = 0;
    if (text.len == 0 || text.len > 18) rd_refuse_response("invalid content-length", value);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            rd_refuse_response("invalid content-length", value);
        length = length * 10 + (text.ptr[i] - '0');
    }
    return length;
}

/* RFC 9110 section 7.6.1. */
static bool asks_to_close(rd_slice list) {
    rd_slice option;
    while (rd_field_list_next(&list, ',', &option)) {
        if (rd_field_is_word(option, RD_SLICE("close"))) return true;
    }
    return false;
}

/* X-Sendfile and X-Accel-Redirect. If the server obeys them, clients never see them. */
static bool take_file(rd_collect *collect, VALUE value, bool is_escaped) {
    if (collect->call->binding->files.roots.count == 0) return false;
    if (NIL_P(collect->file)) {
        collect->file = value;
        collect->file_is_escaped = is_escaped;
    }
    return true;
}

/* Fields that the server sets itself. True: this field is done. RFC 9112 section 6. */
static bool take_special(rd_collect *collect, rd_slice name, VALUE value) {
    switch (name.len) {
    case 4:
        if (IS_NAMED(name, "date")) collect->head.has_date = true;
        return false;
    case 7: /* needs Connection: upgrade, RFC 9110 section 7.8 */
        if (!IS_NAMED(name, "upgrade") || collect->head.raw) return false;
        add_field(collect, RD_SLICE("connection"), RD_SLICE("upgrade"));
        return false;
    case 10:
        if (IS_NAMED(name, "x-sendfile")) return take_file(collect, value, false);
        if (!IS_NAMED(name, "connection")) return false;
        collect->has_connection = true;
        if (asks_to_close(rd_slice_of_string(value))) collect->head.close = true;
        return !collect->head.raw;
    case 14:
        if (!IS_NAMED(name, "content-length")) return false;
        collect->head.length = parse_length(value);
        return !collect->head.raw;
    case 16:
        return IS_NAMED(name, "x-accel-redirect") && take_file(collect, value, true);
    case 17:
        return IS_NAMED(name, "transfer-encoding") && !collect->head.raw;
    default:
        return false;
    }
}

/* A "\n" separates values only in Rack 2. In Rack 3 it is a mistake, or an attack. */
static void add_lines(rd_collect *collect, VALUE shown, rd_slice name, rd_slice value) {
    while (collect->call->binding->rules.split_newlines) {
        const char *end = memchr(value.ptr, '\n', value.len);
        if (end == NULL) break;
        rd_slice line = rd_slice_of(value.ptr, (size_t)(end - value.ptr));
        if (!is_field_value(line)) rd_refuse_response("header value with a control byte", shown);
        if (line.len > 0) add_field(collect, name, line);
        value = rd_slice_of(end + 1, value.len - line.len - 1);
    }
    if (!is_field_value(value)) rd_refuse_response("header value with a control byte", shown);
    add_field(collect, name, value);
}

static void add_chunk(rd_collect *collect, size_t len) {
    const size_t size = len > CHUNK_BYTES ? len : CHUNK_BYTES;
    VALUE chunk = rb_str_buf_new((long)size);
    if (NIL_P(collect->chunks)) collect->chunks = rb_ary_new();
    rb_ary_push(collect->chunks, chunk);
    collect->bytes = RSTRING_PTR(chunk);
    collect->bytes_left = size;
}

static rd_slice copy_of(rd_collect *collect, VALUE string) {
    const size_t len = (size_t)RSTRING_LEN(string);
    if (len > collect->bytes_left) add_chunk(collect, len);
    char *copy = collect->bytes;
    memcpy(copy, RSTRING_PTR(string), len);
    collect->bytes += len;
    collect->bytes_left -= len;
    RB_GC_GUARD(string);
    return rd_slice_of(copy, len);
}

static VALUE string_of(VALUE object) {
    return RB_TYPE_P(object, T_STRING) ? object : rb_obj_as_string(object);
}

static void add_value(rd_collect *collect, rd_slice name, VALUE object) {
    VALUE value = string_of(object);
    if (take_special(collect, name, value)) return;
    add_lines(collect, value, name, copy_of(collect, value));
}

static int collect_header(VALUE key, VALUE value, VALUE argument) {
    rd_collect *collect = (rd_collect *)argument;
    VALUE shown = string_of(key);
    rd_slice name = copy_of(collect, shown);
    if (name.len > 5 && memcmp(name.ptr, "rack.", 5) == 0) {
        if (rd_slice_equal(name, RD_SLICE("rack.hijack"))) collect->hijack = value;
        return ST_CONTINUE; /* only for the server, never sent */
    }
    if (!is_token(name)) rd_refuse_response("invalid header name", shown);
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

void rd_collect_add(rd_collect *collect, rd_slice name, rd_slice value) {
    add_field(collect, name, value);
    collect->head.fields = collect->fields;
    collect->head.count = collect->count;
}

const rd_field *rd_collect_find(const rd_collect *collect, rd_slice name) {
    for (size_t i = 0; i < collect->head.count; i++) {
        const rd_field *field = &collect->head.fields[i];
        if (rd_ascii_is(field->name, name)) return field;
    }
    return NULL;
}

void rd_collect_remove(rd_collect *collect, rd_slice name) {
    size_t kept = 0;
    for (size_t i = 0; i < collect->count; i++) {
        rd_field field = collect->fields[i];
        if (!rd_ascii_is(field.name, name)) collect->fields[kept++] = field;
    }
    collect->head.count = collect->count = kept;
}

void rd_collect_init(rd_collect *collect, rd_call *call) {
    memset(collect, 0, offsetof(rd_collect, first));
    collect->call = call;
    collect->head.length = -1;
    collect->hijack = Qnil;
}

void rd_collect_fields(rd_collect *collect, VALUE headers) {
    collect->fields = collect->first;
    collect->count = 0;
    collect->capacity = RD_FIELDS_INLINE;
    collect->bytes = collect->first_bytes;
    collect->bytes_left = RD_FIELD_BYTES_INLINE;
    collect->chunks = collect->room = collect->file = Qnil;
    if (RB_TYPE_P(headers, T_HASH)) {
        rb_hash_foreach(headers, collect_header, (VALUE)collect);
    } else if (!NIL_P(headers)) {
        rb_block_call(headers, rd_id.each, 0, NULL, collect_pair, (VALUE)collect);
    }
    collect->head.fields = collect->fields;
    collect->head.count = collect->count;
}

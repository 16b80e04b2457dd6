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

static void grow_fields(rd_collector *collector) {
    if (collector->count >= FIELDS_MAX) rb_raise(rd_eResponseError, "too many header fields");
    size_t capacity = collector->capacity * 2;
    VALUE room = rb_str_buf_new((long)(capacity * sizeof(rd_field)));
    memcpy(RSTRING_PTR(room), collector->fields, collector->count * sizeof(rd_field));
    collector->room = room;
    collector->fields = (rd_field *)(void *)RSTRING_PTR(room);
    collector->capacity = capacity;
}

void rd_collector_reserve(rd_collector *collector, size_t count) {
    while (collector->capacity - collector->count < count) grow_fields(collector);
    collector->head.fields = collector->fields;
}

static void add_field(rd_collector *collector, rd_slice name, rd_slice value) {
    if (collector->count == collector->capacity) grow_fields(collector);
    collector->fields[collector->count++] = (rd_field){name, value};
}

static int64_t parse_length(VALUE value) {
    rd_slice text = rd_slice_of_string(value);
    int64_t length = 0;
    if (text.len == 0 || text.len > 18) rd_refuse_response("content-length is not a number", value);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            rd_refuse_response("content-length is not a number", value);
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
static bool take_file(rd_collector *collector, VALUE value, bool is_escaped) {
    if (collector->call->binding->files.roots.count == 0) return false;
    if (NIL_P(collector->file)) {
        collector->file = value;
        collector->file_is_escaped = is_escaped;
    }
    return true;
}

/* Fields that the server sets itself. True: this field is done. RFC 9112 section 6. */
static bool take_special(rd_collector *collector, rd_slice name, VALUE value) {
    switch (name.len) {
    case 4:
        if (IS_NAMED(name, "date")) collector->head.has_date = true;
        return false;
    case 7: /* needs Connection: upgrade, RFC 9110 section 7.8 */
        if (!IS_NAMED(name, "upgrade") || collector->head.raw) return false;
        add_field(collector, RD_SLICE("connection"), RD_SLICE("upgrade"));
        return false;
    case 10:
        if (IS_NAMED(name, "x-sendfile")) return take_file(collector, value, false);
        if (!IS_NAMED(name, "connection")) return false;
        collector->has_connection = true;
        if (asks_to_close(rd_slice_of_string(value))) collector->head.close = true;
        return !collector->head.raw;
    case 14:
        if (!IS_NAMED(name, "content-length")) return false;
        collector->head.length = parse_length(value);
        return !collector->head.raw;
    case 16:
        return IS_NAMED(name, "x-accel-redirect") && take_file(collector, value, true);
    case 17:
        return IS_NAMED(name, "transfer-encoding") && !collector->head.raw;
    default:
        return false;
    }
}

/* A "\n" separates values only in Rack 2. In Rack 3 it is a mistake, or an attack. */
static void add_lines(rd_collector *collector, VALUE shown, rd_slice name, rd_slice value) {
    while (collector->call->binding->rules.split_newlines) {
        const char *end = memchr(value.ptr, '\n', value.len);
        if (end == NULL) break;
        rd_slice line = rd_slice_of(value.ptr, (size_t)(end - value.ptr));
        if (!is_field_value(line)) rd_refuse_response("a header value has a control byte", shown);
        if (line.len > 0) add_field(collector, name, line);
        value = rd_slice_of(end + 1, value.len - line.len - 1);
    }
    if (!is_field_value(value)) rd_refuse_response("a header value has a control byte", shown);
    add_field(collector, name, value);
}

static void add_chunk(rd_collector *collector, size_t len) {
    const size_t size = len > CHUNK_BYTES ? len : CHUNK_BYTES;
    VALUE chunk = rb_str_buf_new((long)size);
    if (NIL_P(collector->chunks)) collector->chunks = rb_ary_new();
    rb_ary_push(collector->chunks, chunk);
    collector->bytes = RSTRING_PTR(chunk);
    collector->bytes_left = size;
}

static rd_slice copy_of(rd_collector *collector, VALUE string) {
    const size_t len = (size_t)RSTRING_LEN(string);
    if (len > collector->bytes_left) add_chunk(collector, len);
    char *copy = collector->bytes;
    memcpy(copy, RSTRING_PTR(string), len);
    collector->bytes += len;
    collector->bytes_left -= len;
    RB_GC_GUARD(string);
    return rd_slice_of(copy, len);
}

static VALUE string_of(VALUE object) {
    return RB_TYPE_P(object, T_STRING) ? object : rb_obj_as_string(object);
}

static void add_value(rd_collector *collector, rd_slice name, VALUE object) {
    VALUE value = string_of(object);
    if (take_special(collector, name, value)) return;
    add_lines(collector, value, name, copy_of(collector, value));
}

static int collect_header(VALUE key, VALUE value, VALUE argument) {
    rd_collector *collector = (rd_collector *)argument;
    VALUE shown = string_of(key);
    rd_slice name = copy_of(collector, shown);
    if (name.len > 5 && memcmp(name.ptr, "rack.", 5) == 0) {
        if (rd_slice_equal(name, RD_SLICE("rack.hijack"))) collector->hijack = value;
        return ST_CONTINUE; /* only for the server, never sent */
    }
    if (!is_token(name)) rd_refuse_response("a header name is not a token", shown);
    if (RB_TYPE_P(value, T_ARRAY)) {
        for (long i = 0; i < RARRAY_LEN(value); i++) {
            add_value(collector, name, RARRAY_AREF(value, i));
        }
    } else {
        add_value(collector, name, value);
    }
    return ST_CONTINUE;
}

static VALUE collect_pair(RB_BLOCK_CALL_FUNC_ARGLIST(pair, collector)) {
    (void)pair;
    if (argc == 1 && RB_TYPE_P(argv[0], T_ARRAY) && RARRAY_LEN(argv[0]) == 2) {
        collect_header(RARRAY_AREF(argv[0], 0), RARRAY_AREF(argv[0], 1), collector);
    } else if (argc == 2) {
        collect_header(argv[0], argv[1], collector);
    }
    return Qnil;
}

void rd_collector_add(rd_collector *collector, rd_slice name, rd_slice value) {
    add_field(collector, name, value);
    collector->head.fields = collector->fields;
    collector->head.count = collector->count;
}

const rd_field *rd_collector_find(const rd_collector *collector, rd_slice name) {
    for (size_t i = 0; i < collector->head.count; i++) {
        const rd_field *field = &collector->head.fields[i];
        if (rd_ascii_is(field->name, name)) return field;
    }
    return NULL;
}

void rd_collector_remove(rd_collector *collector, rd_slice name) {
    size_t kept = 0;
    for (size_t i = 0; i < collector->count; i++) {
        rd_field field = collector->fields[i];
        if (!rd_ascii_is(field.name, name)) collector->fields[kept++] = field;
    }
    collector->head.count = collector->count = kept;
}

void rd_collector_init(rd_collector *collector, rd_call *call) {
    memset(collector, 0, offsetof(rd_collector, first));
    collector->call = call;
    collector->head.length = -1;
    collector->hijack = Qnil;
}

void rd_collector_read(rd_collector *collector, VALUE headers) {
    collector->fields = collector->first;
    collector->count = 0;
    collector->capacity = RD_FIELDS_INLINE;
    collector->bytes = collector->first_bytes;
    collector->bytes_left = RD_FIELD_BYTES_INLINE;
    collector->chunks = collector->room = collector->file = Qnil;
    if (RB_TYPE_P(headers, T_HASH)) {
        rb_hash_foreach(headers, collect_header, (VALUE)collector);
    } else if (!NIL_P(headers)) {
        rb_block_call(headers, rd_id.each, 0, NULL, collect_pair, (VALUE)collector);
    }
    collector->head.fields = collector->fields;
    collector->head.count = collector->count;
}

/* SPDX-License-Identifier: MIT
 *
 * The header fields of an answer, out of the application's Hash: every name and value is checked (a
 * CR, LF or NUL is an error of the application, never bytes on the wire). Rack SPEC, "The Headers".
 */
#ifndef RD_RUBY_FIELDS_H
#define RD_RUBY_FIELDS_H

#include "ruby/rb_call.h"

#define RD_FIELDS_INLINE 40

typedef struct rd_collect {
    rd_call *call;
    rd_field *fields;
    size_t count, capacity;
    VALUE room;   /* a String that holds the fields once there are many */
    VALUE kept;   /* Array of Strings made from other objects, or nil */
    VALUE pinned; /* a String with the bytes of all fields, or nil */
    VALUE hijack; /* rack.hijack of the response (partial hijack), or nil */
    VALUE file;   /* path of the file to send instead of the body (X-Sendfile), or nil */
    rd_response_head head;
    bool file_is_escaped; /* X-Accel-Redirect: as in a URL */
    bool has_connection;
    bool keep_all; /* nobody else holds the Strings that `each` gives */
    rd_field first[RD_FIELDS_INLINE];
} rd_collect;

/* Raises ResponseError: "what: the object". */
NORETURN(void rd_refuse_response(const char *what, VALUE object));

/* Ready for rd_collect_fields(), nothing known of the answer. */
void rd_collect_init(rd_collect *collect, rd_call *call);

/* Raises ResponseError. The fields point into Strings of `headers` and of `collect`. */
void rd_collect_fields(rd_collect *collect, VALUE headers);
void rd_collect_add(rd_collect *collect, rd_slice name, rd_slice value);

/* Room for so many more fields, which whoever adds them does without raising; may raise itself. */
void rd_collect_reserve(rd_collect *collect, size_t count);
void rd_collect_remove(rd_collect *collect, rd_slice name);
/* The first field of that name, in any letter case, or NULL. */
const rd_field *rd_collect_find(const rd_collect *collect, rd_slice name);

/* Copies what the fields point to: code of the application that runs before the head is written
 * (to_path, to_ary, other threads) could change or drop the checked Strings. */
void rd_collect_pin(rd_collect *collect);

/* The Strings that the fields point into live until here. */
#define RD_COLLECT_GUARD(collect)                                                                  \
    do {                                                                                           \
        RB_GC_GUARD((collect)->kept);                                                              \
        RB_GC_GUARD((collect)->room);                                                              \
        RB_GC_GUARD((collect)->pinned);                                                            \
    } while (0)

/* rb_response.c: right before the head is sent, under the lock. */
void rd_begin_response(rd_collect *collect);

#endif

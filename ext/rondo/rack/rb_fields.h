/* SPDX-License-Identifier: MIT
 *
 * The header fields of an answer, from the application's Hash. Every name and value is checked: a
 * CR, LF or NUL is an error of the application and is never sent. Rack SPEC, "The Headers".
 */
#ifndef RD_RACK_FIELDS_H
#define RD_RACK_FIELDS_H

#include "rack/rb_call.h"

#define RD_FIELDS_INLINE      40
#define RD_FIELD_BYTES_INLINE 4096

typedef struct rd_collector {
    rd_call *call;
    rd_field *fields;
    size_t count, capacity;
    VALUE room;   /* a String with the fields, if there are many */
    VALUE chunks; /* Array of Strings with names and values, if they are long, or nil */
    char *bytes;  /* where the next name or value goes */
    size_t bytes_left;
    VALUE hijack; /* rack.hijack of the response (partial hijack), or nil */
    VALUE file;   /* path of the file to send instead of the body (X-Sendfile), or nil */
    rd_response_head head;
    bool file_is_escaped; /* X-Accel-Redirect: escaped as in a URL */
    bool has_connection;
    rd_field first[RD_FIELDS_INLINE];
    char first_bytes[RD_FIELD_BYTES_INLINE];
} rd_collector;

/* Raises ResponseError: "what: the object". */
NORETURN(void rd_refuse_response(const char *what, VALUE object));

/* Prepares an empty answer for rd_collector_read(). */
void rd_collector_init(rd_collector *collector, rd_call *call);

/* Raises ResponseError. The fields point into `collector`, never into Strings of the application.
 * Application code that runs before the head is written (to_s of the next field, to_path, other
 * threads) could change or drop those Strings, and compaction moves them. */
void rd_collector_read(rd_collector *collector, VALUE headers);
void rd_collector_add(rd_collector *collector, rd_slice name, rd_slice value);

/* Makes room for `count` more fields, so that adding them does not raise. May raise itself. */
void rd_collector_reserve(rd_collector *collector, size_t count);
void rd_collector_remove(rd_collector *collector, rd_slice name);
/* The first field of that name, in any letter case, or NULL. */
const rd_field *rd_collector_find(const rd_collector *collector, rd_slice name);

/* Keeps the Strings with the fields alive until here. */
#define RD_COLLECTOR_GUARD(collector)                                                              \
    do {                                                                                           \
        RB_GC_GUARD((collector)->chunks);                                                          \
        RB_GC_GUARD((collector)->room);                                                            \
    } while (0)

#endif

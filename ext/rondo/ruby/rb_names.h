/* SPDX-License-Identifier: MIT
 *
 * Names looked up once at load: method IDs, env keys, HTTP_* keys by header id, methods,
 * versions. All of them are immortal. See rb_names.def.
 */
#ifndef RD_RUBY_NAMES_H
#define RD_RUBY_NAMES_H

#include <ruby.h>

#include "http/head.h"

typedef struct rd_ids {
#define RD_ID(name, text) ID name;
#define RD_KEY(name, text)
#include "ruby/rb_names.def"
#undef RD_ID
#undef RD_KEY
} rd_ids;

typedef struct rd_keys {
#define RD_ID(name, text)
#define RD_KEY(name, text) VALUE name;
#include "ruby/rb_names.def"
#undef RD_ID
#undef RD_KEY
} rd_keys;

extern rd_ids rd_id;
extern rd_keys rd_key;
extern VALUE rd_method_names[RD_METHOD_COUNT];        /* "GET" …; 0 for OTHER */
extern VALUE rd_version_names[RD_HTTP_VERSION_COUNT]; /* "HTTP/1.0" … */
extern VALUE rd_header_keys[RD_HEADER_COUNT];         /* "HTTP_ACCEPT" …; 0 for OTHER */

void rd_init_names(void);

/* A frozen, interned, immortal String. */
VALUE rd_intern(const char *text, size_t len);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Fills the tables of names; see rb_names.h.
 */
#include "ruby/rb_names.h"

#include <string.h>

#include "base/ascii.h"

rd_ids rd_id;
rd_keys rd_key;
VALUE rd_method_names[RD_METHOD_COUNT];
VALUE rd_version_names[RD_HTTP_VERSION_COUNT];
VALUE rd_header_keys[RD_HEADER_COUNT];

VALUE rd_intern(const char *text, size_t len) {
    VALUE string = rb_interned_str(text, (long)len);
    rb_gc_register_mark_object(string);
    return string;
}

static void init_methods(void) {
#define ROW(name) rd_method_names[RD_METHOD_##name] = rd_intern(#name, strlen(#name));
    RD_METHODS(ROW)
#undef ROW
}

static void init_versions(void) {
    for (unsigned version = 0; version < RD_HTTP_VERSION_COUNT; version++) {
        const rd_slice text = rd_http_versions[version].text;
        rd_version_names[version] = rd_intern(text.ptr, text.len);
    }
}

/* "accept-encoding" becomes "HTTP_ACCEPT_ENCODING", RFC 3875 section 4.1.18. */
static VALUE header_key(rd_slice name) {
    char key[80] = "HTTP_";
    size_t len = 5;
    for (size_t i = 0; i < name.len && len < sizeof(key); i++, len++) {
        key[len] = name.ptr[i] == '-' ? '_' : rd_ascii_upper(name.ptr[i]);
    }
    return rd_intern(key, len);
}

void rd_init_names(void) {
#define RD_ID(name, text)  rd_id.name = rb_intern(text);
#define RD_KEY(name, text) rd_key.name = rd_intern(text, sizeof(text) - 1);
#include "ruby/rb_names.def"
#undef RD_ID
#undef RD_KEY
    init_methods();
    init_versions();
    for (unsigned id = 1; id < RD_HEADER_COUNT; id++) {
        rd_header_keys[id] = header_key(rd_header_id_name(id));
    }
    rd_header_keys[RD_HEADER_CONTENT_LENGTH] = rd_key.content_length;
    rd_header_keys[RD_HEADER_CONTENT_TYPE] = rd_key.content_type;
}

/* SPDX-License-Identifier: MIT
 *
 * Env templates; see rb_env_cache.c. With the GVL.
 */
#ifndef RD_RACK_ENV_CACHE_H
#define RD_RACK_ENV_CACHE_H

#include "rack/rb_call.h"
#include "ruby/rb_names.h"

/* The keys of every env: X(PLACE, key of rb_names.def). These values are the request's own. They
 * come first in every template. */
#define RD_ENV_OWN_ROWS(X)                                                                         \
    X(PATH, path_info)                                                                             \
    X(HIJACK, rack_hijack)                                                                         \
    X(FINISHED, rack_response_finished)

/* These come last, after the header fields if the template has any. The first four are the
 * request's own as well, but usually equal to the template's. */
#define RD_ENV_SHARED_ROWS(X)                                                                      \
    X(METHOD, request_method)                                                                      \
    X(QUERY, query_string)                                                                         \
    X(PROTOCOL, server_protocol)                                                                   \
    X(CAN_UPGRADE, rack_can_upgrade)                                                               \
    X(SCRIPT_NAME, script_name)                                                                    \
    X(SERVER_NAME, server_name)                                                                    \
    X(SERVER_PORT, server_port)                                                                    \
    X(REMOTE_ADDR, remote_addr)                                                                    \
    X(SCHEME, rack_url_scheme)                                                                     \
    X(ERRORS, rack_errors)                                                                         \
    X(INPUT, rack_input)                                                                           \
    X(IS_HIJACK, rack_is_hijack)

enum {
#define RD_ENV_PLACE(place, key) RD_ENV_##place,
    RD_ENV_OWN_ROWS(RD_ENV_PLACE) RD_ENV_OWN_COUNT,
    RD_ENV_LAST_OWN = RD_ENV_OWN_COUNT - 1,
    RD_ENV_SHARED_ROWS(RD_ENV_PLACE) RD_ENV_COUNT
#undef RD_ENV_PLACE
};

#define RD_ENV_KEY(place, key) rd_key.key,
#define RD_ENV_OWN_KEYS        RD_ENV_OWN_ROWS(RD_ENV_KEY)
#define RD_ENV_KEYS            RD_ENV_OWN_KEYS RD_ENV_SHARED_ROWS(RD_ENV_KEY)

#define RD_EMBEDDED_MAX 23 /* longer Strings of the same bytes share them (copy-on-write) */

void rd_env_cache_init(rd_binding *binding);

/* The template of this authority and peer. It is shared, so dup it. */
VALUE rd_env_template(rd_call *call);

/* For requests whose header section is known. Find: the template, or nil. Is new: whether this peer
 * sends the section for the first time. Keep: keeps a template. */
VALUE rd_env_section_find(const rd_call *call);
bool rd_env_section_is_new(const rd_call *call);
void rd_env_section_keep(const rd_call *call, VALUE template);

/* Puts the request's own values, and copies of the header fields, in place of the template's. */
void rd_env_fill(rd_call *call, const VALUE own[RD_ENV_OWN_COUNT], bool copy_headers);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The addresses in an env: SERVER_*, REMOTE_ADDR, the scheme. With the GVL.
 */
#ifndef RD_RACK_ENV_PLACE_H
#define RD_RACK_ENV_PLACE_H

#include "rack/rb_call.h"

/* Makes the base templates, of plain and of secure connections. */
void rd_env_place_init(rd_binding *binding);

/* A base template with the values that the keys of both caches stand for: SERVER_*, REMOTE_ADDR,
 * the scheme, the version. */
VALUE rd_env_new_template(rd_call *call);

/* Sets what a trusted proxy says about the client. */
void rd_env_set_forwarded(rd_call *call);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The env of a request. With the GVL.
 */
#ifndef RD_RACK_ENV_H
#define RD_RACK_ENV_H

#include "rack/rb_call.h"

void rd_env_init(rd_binding *binding);

/* A new Hash, also in call->env. */
VALUE rd_env_build(rd_call *call);

#endif

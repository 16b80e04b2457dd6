/* SPDX-License-Identifier: MIT
 *
 * From a response to an upgraded connection. On the thread of the call.
 */
#ifndef RD_APP_UPGRADE_H
#define RD_APP_UPGRADE_H

#include "rack/rb_call.h"

/* The application may have set rack.upgrade. True: the connection is the handler's, or nobody's;
 * false: answer as usual, with a response that may be another one now. */
bool rd_upgrade(rd_call *call);

/* Env has as many keys as it came with, and the status is one: then there is nothing to upgrade. */
static inline bool rd_may_upgrade(const rd_call *call) {
    return call->upgrade != NULL || RHASH_SIZE(call->env) != call->env_size ||
           (FIXNUM_P(call->answer.status) && FIX2LONG(call->answer.status) < 100);
}

#endif

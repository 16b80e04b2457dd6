/* SPDX-License-Identifier: MIT
 *
 * From a response to an upgraded connection. On the thread of the call.
 */
#ifndef RD_APP_UPGRADE_H
#define RD_APP_UPGRADE_H

#include "rack/rb_call.h"

/* Upgrades the connection if the application has set rack.upgrade or upgrade.tcp. True: the handler
 * has the connection, or the client is gone. False: answer as usual; the response may be another
 * one. */
bool rd_upgrade(rd_call *call);

/* False: the connection cannot be upgraded, the application has added no key to env, and the status
 * is valid. Then rack.upgrade need not be looked up. */
static inline bool rd_may_upgrade(const rd_call *call) {
    return call->upgrade != NULL || RHASH_SIZE(call->env) != call->env_size ||
           (FIXNUM_P(call->answer.status) && FIX2LONG(call->answer.status) < 100);
}

#endif

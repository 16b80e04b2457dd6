/* SPDX-License-Identifier: MIT
 *
 * Waiting inside an application call until `satisfied` is true, which is called under the lock. On
 * another thread than the call's, the call may be over afterwards. With the GVL; may raise.
 */
#ifndef RD_BINDING_WAIT_H
#define RD_BINDING_WAIT_H

#include "binding/rb_binding.h"

typedef bool (*rd_satisfied)(const rd_request *request);

/* Whether the client is still there. */
bool rd_wait_until(rd_binding *binding, rd_request *request, rd_satisfied satisfied);

bool rd_has_drained(const rd_request *request);
bool rd_has_body(const rd_request *request);
bool rd_has_sent_all(const rd_request *request);

#endif

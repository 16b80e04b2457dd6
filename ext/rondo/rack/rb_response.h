/* SPDX-License-Identifier: MIT
 *
 * From [status, headers, body] to the responder. On the thread of the call.
 */
#ifndef RD_RACK_RESPONSE_H
#define RD_RACK_RESPONSE_H

#include "rack/rb_call.h"

/* Answers with call->answer. Raises ResponseError, and what the application raises. */
void rd_respond(rd_call *call);

#endif

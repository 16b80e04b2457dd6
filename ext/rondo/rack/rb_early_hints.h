/* SPDX-License-Identifier: MIT
 *
 * rack.early_hints: 103 responses before the answer (RFC 8297). On the thread of the call.
 */
#ifndef RD_RACK_EARLY_HINTS_H
#define RD_RACK_EARLY_HINTS_H

#include "rack/rb_call.h"

/* The callable for the call that this rack.hijack belongs to. */
VALUE rd_early_hints_new(VALUE connection);

#endif

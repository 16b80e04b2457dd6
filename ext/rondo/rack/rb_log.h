/* SPDX-License-Identifier: MIT
 *
 * The request log: lines of a turn, gathered and written with one call. With the GVL.
 */
#ifndef RD_RACK_LOG_H
#define RD_RACK_LOG_H

#include "rack/rb_call.h"

void rd_log_request(rd_call *call);

/* Writes what is gathered. Raises what is meant for the thread. */
void rd_log_flush(rd_binding *binding);

#endif

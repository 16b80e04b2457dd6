/* SPDX-License-Identifier: MIT
 *
 * The request log: the lines of a turn, written with one call. With the GVL.
 */
#ifndef RD_RACK_LOG_H
#define RD_RACK_LOG_H

#include "rack/rb_call.h"

void rd_log_request(rd_call *call);

/* Writes the collected lines. Raises only what is meant for the thread. */
void rd_log_flush(rd_binding *binding);

#endif

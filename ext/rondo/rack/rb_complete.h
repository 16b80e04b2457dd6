/* SPDX-License-Identifier: MIT
 *
 * The end of a request, when its answer is finished. With the GVL.
 */
#ifndef RD_RACK_COMPLETE_H
#define RD_RACK_COMPLETE_H

#include "rack/rb_call.h"

/* Runs the callables in rack.response_finished, writes the log line, detaches the input. */
void rd_complete(rd_call *call);

/* The same, then gives back the reference to the request. */
void rd_complete_and_unref(rd_call *call);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Rondo::Stream, the argument of a streaming body's call. With the GVL.
 */
#ifndef RD_RACK_STREAM_H
#define RD_RACK_STREAM_H

#include "rack/rb_call.h"

void rd_init_stream(VALUE rondo);
VALUE rd_stream_new(rd_call *call);

/* The body's call returned or raised. Closes the stream, or leaves it to the code that kept it. */
void rd_stream_after_call(rd_call *call);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Bodies that give their parts by `each`. On the thread of the call.
 */
#ifndef RD_RACK_EACH_H
#define RD_RACK_EACH_H

#include "rack/rb_call.h"

/* Sends what the body's `each` yields, until the body ends or the client leaves. */
void rd_send_each(rd_call *call);

#endif

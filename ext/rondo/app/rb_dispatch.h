/* SPDX-License-Identifier: MIT
 *
 * Calls the application and answers. On an application thread.
 */
#ifndef RD_APP_DISPATCH_H
#define RD_APP_DISPATCH_H

#include "rack/rb_call.h"

/* Takes the next request of the batch and gives back `before`. False: the batch is over. */
bool rd_call_begin(rd_call *call, rd_visit *visit, rd_request *before);

/* Calls the application and answers. Returns the request to give back, or NULL if a stream
 * continues the answer. */
rd_request *rd_call_run(rd_call *call);

#endif

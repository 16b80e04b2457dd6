/* SPDX-License-Identifier: MIT
 *
 * X-Request-Start (or X-Queue-Start), in which a proxy says when it got the request: "t=" or not,
 * then seconds, milliseconds or microseconds since the epoch, with or without a fraction; which of
 * them it is shows in the size of the number. Pure functions; any thread.
 */
#ifndef RD_HTTP_REQUEST_START_H
#define RD_HTTP_REQUEST_START_H

#include <stdint.h>

#include "base/slice.h"

/* Microseconds since the epoch; -1 when it is no such time. */
int64_t rd_request_start_us(rd_slice value);

#endif

/* SPDX-License-Identifier: MIT
 *
 * X-Request-Start (or X-Queue-Start): when a proxy got the request. The value is "t=" or not, then
 * seconds, milliseconds or microseconds since the epoch, with or without a fraction. The size of
 * the number shows which of them it is. Pure functions; any thread.
 */
#ifndef RD_REQUEST_REQUEST_START_H
#define RD_REQUEST_REQUEST_START_H

#include <stdint.h>

#include "base/slice.h"

/* Microseconds since the epoch; -1 when the value is not such a time. */
int64_t rd_request_start_us(rd_slice value);

#endif

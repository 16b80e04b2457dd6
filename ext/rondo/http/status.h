/* SPDX-License-Identifier: MIT
 *
 * Status codes: their reason phrases and ready-made status lines. Any thread.
 */
#ifndef RD_HTTP_STATUS_H
#define RD_HTTP_STATUS_H

#include <stdbool.h>

#include "base/slice.h"

#define RD_STATUS_LINE_MAX 64

/* "HTTP/1.1 200 OK\r\n", ready for the wire. `room` is used for codes without a ready-made line. */
rd_slice rd_status_line(int status, char room[RD_STATUS_LINE_MAX]);

/* Whether a response of this status can have a body (RFC 9110 section 6.4.1). */
bool rd_status_has_body(int status);

#endif

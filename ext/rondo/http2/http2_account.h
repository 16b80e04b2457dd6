/* SPDX-License-Identifier: MIT
 *
 * What a client of HTTP/2 may spend on frames that bring no request closer to its answer: so many
 * at once, and so many a second. It looks at the headers of frames as they come, because the
 * library does not tell of frames that it ignores. Knows neither library nor connection.
 */
#ifndef RD_HTTP2_HTTP2_ACCOUNT_H
#define RD_HTTP2_HTTP2_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RD_HTTP2_HEADER_LEN 9 /* of a frame: RFC 9113, section 4.1 */

typedef struct rd_http2_account {
    uint64_t since_ms; /* when `points` was right */
    uint32_t points;   /* that are left */
    uint32_t skip;     /* bytes until the next header of a frame */
    uint8_t header[RD_HTTP2_HEADER_LEN];
    uint8_t header_len; /* bytes of it that have come */
} rd_http2_account;

void rd_http2_account_init(rd_http2_account *account, uint64_t now_ms);

/* Takes a point. False: none is left. */
bool rd_http2_account_charge(rd_http2_account *account, uint64_t now_ms);

/* Looks at bytes that came from the client, and takes a point for each frame that carries nothing.
 * False: the points did not suffice. */
bool rd_http2_account_read(rd_http2_account *account, uint64_t now_ms, const char *bytes,
                           size_t len);

#endif

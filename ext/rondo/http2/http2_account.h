/* SPDX-License-Identifier: MIT
 *
 * What a client of HTTP/2 may spend on frames that bring no request closer to its answer: so many
 * at once, and so many a second. Knows neither library nor connection.
 */
#ifndef RD_HTTP2_HTTP2_ACCOUNT_H
#define RD_HTTP2_HTTP2_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rd_http2_account {
    uint64_t since_ms; /* when `points` was right */
    uint32_t points;   /* that are left */
} rd_http2_account;

void rd_http2_account_init(rd_http2_account *account, uint64_t now_ms);

/* Takes a point. False: none is left. */
bool rd_http2_account_charge(rd_http2_account *account, uint64_t now_ms);

/* Gives one back. */
void rd_http2_account_refund(rd_http2_account *account);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The account of a client of HTTP/2; see http2_account.h.
 */
#include "http2/http2_account.h"

#define POINTS       1000
#define POINTS_PER_S 33

void rd_http2_account_init(rd_http2_account *account, uint64_t now_ms) {
    *account = (rd_http2_account){.since_ms = now_ms, .points = POINTS};
}

/* Time that does not yet make a point counts later. */
static void refill(rd_http2_account *account, uint64_t now_ms) {
    const uint64_t more = (now_ms - account->since_ms) * POINTS_PER_S / 1000;
    if (account->points + more >= POINTS) {
        account->points = POINTS;
        account->since_ms = now_ms;
    } else if (more > 0) {
        account->points += (uint32_t)more;
        account->since_ms += more * 1000 / POINTS_PER_S;
    }
}

bool rd_http2_account_charge(rd_http2_account *account, uint64_t now_ms) {
    refill(account, now_ms);
    if (account->points == 0) return false;
    account->points--;
    return true;
}

void rd_http2_account_refund(rd_http2_account *account) {
    if (account->points < POINTS) account->points++;
}

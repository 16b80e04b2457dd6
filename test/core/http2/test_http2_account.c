/* SPDX-License-Identifier: MIT
 *
 * http2/http2_account: points run out, and come back.
 */
#include "check.h"

#include "http2/http2_account.h"

enum { NOW = 1000 };

static void test_points_run_out(void) {
    rd_http2_account account;
    rd_http2_account_init(&account, NOW);
    int taken = 0;
    while (taken < 2000 && rd_http2_account_charge(&account, NOW)) taken++;
    CHECK_INT(taken, 1000);
    CHECK(!rd_http2_account_charge(&account, NOW + 30));
    CHECK(rd_http2_account_charge(&account, NOW + 31));
    CHECK(!rd_http2_account_charge(&account, NOW + 31));
    /* Time that did not make a point counts with what follows. */
    taken = 0;
    for (uint64_t ms = 32; ms <= 1031; ms++) taken += rd_http2_account_charge(&account, NOW + ms);
    CHECK(taken >= 32 && taken <= 33);
    taken = 0;
    while (taken < 2000 && rd_http2_account_charge(&account, NOW + 1000000)) taken++;
    CHECK_INT(taken, 1000);
}

static void test_refund(void) {
    rd_http2_account account;
    rd_http2_account_init(&account, NOW);
    rd_http2_account_refund(&account); /* never more than all */
    int taken = 0;
    while (taken < 2000 && rd_http2_account_charge(&account, NOW)) taken++;
    CHECK_INT(taken, 1000);
    rd_http2_account_refund(&account);
    CHECK(rd_http2_account_charge(&account, NOW));
    CHECK(!rd_http2_account_charge(&account, NOW));
}

int main(void) {
    test_points_run_out();
    test_refund();
    return check_summary();
}

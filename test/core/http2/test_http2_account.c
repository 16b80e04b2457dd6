/* SPDX-License-Identifier: MIT
 *
 * http2/http2_account: which frames cost a point, wherever the bytes are cut, and how points come
 * back.
 */
#include "check.h"

#include "http2/http2_account.h"

enum { PREFACE_LEN = 24, NOW = 1000 };

static char bytes[1 << 16];
static size_t len;

static void begin(void) {
    memset(bytes, 'x', PREFACE_LEN);
    len = PREFACE_LEN;
}

static void put(unsigned type, unsigned flags, size_t payload) {
    const char header[RD_HTTP2_HEADER_LEN] = {(char)(payload >> 16), (char)(payload >> 8),
                                              (char)payload, (char)type, (char)flags};
    memcpy(bytes + len, header, sizeof(header));
    memset(bytes + len + sizeof(header), 2, payload);
    len += sizeof(header) + payload;
}

/* How many points the bytes cost, in pieces of this size. */
static uint32_t cost(size_t piece) {
    rd_http2_account account;
    rd_http2_account_init(&account, NOW);
    const uint32_t before = account.points;
    for (size_t at = 0; at < len; at += piece) {
        CHECK(
            rd_http2_account_read(&account, NOW, bytes + at, len - at < piece ? len - at : piece));
    }
    return before - account.points;
}

static void check_cost(uint32_t expected) {
    for (size_t piece = 1; piece <= len; piece++) CHECK_INT(cost(piece), expected);
}

static void test_which_cost(void) {
    begin();
    check_cost(0);
    put(0, 0, 5);  /* DATA */
    put(0, 1, 0);  /* its end */
    put(1, 4, 10); /* HEADERS */
    put(8, 0, 4);  /* WINDOW_UPDATE */
    check_cost(0);
    put(0, 0, 0); /* DATA without any */
    check_cost(1);
    put(2, 0, 5);     /* PRIORITY */
    put(3, 0, 4);     /* RST_STREAM */
    put(4, 0, 6);     /* SETTINGS */
    put(6, 0, 8);     /* PING */
    put(9, 0, 0);     /* CONTINUATION */
    put(0x10, 0, 5);  /* PRIORITY_UPDATE */
    put(0xee, 0, 70); /* an unknown one */
    put(0, 0, 1);
    check_cost(8);
}

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

int main(void) {
    test_which_cost();
    test_points_run_out();
    return check_summary();
}

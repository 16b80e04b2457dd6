/* SPDX-License-Identifier: MIT
 *
 * The account of a client of HTTP/2; see http2_account.h.
 */
#include "http2/http2_account.h"

#include <string.h>

#define POINTS        1000
#define POINTS_PER_S  33
#define PREFACE_BYTES 24

/* Types of frames and flags: RFC 9113, section 6. */
enum { DATA = 0, HEADERS = 1, WINDOW_UPDATE = 8, END_STREAM = 1 };

void rd_http2_account_init(rd_http2_account *account, uint64_t now_ms) {
    *account = (rd_http2_account){.since_ms = now_ms, .points = POINTS, .skip = PREFACE_BYTES};
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

static uint32_t length_of(const uint8_t *header) {
    return (uint32_t)header[0] << 16 | (uint32_t)header[1] << 8 | header[2];
}

/* A WINDOW_UPDATE is worth something or not by what is in it. A client that has much to say needs a
 * few CONTINUATIONs, but not many. */
static bool carries_nothing(const uint8_t *header) {
    switch (header[3]) {
    case HEADERS:
    case WINDOW_UPDATE:
        return false;
    case DATA:
        return length_of(header) == 0 && (header[4] & END_STREAM) == 0;
    default:
        return true;
    }
}

static size_t skip(rd_http2_account *account, size_t len) {
    const size_t part = account->skip < len ? account->skip : len;
    account->skip -= (uint32_t)part;
    return part;
}

static size_t read_header(rd_http2_account *account, const char *bytes, size_t len) {
    const size_t missing = RD_HTTP2_HEADER_LEN - account->header_len;
    const size_t part = missing < len ? missing : len;
    memcpy(account->header + account->header_len, bytes, part);
    account->header_len = (uint8_t)(account->header_len + part);
    return part;
}

bool rd_http2_account_read(rd_http2_account *account, uint64_t now_ms, const char *bytes,
                           size_t len) {
    bool suffices = true;
    for (size_t at = skip(account, len); at < len; at += skip(account, len - at)) {
        at += read_header(account, bytes + at, len - at);
        if (account->header_len < RD_HTTP2_HEADER_LEN) break;
        account->header_len = 0;
        account->skip = length_of(account->header);
        if (carries_nothing(account->header) && !rd_http2_account_charge(account, now_ms)) {
            suffices = false;
        }
    }
    return suffices;
}

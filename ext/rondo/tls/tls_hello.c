/* SPDX-License-Identifier: MIT
 *
 * Records (RFC 8446, section 5.1) and the head of a handshake message (section 4); see tls_hello.h.
 */
#include "tls/tls_hello.h"

#include <stdbool.h>

#include "base/error.h"

#define RECORD_HEAD      5
#define RECORD_MAX       16384
#define HANDSHAKE_RECORD 22
#define CLIENT_HELLO     1

static uint32_t number(const unsigned char *bytes, unsigned count) {
    uint32_t value = 0;
    for (unsigned i = 0; i < count; i++) value = value << 8 | bytes[i];
    return value;
}

static void take_part(rd_tls_hello *hello, const unsigned char *part, uint32_t len) {
    for (uint32_t i = 0; i < len && hello->got + i < sizeof(hello->head); i++) {
        hello->head[hello->got + i] = part[i];
    }
    hello->got += len;
}

/* What the parts of the message say so far: as rd_tls_hello_scan(). */
static int judge(const rd_tls_hello *hello) {
    if (hello->got < sizeof(hello->head)) return 0;
    if (hello->head[0] != CLIENT_HELLO) return 1;
    const uint32_t whole = (uint32_t)sizeof(hello->head) + number(hello->head + 1, 3);
    if (whole > RD_TLS_HANDSHAKE_MAX) return RD_ERR_TLS_TOO_LONG;
    return hello->got >= whole;
}

int rd_tls_hello_scan(rd_tls_hello *hello, rd_slice came) {
    int result = judge(hello);
    while (result == 0 && hello->at < came.len) {
        const unsigned char *record = (const unsigned char *)came.ptr + hello->at;
        const size_t left = came.len - hello->at;
        if (record[0] != HANDSHAKE_RECORD) return 1;
        if (left < RECORD_HEAD) break;
        const uint32_t len = number(record + 3, 2);
        if (len == 0 || len > RECORD_MAX) return 1;
        if (left < RECORD_HEAD + len) break;
        take_part(hello, record + RECORD_HEAD, len);
        hello->at += RECORD_HEAD + len;
        result = judge(hello);
    }
    if (result == 0 && came.len >= RD_TLS_HANDSHAKE_MAX) return RD_ERR_TLS_TOO_LONG;
    return result;
}

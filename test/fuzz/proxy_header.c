/* SPDX-License-Identifier: MIT
 *
 * PROXY headers. Holds: no crash; an answer for some bytes stays the answer when more follow; more
 * is asked for only below the maxima.
 */
#include "fuzz.h"
#include "protocol/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    rd_proxy_header whole, piece;
    char *buf;
    int rc, answer = 0;

    if (len > 256) return 0;
    buf = fuzz_copy(bytes, len);
    rc = rd_proxy_header_parse(buf, len, &whole);
    free(buf);
    FUZZ_CHECK(rc <= (int)len);
    for (size_t i = 0; i <= len && answer == 0; i++) {
        buf = fuzz_copy(bytes, i);
        answer = rd_proxy_header_parse(buf, i, &piece);
        free(buf);
        FUZZ_CHECK(answer <= (int)i);
    }
    FUZZ_CHECK(answer == rc);
    if (rc > 0) FUZZ_CHECK(memcmp(&whole, &piece, sizeof whole) == 0);
    if (len > RD_PROXY_V1_MAX && bytes[0] == 'P') FUZZ_CHECK(rc != 0);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Answers to forwarded requests. First byte: how many bytes at a time, and whether they answer a
 * HEAD. Holds: no crash; any cutting gives the same end at the same byte, with the same heads and
 * the same body.
 */
#include "fuzz.h"
#include "read_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (len < 2 || len > 8192) return 0;
    const char *buf = (const char *)bytes + 1;
    const bool to_head = bytes[0] & 0x80;
    const size_t step = (bytes[0] & 0x0f) + 1u;
    len--;
    read_reply whole = read_reply_in_pieces(buf, len, to_head, len, 1);
    read_reply pieces = read_reply_in_pieces(buf, len, to_head, step, step);
    FUZZ_CHECK(whole.rc == pieces.rc);
    if (whole.rc >= 0) {
        FUZZ_CHECK(whole.used == pieces.used && whole.len == pieces.len);
        FUZZ_CHECK(memcmp(whole.text, pieces.text, whole.len) == 0);
    }
    free(whole.text);
    free(pieces.text);
    return 0;
}

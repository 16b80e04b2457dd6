/* SPDX-License-Identifier: MIT
 *
 * The answer to the handshake of an outgoing WebSocket. First byte: what was offered. Holds: no
 * crash; what is said of the whole is said as soon as the bytes that decide it are there, and never
 * before; what is good has only what was offered.
 */
#include "fuzz.h"
#include "endpoint/websocket_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    rd_ws_answer answer, part;
    if (len < 1 || len > 4096) return 0;
    rd_ws_call call = {.protocols = bytes[0] & 1 ? RD_SLICE("one, two") : RD_SLICE(""),
                       .deflates = (bytes[0] & 2) != 0};
    rd_ws_call_set_key(&call, (const uint8_t *)"the sample nonce");
    char *whole = fuzz_copy(bytes + 1, len - 1);
    const int result = rd_ws_answer_read(&call, whole, len - 1, &answer);
    FUZZ_CHECK(result <= (int)len - 1);
    FUZZ_CHECK(result <= 0 || answer.subprotocol <= (bytes[0] & 1 ? 2 : 0));
    FUZZ_CHECK(answer.window_bits == 0 || call.deflates);
    FUZZ_CHECK(result <= 0 || answer.status == 101);
    bool is_decided = false;
    for (size_t cut = 0; cut < len; cut++) {
        char *copy = fuzz_copy(whole, cut);
        const int early = rd_ws_answer_read(&call, copy, cut, &part);
        FUZZ_CHECK(early == 0 || early == result);
        FUZZ_CHECK(!is_decided || early == result);
        is_decided = early != 0;
        free(copy);
    }
    free(whole);
    return 0;
}

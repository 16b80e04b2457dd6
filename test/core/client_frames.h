/* SPDX-License-Identifier: MIT
 *
 * WebSocket frames as a client sends them, for tests: masked, lengths as short as they can be.
 */
#ifndef CLIENT_FRAMES_H
#define CLIENT_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* First bytes of headers: FIN, RSV1 and the opcode. */
enum {
    FIN = 0x80,
    RSV1 = 0x40,
    CONTINUATION = 0x0,
    TEXT = 0x1,
    BINARY = 0x2,
    CLOSE = 0x8,
    PING = 0x9,
    PONG = 0xa
};

enum { CLIENT_HEADER_MAX = 14 };

/*
 * Writes a frame whose header announces `announced` bytes and which has `len` of them, masked by
 * the bytes of `mask`. Returns how many bytes it wrote, CLIENT_HEADER_MAX + len at most.
 */
__attribute__((unused)) static size_t client_frame(char *frame, unsigned first, uint32_t mask,
                                                   const char *payload, size_t len,
                                                   uint64_t announced) {
    const unsigned extended = announced < 126 ? 0 : announced < 65536 ? 2 : 8;
    size_t at = 2;

    frame[0] = (char)first;
    frame[1] = (char)(0x80 | (extended == 0 ? announced : extended == 2 ? 126 : 127));
    for (unsigned i = extended; i > 0; i--) frame[at++] = (char)(announced >> (8 * (i - 1)));
    for (unsigned i = 4; i > 0; i--) frame[at++] = (char)(mask >> (8 * (i - 1)));
    for (size_t i = 0; i < len; i++) frame[at++] = payload[i] ^ (char)(mask >> (8 * (3 - i % 4)));
    return at;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * Three bytes are four letters; see base64.h.
 */
#include "http/base64.h"

#include <stdint.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int rd_base64_value(char letter) {
    const char *found = memchr(letters, letter, sizeof(letters) - 1);
    return found != NULL ? (int)(found - letters) : -1;
}

static void encode_group(const uint8_t *from, size_t part, char *text) {
    const uint32_t second = part > 1 ? from[1] : 0, third = part > 2 ? from[2] : 0;
    const uint32_t group = (uint32_t)from[0] << 16 | second << 8 | third;
    memset(text, '=', 4);
    for (size_t i = 0; i <= part; i++) text[i] = letters[group >> (18 - 6 * i) & 0x3f];
}

void rd_base64_encode(const void *bytes, size_t len, char *text) {
    const uint8_t *from = bytes;
    for (; len > 3; len -= 3, from += 3, text += 4) encode_group(from, 3, text);
    if (len > 0) encode_group(from, len, text);
}

ssize_t rd_base64_decode(rd_slice text, char *bytes, size_t room) {
    uint32_t bits = 0;
    unsigned count = 0;
    size_t len = 0;
    while (text.len > 0 && text.ptr[text.len - 1] == '=') text.len--;
    for (size_t i = 0; i < text.len; i++) {
        const int value = rd_base64_value(text.ptr[i]);
        if (value < 0) return -1;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count < 8) continue;
        if (len == room) return -1;
        count -= 8;
        bytes[len++] = (char)(bits >> count & 0xff);
    }
    return (ssize_t)len;
}

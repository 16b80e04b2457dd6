/* SPDX-License-Identifier: MIT
 *
 * SHA-1 (RFC 3174) of bytes that are all in memory. The WebSocket handshake uses it as a proof of
 * understanding, not for security. Do not use it for anything else: it is broken. Any thread.
 */
#ifndef RD_BASE_SHA1_H
#define RD_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { RD_SHA1_LEN = 20 };

void rd_sha1(const char *bytes, size_t len, uint8_t digest[RD_SHA1_LEN]);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Base64 (RFC 4648, section 4). Any thread.
 */
#ifndef RD_HTTP_BASE64_H
#define RD_HTTP_BASE64_H

#include <stddef.h>
#include <sys/types.h>

#include "base/slice.h"

#define RD_BASE64_LEN(bytes) (((bytes) + 2) / 3 * 4)

/* What the letter stands for, 0 to 63, or -1. */
int rd_base64_value(char letter);

/* Writes RD_BASE64_LEN(len) letters, padded with '='. No terminator. */
void rd_base64_encode(const void *bytes, size_t len, char *text);

/* Returns how many bytes were written; -1: other letters, or there is no room. The padding may be
 * missing. */
ssize_t rd_base64_decode(rd_slice text, char *bytes, size_t room);

#endif

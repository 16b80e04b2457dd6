/* SPDX-License-Identifier: MIT
 *
 * Frames of HTTP/2 as text, a line for each:
 *
 *   HEADERS 1 eh =:method GET|:path /p   type, stream, flags, payload
 *   DATA 1 - "text                       payloads: "text   #hexadecimal digits   %bytes, so many
 *   RAW #000000ee0000000001              bytes that need not be a frame
 *
 * Flags are letters: e END_STREAM or ACK, h END_HEADERS, p PADDED, y PRIORITY, r the reserved bit.
 * A stream "1*101" is so many frames on streams 1, 3, 5…; "1x9" is so many on the same. Fields are
 * literals; with + in front they enter the table of HPACK, and *62 is a field of the table. A value
 * "%100" is so many bytes long, "/%100" begins with a slash.
 */
#ifndef HTTP2_SCRIPT_H
#define HTTP2_SCRIPT_H

#include <ctype.h>
#include <stdlib.h>

#include "http2_peer.h"

/* ---- payloads ---- */

static unsigned script_digit(char c) {
    return (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

static void script_hex(wire *to, const char *hex, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (hex[i] == ' ') continue;
        const uint8_t byte = (uint8_t)(script_digit(hex[i]) << 4 | script_digit(hex[i + 1]));
        put(to, &byte, 1);
        i++;
    }
}

static void script_many(wire *to, const char *number) {
    const size_t len = strtoul(number, NULL, 10);
    if (!CHECK(to->len + len <= sizeof(to->bytes))) return;
    memset(to->bytes + to->len, 'x', len);
    to->len += len;
}

static void script_field(wire *to, const char *text, size_t len) {
    static wire value;
    value.len = 0;
    if (text[0] == '*') {
        const uint8_t index = (uint8_t)(0x80 | atoi(text + 1));
        put(to, &index, 1);
        return;
    }
    put(to, text[0] == '+' ? "\x40" : "\0", 1);
    const size_t skip = text[0] == '+';
    const char *blank = memchr(text, ' ', len);
    const size_t name_end = blank != NULL ? (size_t)(blank - text) : len;
    const char *many = blank != NULL ? blank + 1 + (blank[1] == '/') : "";
    if (*many == '%') {
        put(&value, blank + 1, (size_t)(many - blank - 1));
        script_many(&value, many + 1);
    } else if (blank != NULL) {
        put(&value, blank + 1, len - name_end - 1);
    }
    put_length(to, name_end - skip);
    put(to, text + skip, name_end - skip);
    put_length(to, value.len);
    put(to, value.bytes, value.len);
}

static void script_fields(wire *to, const char *text, size_t len) {
    const char *end = text + len;
    while (text < end) {
        const char *bar = memchr(text, '|', (size_t)(end - text));
        const size_t part = (size_t)((bar != NULL ? bar : end) - text);
        script_field(to, text, part);
        text += part + 1;
    }
}

static void script_payload(wire *to, const char *text, size_t len) {
    if (len == 0) return;
    if (text[0] == '#') {
        script_hex(to, text + 1, len - 1);
    } else if (text[0] == '%') {
        script_many(to, text + 1);
    } else if (text[0] == '=') {
        script_fields(to, text + 1, len - 1);
    } else if (CHECK(text[0] == '"')) {
        put(to, text + 1, len - 1);
    }
}

/* ---- frames ---- */

static unsigned script_type(const char *name) {
    static const char *const names[] = {"DATA",    "HEADERS", "PRIORITY", "RST",    "SETTINGS",
                                        "PROMISE", "PING",    "GOAWAY",   "WINDOW", "CONT"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) return i;
    }
    if (strcmp(name, "PRIORITY_UPDATE") == 0) return NGHTTP2_PRIORITY_UPDATE;
    CHECK_SAYS(strcmp(name, "UNKNOWN") == 0, "%s", name);
    return 0xee;
}

static unsigned script_flags(const char *letters) {
    unsigned flags = 0;
    for (; *letters != '\0'; letters++) {
        if (*letters == 'e') flags |= NGHTTP2_FLAG_END_STREAM;
        if (*letters == 'h') flags |= NGHTTP2_FLAG_END_HEADERS;
        if (*letters == 'p') flags |= NGHTTP2_FLAG_PADDED;
        if (*letters == 'y') flags |= NGHTTP2_FLAG_PRIORITY;
    }
    return flags;
}

/* One line without its end. */
static void script_line(wire *to, const char *line, size_t len) {
    static wire payload;
    char name[32] = "", stream[32] = "", flags[16] = "", *rest;
    int used = 0;
    if (len > 4 && memcmp(line, "RAW ", 4) == 0) {
        script_payload(to, line + 4, len - 4);
        return;
    }
    CHECK_SAYS(sscanf(line, "%31s %31s %15s%n", name, stream, flags, &used) == 3, "%.*s", (int)len,
               line);
    const char *text = line + used + 1;
    const size_t text_len = (size_t)used + 1 < len ? len - (size_t)used - 1 : 0;
    payload.len = 0;
    script_payload(&payload, text, text_len);
    uint32_t id = (uint32_t)strtoul(stream, &rest, 10);
    if (strchr(flags, 'r') != NULL) id |= 0x80000000U;
    const long count = *rest != '\0' ? strtol(rest + 1, NULL, 10) : 1;
    for (long i = 0; i < count; i++) {
        put_frame(to, script_type(name), script_flags(flags), id, payload.bytes, payload.len);
        if (*rest == '*') id += 2;
    }
}

/* ---- what is expected ---- */

/* By name, without _ERROR. */
__attribute__((unused)) static int64_t script_code(const char *name) {
    char whole[64];
    for (uint32_t code = 0; code <= NGHTTP2_HTTP_1_1_REQUIRED; code++) {
        const char *known = nghttp2_http2_strerror(code);
        snprintf(whole, sizeof(whole), "%s_ERROR", name);
        if (strcmp(known, name) == 0 || strcmp(known, whole) == 0) return code;
    }
    CHECK_SAYS(false, "no error %s", name);
    return NO_CODE;
}

#endif

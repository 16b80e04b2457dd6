/* SPDX-License-Identifier: MIT
 *
 * Writes the request, and reads the answer line by line; see websocket_call.h.
 */
#include "endpoint/websocket_call.h"

#include <string.h>

#include "base/error.h"
#include "endpoint/websocket_handshake.h"
#include "http/field.h"

/* ---- the request ---- */

/* Base64 (RFC 4648, section 4) of a number of bytes that is one more than a multiple of three: two
 * '='. */
void rd_ws_call_set_key(rd_ws_call *call, const uint8_t bytes[RD_WS_KEY_BYTES]) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = call->key;
    for (size_t at = 0; at < RD_WS_KEY_BYTES; at += 3) {
        const unsigned second = at + 1 < RD_WS_KEY_BYTES ? bytes[at + 1] : 0;
        const unsigned third = at + 2 < RD_WS_KEY_BYTES ? bytes[at + 2] : 0;
        const unsigned group = (unsigned)bytes[at] << 16 | second << 8 | third;
        *text++ = letters[group >> 18];
        *text++ = letters[group >> 12 & 0x3f];
        *text++ = letters[group >> 6 & 0x3f];
        *text++ = letters[group & 0x3f];
    }
    memcpy(call->key + RD_WS_KEY_LEN - 2, "==", 2);
}

static void add(rd_buffer *out, rd_slice text) {
    rd_buffer_append(out, text.ptr, text.len);
}

static void add_field(rd_buffer *out, rd_slice name, rd_slice value) {
    add(out, name);
    add(out, RD_SLICE(": "));
    add(out, value);
    add(out, RD_SLICE("\r\n"));
}

void rd_ws_call_write(const rd_ws_call *call, rd_buffer *out) {
    add(out, RD_SLICE("GET "));
    add(out, call->target);
    add(out, RD_SLICE(" HTTP/1.1\r\n"));
    add_field(out, RD_SLICE("Host"), call->host);
    add(out,
        RD_SLICE("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"));
    add_field(out, RD_SLICE("Sec-WebSocket-Key"), rd_slice_of(call->key, RD_WS_KEY_LEN));
    if (call->protocols.len > 0) {
        add_field(out, RD_SLICE("Sec-WebSocket-Protocol"), call->protocols);
    }
    if (call->deflates) {
        add_field(out, RD_SLICE("Sec-WebSocket-Extensions"), RD_SLICE(RD_WS_EXTENSION_OFFER));
    }
    add(out, call->fields);
    add(out, RD_SLICE("\r\n"));
}

/* ---- the answer ---- */

/* Which fields have been seen, and whether they are what they have to be. */
typedef struct rd_ws_reading {
    const rd_ws_call *call;
    rd_ws_answer *answer;
    unsigned fields;
    bool is_upgrade, is_connection, has_accept, has_protocol, has_extension;
} rd_ws_reading;

/* HTTP/1.1 SP three digits, then a blank or the end. */
static int read_status(rd_slice line, rd_ws_answer *answer) {
    static const char version[] = "HTTP/1.1 ";
    const size_t at = sizeof(version) - 1;
    int status = 0;
    if (line.len < at + 3 || memcmp(line.ptr, version, at) != 0) return RD_ERR_WS_ANSWER;
    for (size_t i = at; i < at + 3; i++) {
        if (line.ptr[i] < '0' || line.ptr[i] > '9') return RD_ERR_WS_ANSWER;
        status = 10 * status + (line.ptr[i] - '0');
    }
    if (status < 100 || (line.len > at + 3 && line.ptr[at + 3] != ' ')) return RD_ERR_WS_ANSWER;
    answer->status = status;
    return status == 101 ? 0 : RD_ERR_WS_ANSWER_STATUS;
}

static bool has_element(rd_slice list, rd_slice word) {
    rd_slice element;
    while (rd_field_next_element(&list, &element)) {
        if (rd_field_is_word(element, word)) return true;
    }
    return false;
}

static int take_accept(rd_ws_reading *reading, rd_slice value) {
    char expected[RD_WS_ACCEPT_LEN];
    rd_ws_handshake_accept(rd_slice_of(reading->call->key, RD_WS_KEY_LEN), expected);
    const bool is_good = rd_slice_equal(value, rd_slice_of(expected, sizeof(expected)));
    if (!is_good || reading->has_accept) return RD_ERR_WS_ANSWER_KEY;
    reading->has_accept = true;
    return 0;
}

/* From 1 on; 0: it was not offered. */
static unsigned place_of(rd_slice offered, rd_slice name) {
    rd_slice element;
    for (unsigned place = 1; rd_field_next_element(&offered, &element); place++) {
        if (rd_slice_equal(element, name)) return place;
    }
    return 0;
}

static int take_protocol(rd_ws_reading *reading, rd_slice value) {
    const unsigned place = value.len > 0 ? place_of(reading->call->protocols, value) : 0;
    if (place == 0 || reading->has_protocol) return RD_ERR_WS_ANSWER_PROTOCOL;
    reading->has_protocol = true;
    reading->answer->subprotocol = (uint8_t)place;
    return 0;
}

static int take_extension(rd_ws_reading *reading, rd_slice value) {
    const bool is_good = reading->call->deflates && rd_ws_extension_is_agreed(value);
    if (!is_good || reading->has_extension) return RD_ERR_WS_ANSWER_EXTENSION;
    reading->has_extension = true;
    reading->answer->window_bits = RD_WS_WINDOW_MAX;
    return 0;
}

static int take_field(rd_ws_reading *reading, rd_slice name, rd_slice value) {
    if (rd_field_is_word(name, RD_SLICE("upgrade"))) {
        if (!rd_field_is_word(value, RD_SLICE("websocket"))) return RD_ERR_WS_ANSWER_UPGRADE;
        reading->is_upgrade = true;
    } else if (rd_field_is_word(name, RD_SLICE("connection"))) {
        reading->is_connection |= has_element(value, RD_SLICE("upgrade"));
    } else if (rd_field_is_word(name, RD_SLICE("sec-websocket-accept"))) {
        return take_accept(reading, value);
    } else if (rd_field_is_word(name, RD_SLICE("sec-websocket-protocol"))) {
        return take_protocol(reading, value);
    } else if (rd_field_is_word(name, RD_SLICE("sec-websocket-extensions"))) {
        return take_extension(reading, value);
    }
    return 0;
}

static bool is_name(rd_slice name) {
    for (size_t i = 0; i < name.len; i++) {
        if (rd_field_name_bytes[(unsigned char)name.ptr[i]] == 0) return false;
    }
    return name.len > 0;
}

static bool is_value(rd_slice value) {
    for (size_t i = 0; i < value.len; i++) {
        const unsigned char byte = (unsigned char)value.ptr[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f) return false;
    }
    return true;
}

/* A line that begins with a blank goes on with the last one (RFC 9112, section 5.2): it has no name
 * and is refused. */
static int read_field(rd_ws_reading *reading, rd_slice line) {
    const char *colon = memchr(line.ptr, ':', line.len);
    if (colon == NULL || ++reading->fields > RD_WS_ANSWER_FIELDS_MAX) return RD_ERR_WS_ANSWER;
    const rd_slice name = rd_slice_of(line.ptr, (size_t)(colon - line.ptr));
    const rd_slice value = rd_field_trim(rd_slice_of(colon + 1, line.len - name.len - 1));
    if (!is_name(name) || !is_value(value)) return RD_ERR_WS_ANSWER;
    return take_field(reading, name, value);
}

static int check_all(const rd_ws_reading *reading) {
    if (!reading->is_upgrade || !reading->is_connection) return RD_ERR_WS_ANSWER_UPGRADE;
    return reading->has_accept ? 1 : RD_ERR_WS_ANSWER_KEY;
}

/* Returns 1 behind the empty line, 0 if there are more lines, RD_ERR_*. */
static int read_line(rd_ws_reading *reading, rd_slice line) {
    if (!is_value(line)) return RD_ERR_WS_ANSWER;
    if (reading->answer->status == 0) return read_status(line, reading->answer);
    return line.len == 0 ? check_all(reading) : read_field(reading, line);
}

/* The head is short, so each call reads it from the beginning. */
int rd_ws_answer_read(const rd_ws_call *call, const char *bytes, size_t len, rd_ws_answer *answer) {
    *answer = (rd_ws_answer){0};
    rd_ws_reading reading = {.call = call, .answer = answer};
    const char *end = bytes + len, *at = bytes, *stop;
    while ((stop = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        if (stop == at || stop[-1] != '\r') return RD_ERR_WS_ANSWER;
        const int result = read_line(&reading, rd_slice_of(at, (size_t)(stop - 1 - at)));
        at = stop + 1;
        if (at - bytes > RD_WS_ANSWER_MAX) return RD_ERR_WS_ANSWER_LONG;
        if (result != 0) return result < 0 ? result : (int)(at - bytes);
    }
    return len >= RD_WS_ANSWER_MAX ? RD_ERR_WS_ANSWER_LONG : 0;
}

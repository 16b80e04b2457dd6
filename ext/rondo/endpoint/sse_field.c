/* SPDX-License-Identifier: MIT
 *
 * The lines of an event; see sse_field.h.
 */
#include "endpoint/sse_field.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/utf8.h"
#include "pubsub/message.h"

/* ---- writing ---- */

static size_t find(rd_slice text, size_t at, char byte) {
    const char *found = at < text.len ? memchr(text.ptr + at, byte, text.len - at) : NULL;
    return found != NULL ? (size_t)(found - text.ptr) : text.len;
}

static void put_line(rd_slice name, rd_slice value, rd_sse_put *put, void *to) {
    put(to, name.ptr, name.len);
    put(to, value.ptr, value.len);
    put(to, "\n", 1);
}

/* Searches ahead for the next CR and the next LF, and again only after passing one: linear. */
static void put_data(rd_slice data, rd_sse_put *put, void *to) {
    size_t at = 0, cr = find(data, 0, '\r'), lf = find(data, 0, '\n');
    for (;;) {
        size_t end = cr < lf ? cr : lf;
        put_line(RD_SLICE("data: "), rd_slice_of(data.ptr + at, end - at), put, to);
        if (end == data.len) return;
        at = end + 1;
        if (end == cr && lf == at && at < data.len) at++;
        if (cr < at) cr = find(data, at, '\r');
        if (lf < at) lf = find(data, at, '\n');
    }
}

/* Writes a space after each colon, because the client removes one. */
void rd_sse_write(const rd_named_event *event, rd_sse_put *put, void *to) {
    if (event->id.ptr != NULL) put_line(RD_SLICE("id: "), event->id, put, to);
    if (event->type.ptr != NULL) put_line(RD_SLICE("event: "), event->type, put, to);
    if (event->retry_ms >= 0) {
        char digits[24];
        int len = snprintf(digits, sizeof(digits), "%" PRId64, event->retry_ms);
        put_line(RD_SLICE("retry: "), rd_slice_of(digits, (size_t)len), put, to);
    }
    if (event->data.ptr != NULL) put_data(event->data, put, to);
    put(to, "\n", 1);
}

static void count(void *to, const char *bytes, size_t len) {
    (void)bytes;
    *(size_t *)to += len;
}

size_t rd_sse_size(const rd_named_event *event) {
    size_t size = 0;
    rd_sse_write(event, count, &size);
    return size;
}

/* ---- published messages ---- */

static void append(void *to, const char *bytes, size_t len) {
    rd_buffer_append(to, bytes, len);
}

int rd_sse_encode(const rd_message *message, void *with, rd_buffer *out) {
    char id[24];
    rd_named_event event = {.data = rd_message_payload(message), .retry_ms = -1};
    (void)with;
    if (message->is_gap) {
        event.type = RD_SLICE("reset");
        event.data = rd_message_channel(message);
    } else if (message->id != 0) {
        event.id = rd_slice_of(id, (size_t)snprintf(id, sizeof(id), "%" PRIu64, message->id));
    }
    if (!rd_utf8_is_text(event.data)) return RD_ERR_WS_NOT_UTF8;
    if (rd_sse_size(&event) > INT32_MAX) return RD_ERR_WS_MESSAGE_TOO_LARGE;
    rd_sse_write(&event, append, out);
    return 0;
}

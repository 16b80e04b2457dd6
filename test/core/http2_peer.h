/* SPDX-License-Identifier: MIT
 *
 * A client of HTTP/2 for tests that writes any frames, right or wrong, and reads those of the
 * server. Heads are literals without compression, so every byte of them can be wrong; those of the
 * server are decoded by the library.
 */
#ifndef HTTP2_PEER_H
#define HTTP2_PEER_H

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include "check.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum { PEER_STREAMS = 256, PEER_PROBES = 16, PEER_SETTINGS = 16, NO_CODE = -1 };

/* ---- bytes to send ---- */

typedef struct wire {
    char bytes[1 << 20];
    size_t len;
} wire;

static void put(wire *to, const void *bytes, size_t len) {
    if (!CHECK(to->len + len <= sizeof(to->bytes))) return;
    if (len > 0) memcpy(to->bytes + to->len, bytes, len);
    to->len += len;
}

static void put_frame(wire *to, unsigned type, unsigned flags, uint32_t id, const void *payload,
                      size_t len) {
    const uint8_t header[9] = {(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len,
                               (uint8_t)type,        (uint8_t)flags,      (uint8_t)(id >> 24),
                               (uint8_t)(id >> 16),  (uint8_t)(id >> 8),  (uint8_t)id};
    put(to, header, sizeof(header));
    put(to, payload, len);
}

static void put_u32(char *to, uint32_t number) {
    for (int i = 0; i < 4; i++) to[i] = (char)(number >> (24 - 8 * i));
}

__attribute__((unused)) static void put_window(wire *to, uint32_t id, uint32_t more) {
    char payload[4];
    put_u32(payload, more);
    put_frame(to, NGHTTP2_WINDOW_UPDATE, 0, id, payload, 4);
}

__attribute__((unused)) static void put_reset(wire *to, uint32_t id, uint32_t code) {
    char payload[4];
    put_u32(payload, code);
    put_frame(to, NGHTTP2_RST_STREAM, 0, id, payload, 4);
}

__attribute__((unused)) static void put_setting(wire *to, unsigned id, uint32_t value) {
    char payload[6] = {(char)(id >> 8), (char)id};
    put_u32(payload + 2, value);
    put_frame(to, NGHTTP2_SETTINGS, 0, 0, payload, 6);
}

/* A length of HPACK with a prefix of seven bits (RFC 7541, section 5.1). */
static void put_length(wire *to, size_t len) {
    uint8_t byte = (uint8_t)(len < 127 ? len : 127);
    put(to, &byte, 1);
    if (len < 127) return;
    for (len -= 127; len >= 128; len /= 128) {
        byte = (uint8_t)(len % 128 + 128);
        put(to, &byte, 1);
    }
    byte = (uint8_t)len;
    put(to, &byte, 1);
}

static void put_field(wire *to, const char *name, size_t name_len, const char *value,
                      size_t value_len) {
    put(to, "\0", 1);
    put_length(to, name_len);
    put(to, name, name_len);
    put_length(to, value_len);
    put(to, value, value_len);
}

/* `text` has a field in each line: its name, a blank, its value. */
static void put_fields(wire *to, const char *text) {
    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        const size_t len = end != NULL ? (size_t)(end - text) : strlen(text);
        const char *blank = memchr(text, ' ', len);
        const size_t name = blank != NULL ? (size_t)(blank - text) : len;
        put_field(to, text, name, text + name + 1, name < len ? len - name - 1 : 0);
        text += len + (end != NULL);
    }
}

static void put_head_with(wire *to, uint32_t id, unsigned flags, const char *fields) {
    static wire block;
    block.len = 0;
    put_fields(&block, fields);
    put_frame(to, NGHTTP2_HEADERS, flags | NGHTTP2_FLAG_END_HEADERS, id, block.bytes, block.len);
}

/* A head or trailers with a field of 4 KB, and this many references to it: a byte each. */
__attribute__((unused)) static void put_repeated(wire *to, uint32_t id, unsigned flags,
                                                 const char *fields, size_t references) {
    static wire block;
    block.len = 0;
    put_fields(&block, fields);
    put(&block, "\x40\x01x", 3);
    put_length(&block, 4000);
    for (int i = 0; i < 4000; i++) put(&block, "a", 1);
    while (references-- > 0) put(&block, "\xbe", 1);
    put_frame(to, NGHTTP2_HEADERS, flags | NGHTTP2_FLAG_END_HEADERS, id, block.bytes, block.len);
}

#define HEAD_FIELDS(method, path) ":method " method "\n:scheme http\n:path " path "\n:authority a"

__attribute__((unused)) static void put_get(wire *to, uint32_t id, const char *path) {
    char fields[256];
    snprintf(fields, sizeof(fields), ":method GET\n:scheme http\n:path %s\n:authority a", path);
    put_head_with(to, id, NGHTTP2_FLAG_END_STREAM, fields);
}

__attribute__((unused)) static void put_data(wire *to, uint32_t id, const char *text, bool last) {
    put_frame(to, NGHTTP2_DATA, last ? NGHTTP2_FLAG_END_STREAM : 0, id, text, strlen(text));
}

__attribute__((unused)) static void put_opening(wire *to) {
    put(to, PREFACE, strlen(PREFACE));
    put_frame(to, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

/* ---- what the server says ---- */

typedef struct peer_stream {
    int status; /* of the last head; 0: none */
    unsigned heads, frames;
    size_t body_len;
    int64_t reset;  /* or NO_CODE */
    int64_t window; /* what it grew by */
    bool ended;
    char fields[2048]; /* of all heads, "name: value\n" */
    char body[4096];   /* the beginning of it */
} peer_stream;

typedef struct peer {
    nghttp2_hd_inflater *inflater;
    size_t len;     /* of `bytes` */
    int64_t goaway; /* its last code, or NO_CODE */
    uint32_t goaway_last;
    unsigned goaways, settings, settings_acks, pings, pongs, window_updates;
    uint8_t ping[8];                /* the last one */
    uint8_t probes[PEER_PROBES][8]; /* PINGs that ask what has arrived, to be answered */
    unsigned probe_count;           /* of them */
    unsigned probed;                /* in all */
    int64_t setting[PEER_SETTINGS]; /* by id; NO_CODE: not said */
    size_t block_len;               /* of `block` */
    int64_t window;                 /* of the connection: what it grew by */
    char order[1024];               /* "D1 P D1 ": DATA and answers to PINGs, the first of them */
    bool closed;
    peer_stream streams[PEER_STREAMS]; /* by number / 2 */
    char bytes[1 << 20];
    char block[1 << 18]; /* of a head that goes on */
} peer;

static peer server_said;

/* Others may have the numbers of the streams again. */
static void peer_forget_streams(void) {
    for (int i = 0; i < PEER_STREAMS; i++) {
        peer_stream *stream = &server_said.streams[i];
        memset(stream, 0, offsetof(peer_stream, fields));
        stream->reset = NO_CODE;
        stream->fields[0] = stream->body[0] = '\0';
    }
}

__attribute__((unused)) static void peer_begin(void) {
    if (server_said.inflater != NULL) nghttp2_hd_inflate_del(server_said.inflater);
    memset(&server_said, 0, offsetof(peer, streams)); /* the rest is much */
    CHECK_INT(nghttp2_hd_inflate_new(&server_said.inflater), 0);
    server_said.goaway = NO_CODE;
    peer_forget_streams();
    for (int i = 0; i < PEER_SETTINGS; i++) server_said.setting[i] = NO_CODE;
}

__attribute__((unused)) static void peer_end(void) {
    nghttp2_hd_inflate_del(server_said.inflater);
    server_said.inflater = NULL;
}

static peer_stream *peer_of(uint32_t id) {
    return &server_said.streams[id / 2 % PEER_STREAMS];
}

static void peer_note_field(peer_stream *stream, const nghttp2_nv *field) {
    const size_t used = strlen(stream->fields);
    if (field->namelen == 7 && memcmp(field->name, ":status", 7) == 0) {
        stream->status =
            (field->value[0] - '0') * 100 + (field->value[1] - '0') * 10 + (field->value[2] - '0');
    }
    snprintf(stream->fields + used, sizeof(stream->fields) - used, "%.*s: %.*s\n",
             (int)field->namelen, (const char *)field->name, (int)field->valuelen,
             (const char *)field->value);
}

static void peer_take_head(peer_stream *stream, const uint8_t *block, size_t len) {
    int flags;
    stream->heads++;
    for (;;) {
        nghttp2_nv field;
        const ssize_t used =
            nghttp2_hd_inflate_hd2(server_said.inflater, &field, &flags, block, len, 1);
        if (!CHECK(used >= 0)) return;
        block += used;
        len -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) peer_note_field(stream, &field);
        if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
    }
    nghttp2_hd_inflate_end_headers(server_said.inflater);
}

static uint32_t peer_u32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* A head may come in several frames. */
static void peer_take_block(peer_stream *stream, unsigned flags, const uint8_t *payload,
                            size_t len) {
    peer *said = &server_said;
    if (!CHECK(said->block_len + len <= sizeof(said->block))) return;
    memcpy(said->block + said->block_len, payload, len);
    said->block_len += len;
    if ((flags & NGHTTP2_FLAG_END_HEADERS) == 0) return;
    peer_take_head(stream, (const uint8_t *)said->block, said->block_len);
    said->block_len = 0;
}

static void peer_take_body(peer_stream *stream, const uint8_t *payload, size_t len) {
    for (size_t i = 0; i < len; i++, stream->body_len++) {
        if (stream->body_len < sizeof(stream->body) - 1) {
            stream->body[stream->body_len] = (char)payload[i];
            stream->body[stream->body_len + 1] = '\0';
        }
    }
}

static void peer_take_settings(const uint8_t *payload, size_t len) {
    server_said.settings++;
    for (size_t at = 0; at + 6 <= len; at += 6) {
        const unsigned id = (unsigned)payload[at] << 8 | payload[at + 1];
        if (id < PEER_SETTINGS) server_said.setting[id] = peer_u32(payload + at + 2);
    }
}

static void peer_note_order(const char *what, uint32_t id) {
    const size_t used = strlen(server_said.order);
    snprintf(server_said.order + used, sizeof(server_said.order) - used, "%s%u ", what, id);
}

static void peer_note_probe(const uint8_t *payload) {
    server_said.probed++;
    if (!CHECK(server_said.probe_count < PEER_PROBES)) return;
    memcpy(server_said.probes[server_said.probe_count++], payload, 8);
}

static void peer_take_frame(unsigned type, unsigned flags, uint32_t id, const uint8_t *payload,
                            size_t len) {
    peer_stream *stream = peer_of(id);
    const bool is_ack = (flags & NGHTTP2_FLAG_ACK) != 0;
    stream->frames++;
    switch (type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
        peer_take_block(stream, flags, payload, len);
        break;
    case NGHTTP2_DATA:
        peer_note_order("D", id);
        peer_take_body(stream, payload, len);
        break;
    case NGHTTP2_RST_STREAM:
        stream->reset = peer_u32(payload);
        break;
    case NGHTTP2_GOAWAY:
        server_said.goaways++;
        server_said.goaway_last = peer_u32(payload);
        server_said.goaway = peer_u32(payload + 4);
        break;
    case NGHTTP2_SETTINGS:
        if (is_ack) {
            server_said.settings_acks++;
        } else {
            peer_take_settings(payload, len);
        }
        break;
    case NGHTTP2_PING:
        if (is_ack) {
            peer_note_order("P", 0);
            server_said.pongs++;
        } else if (memcmp(payload, "sent", 4) == 0) {
            peer_note_probe(payload);
        } else {
            memcpy(server_said.ping, payload, 8);
            server_said.pings++;
        }
        break;
    case NGHTTP2_WINDOW_UPDATE:
        server_said.window_updates++;
        *(id == 0 ? &server_said.window : &stream->window) += peer_u32(payload);
        break;
    default:
        CHECK_SAYS(false, "a frame of type %u", type);
    }
    const bool may_end = type == NGHTTP2_HEADERS || type == NGHTTP2_DATA;
    if (may_end && (flags & NGHTTP2_FLAG_END_STREAM)) {
        CHECK(!stream->ended);
        stream->ended = true;
    }
}

/* Takes the frames that are whole. */
static void peer_take(size_t more) {
    peer *said = &server_said;
    said->len += more;
    const uint8_t *at = (const uint8_t *)said->bytes;
    size_t left = said->len;
    while (left >= 9) {
        const size_t len = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
        if (left < 9 + len) break;
        peer_take_frame(at[3], at[4], peer_u32(at + 5) & 0x7fffffff, at + 9, len);
        at += 9 + len;
        left -= 9 + len;
    }
    memmove(said->bytes, at, left);
    said->len = left;
}

/* Answers to PINGs that ask what has arrived. */
__attribute__((unused)) static void put_arrivals(wire *to) {
    for (unsigned i = 0; i < server_said.probe_count; i++) {
        put_frame(to, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, server_said.probes[i], 8);
    }
    server_said.probe_count = 0;
}

/* Reads what is there. */
__attribute__((unused)) static void peer_hear(int fd) {
    peer *said = &server_said;
    ssize_t part;
    while ((part = recv(fd, said->bytes + said->len, sizeof(said->bytes) - said->len, 0)) > 0) {
        peer_take((size_t)part);
    }
    if (part == 0) said->closed = true;
}

#endif

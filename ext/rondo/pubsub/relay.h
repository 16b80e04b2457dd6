/* SPDX-License-Identifier: MIT
 *
 * The frames in which the processes of a server tell each other what is published and who wants to
 * know. Only bytes in, frames out and back; who sends what to whom is the hub's business.
 *
 *   0      1       2               4               8    16
 *   | type | flags | channel bytes | payload bytes | id | channel, payload
 *
 * Numbers are big-endian. A reader takes any cut of the stream and checks type, flags and lengths
 * as soon as it has the 16 bytes, before it keeps anything of what follows. After an error the
 * stream has no meaning any more and its connection is to be closed.
 *
 * No lock of its own: the caller holds the loop lock, or owns the reader alone.
 */
#ifndef RD_PUBSUB_RELAY_H
#define RD_PUBSUB_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

enum {
    RD_RELAY_HEAD_BYTES = 16,
    RD_RELAY_NOTE_MAX = 64,    /* the payload of REPLAY and its kin: whom the answer is for */
    RD_RELAY_REPLAY_NOTE = 16, /* its last 8 bytes: how much this client can take; a worker of an
                                * older program says less */
    RD_RELAY_TERMS_BYTES = 12, /* of KEEP: size in 4 bytes, time to live (ms) in 8 */
    RD_RELAY_PAYLOAD_MAX = 1 << 26 /* of PUBLISH between hub and workers, whatever is set */
};

typedef enum rd_relay_type {
    RD_RELAY_SUBSCRIBE = 1, /* channel; PATTERN */
    RD_RELAY_UNSUBSCRIBE,   /* channel; PATTERN */
    RD_RELAY_PUBLISH,       /* channel, payload, id (0: has none); TEXT, ECHO, ENGINE */
    RD_RELAY_REPLAY,        /* channel, note, id seen last; PATTERN. Subscribes, too */
    RD_RELAY_REPLAY_BEGIN,  /* channel, note; PATTERN. PUBLISH frames follow */
    RD_RELAY_REPLAY_END,    /* channel, note, id: rd_replay; PATTERN */
    RD_RELAY_KEEP, /* channel, terms, id: floor when saved; PATTERN. A rule of the history */

    /* Only where a hub goes on in another process. */
    RD_RELAY_SAVED_TIME,   /* id: when the messages that follow were added, ms */
    RD_RELAY_SAVED_FLOOR,  /* channel, id */
    RD_RELAY_SAVED_IDS,    /* id: the last, 8 bytes: forgotten */
    RD_RELAY_SAVED_LINK,   /* id: its number, 8 bytes: its descriptor */
    RD_RELAY_SAVED_INPUT,  /* bytes that the link read of a frame that has not come whole */
    RD_RELAY_SAVED_OUTPUT, /* bytes that it has not sent */
    RD_RELAY_TYPE_END
} rd_relay_type;

typedef enum rd_relay_flag {
    RD_RELAY_TEXT = 1,
    RD_RELAY_PATTERN = 2,
    RD_RELAY_ECHO = 4,  /* the origin wants it back */
    RD_RELAY_ENGINE = 8 /* for the engine, which brings it back */
} rd_relay_flag;

typedef struct rd_relay_frame {
    rd_relay_type type;
    uint8_t flags;
    uint64_t id;
    rd_slice channel;
    rd_slice payload;
} rd_relay_frame;

typedef struct rd_relay_reader {
    uint32_t payload_max; /* of PUBLISH */
    bool takes_saved;     /* what only a hub that is handed on may bring */
    int error;            /* answered for ever once there was one */
    size_t spent;         /* bytes of `kept` that were the last frame */
    rd_buffer kept;       /* the beginning of a frame that has not come whole */
} rd_relay_reader;

/* `payload_max` up to 1 GiB. */
void rd_relay_reader_init(rd_relay_reader *reader, uint32_t payload_max);
void rd_relay_reader_clear(rd_relay_reader *reader);

/*
 * Takes from the `len` bytes and says how many in `used`. 1: a whole frame, whose slices are valid
 * until the next call and as long as the bytes are; call again with what is left. 0: all bytes are
 * taken and more are needed. < 0: RD_ERR_RELAY_TYPE, _CHANNEL or _PAYLOAD.
 */
int rd_relay_read(rd_relay_reader *reader, const char *bytes, size_t len, size_t *used,
                  rd_relay_frame *frame);

/* A number as frames have them. */
uint64_t rd_relay_get_number(const char *bytes, int len);
void rd_relay_put_number(char *bytes, int len, uint64_t value);

/* The terms of KEEP. */
void rd_relay_put_terms(char terms[RD_RELAY_TERMS_BYTES], uint32_t size, uint64_t ttl_ms);
void rd_relay_get_terms(const rd_relay_frame *frame, uint32_t *size, uint64_t *ttl_ms);

/* The first 16 bytes of a frame, for who sends channel and payload from where they lie. 0, or the
 * error a reader with this limit would have. */
int rd_relay_head(const rd_relay_frame *frame, uint32_t payload_max,
                  char head_bytes[RD_RELAY_HEAD_BYTES]);

/* Appends the whole frame; 0 or an error as above, and then nothing is appended. */
int rd_relay_write(const rd_relay_frame *frame, uint32_t payload_max, rd_buffer *out);

#endif

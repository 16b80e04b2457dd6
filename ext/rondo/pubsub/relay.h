/* SPDX-License-Identifier: MIT
 *
 * The frames in which the processes of a server tell each other what is published and who wants to
 * know. Only bytes in, frames out and back; who sends what to whom is the hub's business.
 *
 *   0       1       2               4                               8                16
 *   | type  | flags | channel bytes |     payload bytes             |  id            |  channel,
 * payload
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
    RD_RELAY_NOTE_MAX = 64 /* the payload of REPLAY and its kin: whom the answer is for */
};

typedef enum rd_relay_type {
    RD_RELAY_SUBSCRIBE = 1, /* channel; PATTERN */
    RD_RELAY_UNSUBSCRIBE,   /* channel; PATTERN */
    RD_RELAY_PUBLISH,       /* channel, payload, id (0: the hub gives one); TEXT */
    RD_RELAY_REPLAY,        /* channel, note, id seen last; PATTERN */
    RD_RELAY_REPLAY_BEGIN,  /* channel, note, id: rd_replay; PATTERN. PUBLISH frames follow */
    RD_RELAY_REPLAY_END,    /* channel, note, id of the last; PATTERN */
    RD_RELAY_TYPE_END
} rd_relay_type;

typedef enum rd_relay_flag { RD_RELAY_TEXT = 1, RD_RELAY_PATTERN = 2 } rd_relay_flag;

typedef struct rd_relay_frame {
    rd_relay_type type;
    uint8_t flags;
    uint64_t id;
    rd_slice channel;
    rd_slice payload;
} rd_relay_frame;

typedef struct rd_relay_reader {
    uint32_t payload_max; /* of PUBLISH */
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

/* The first 16 bytes of a frame, for who sends channel and payload from where they lie. 0, or the
 * error a reader with this limit would have. */
int rd_relay_head(const rd_relay_frame *frame, uint32_t payload_max,
                  char head_bytes[RD_RELAY_HEAD_BYTES]);

/* Appends the whole frame; 0 or an error as above, and then nothing is appended. */
int rd_relay_write(const rd_relay_frame *frame, uint32_t payload_max, rd_buffer *out);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The frames by which the processes of a server exchange published messages and subscriptions. This
 * file turns bytes into frames and frames into bytes; the hub decides what goes where.
 *
 *   0      1       2               4               8    16
 *   | type | flags | channel bytes | payload bytes | id | channel, payload
 *
 * Numbers are big-endian. A reader accepts any cut of the stream. It checks type, flags and lengths
 * as soon as it has the 16 bytes, before it keeps anything of what follows. After an error the
 * stream has lost its meaning, and the connection must be closed.
 *
 * No lock of its own: the caller holds the loop lock, or is the only user of the reader.
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
    RD_RELAY_NOTE_MAX = 64,    /* payload of REPLAY and its answers: who the answer is for */
    RD_RELAY_REPLAY_NOTE = 16, /* its last 8 bytes: how much this client can take; a worker of an
                                * older version omits them */
    RD_RELAY_WAITS_NOTE = 17,  /* a byte more: the worker knows REPLAY_WAITS; no matter what byte */
    RD_RELAY_CONFIRM_NOTE = 16, /* before the message, with CONFIRM */
    RD_RELAY_TERMS_LEAST = 12,  /* of KEEP: size in 4 bytes, time to live (ms) in 8; and if there is
                                 * a limit of bytes, this in 8. Older versions know no such limit */
    RD_RELAY_TERMS_BYTES = 20,
    RD_RELAY_PAYLOAD_MAX = 1 << 26 /* of PUBLISH between hub and workers, whatever the settings
                                    * say */
};

typedef enum rd_relay_type {
    RD_RELAY_SUBSCRIBE = 1, /* channel; PATTERN */
    RD_RELAY_UNSUBSCRIBE,   /* channel; PATTERN */
    RD_RELAY_PUBLISH,      /* channel, payload, id (0: has none); TEXT, ECHO, ENGINE, ROOT, WORKERS,
                            * CONFIRM */
    RD_RELAY_REPLAY,       /* channel, note, last id seen; PATTERN. Also subscribes */
    RD_RELAY_REPLAY_BEGIN, /* channel, note; PATTERN. PUBLISH frames follow */
    RD_RELAY_REPLAY_END,   /* channel, note, id: rd_replay; PATTERN */
    RD_RELAY_KEEP, /* channel, terms, id: floor when saved; PATTERN. A rule of the history */

    /* Only when a hub continues in another process. */
    RD_RELAY_SAVED_TIME,   /* id: when the messages that follow were added, ms */
    RD_RELAY_SAVED_FLOOR,  /* channel, id */
    RD_RELAY_SAVED_IDS,    /* id: the last, 8 bytes: forgotten */
    RD_RELAY_SAVED_LINK,   /* id: its number, 8 bytes: its descriptor */
    RD_RELAY_SAVED_INPUT,  /* bytes that the link has read of an incomplete frame */
    RD_RELAY_SAVED_OUTPUT, /* bytes that the link has not sent */

    RD_RELAY_REPLAY_WAITS, /* channel, note: the answer waits for the engine, others may overtake it
                            */
    RD_RELAY_SAVED_ENGINE, /* as SAVED_, and from an engine with streams: id: up to there all that
                            * is followed has been delivered. Older versions know no such frame */
    RD_RELAY_TYPE_END
} rd_relay_type;

typedef enum rd_relay_flag {
    RD_RELAY_TEXT = 1,
    RD_RELAY_PATTERN = 2,
    RD_RELAY_ECHO = 4,     /* the origin wants the message back */
    RD_RELAY_ENGINE = 8,   /* for the engine, which brings the message back */
    RD_RELAY_ROOT = 16,    /* for the process of the hub alone */
    RD_RELAY_WORKERS = 32, /* not for that process */
    RD_RELAY_GAP = 64,     /* no message: some of the channel up to this id are lost */
    RD_RELAY_CONFIRM = 128 /* with ENGINE: the payload begins with a note, of who waits for the
                            * answer of the engine (lib/rondo/pubsub/confirms.rb), or of the number
                            * that an engine gave a message which it gives back (relay_frames.rb) */
} rd_relay_flag;

typedef struct rd_relay_frame {
    rd_relay_type type;
    uint8_t flags;
    uint64_t id;
    rd_slice channel;
    rd_slice payload;
} rd_relay_frame;

/* How much of a channel is kept. */
typedef struct rd_relay_terms {
    uint32_t size;   /* messages; 0 ends the rule */
    uint64_t ttl_ms; /* 0: for ever */
    uint64_t bytes;  /* of payloads; the newest message stays whatever it has. 0: no limit */
} rd_relay_terms;

typedef struct rd_relay_reader {
    uint32_t payload_max; /* of PUBLISH */
    bool takes_saved; /* accepts the SAVED_ frames, of a hub that hands over, and of an engine */
    int error;        /* once set, returned by every call */
    size_t spent;     /* bytes of `kept` that belong to the last frame */
    rd_buffer kept;   /* the beginning of an incomplete frame */
} rd_relay_reader;

/* `payload_max` up to 1 GiB. */
void rd_relay_reader_init(rd_relay_reader *reader, uint32_t payload_max);
void rd_relay_reader_clear(rd_relay_reader *reader);

/*
 * Reads from the `len` bytes and sets `used` to how many it took. Returns 1 for a whole frame,
 * whose slices are valid until the next call and as long as the bytes are; call again with the
 * rest. Returns 0 when all bytes are taken and more are needed. Returns < 0 for an error:
 * RD_ERR_RELAY_TYPE, _CHANNEL or _PAYLOAD.
 */
int rd_relay_read(rd_relay_reader *reader, const char *bytes, size_t len, size_t *used,
                  rd_relay_frame *frame);

/* Reads a number of a frame. */
uint64_t rd_relay_get_number(const char *bytes, int len);
void rd_relay_put_number(char *bytes, int len, uint64_t value);

/* The terms of KEEP. put() returns the payload, which is in `bytes`. */
rd_slice rd_relay_put_terms(char bytes[RD_RELAY_TERMS_BYTES], const rd_relay_terms *terms);
rd_relay_terms rd_relay_get_terms(const rd_relay_frame *frame);

/* Writes the first 16 bytes of a frame, for a caller that sends channel and payload from their
 * place. Returns 0, or the error that a reader with this limit would return. */
int rd_relay_head(const rd_relay_frame *frame, uint32_t payload_max,
                  char head_bytes[RD_RELAY_HEAD_BYTES]);

/* Appends the whole frame. Returns 0 or an error as above; after an error nothing is appended. */
int rd_relay_write(const rd_relay_frame *frame, uint32_t payload_max, rd_buffer *out);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A published message: channel, payload, text or binary, id. Immutable and counted, so that all
 * subscribers, the history and the output queues share one. What it looks like on a wire is made
 * by the protocols, at most once a kind, and kept with it: an output queue borrows those bytes.
 *
 * As everything in pubsub/: no lock of its own, the caller holds the loop lock.
 */
#ifndef RD_PUBSUB_MESSAGE_H
#define RD_PUBSUB_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/ledger.h"
#include "base/slice.h"
#include "transport/outq.h"

typedef enum rd_encoding_kind {
    RD_ENCODING_WS_TEXT,
    RD_ENCODING_WS_BINARY,
    RD_ENCODING_WS_TEXT_DEFLATED, /* without context takeover: the same bytes for everybody */
    RD_ENCODING_WS_BINARY_DEFLATED,
    RD_ENCODING_SSE,
    RD_ENCODING_COUNT
} rd_encoding_kind;

typedef struct rd_message rd_message;

/* The bytes of one kind; they live as long as their message. */
typedef struct rd_encoding {
    rd_release release; /* drops one reference to the message */
    rd_message *message;
    rd_buffer bytes;
    uint32_t queues;   /* that hold it */
    rd_ledger *ledger; /* which counts it once as output while there are any; or NULL */
    bool is_none;      /* the encoder refused: there is no such encoding of this message */
} rd_encoding;

struct rd_message {
    rd_release release; /* drops one reference */
    uint32_t refs;
    bool is_text;
    uint64_t id; /* 0: has none */
    rd_encoding *encodings[RD_ENCODING_COUNT];
    size_t channel_len, payload_len;
    char bytes[]; /* channel, then payload */
};

/* Appends what the message is on the wire to `out`; < 0 when it cannot be encoded so, or is not
 * worth it. `with` is the caller's, a compressor for instance. */
typedef int rd_encode(const rd_message *message, void *with, rd_buffer *out);

/* Copies both; the caller owns the one reference. */
rd_message *rd_message_new(rd_slice channel, rd_slice payload, bool is_text, uint64_t id);

rd_message *rd_message_ref(rd_message *message);
void rd_message_unref(rd_message *message);

static inline rd_slice rd_message_channel(const rd_message *message) {
    return rd_slice_of(message->bytes, message->channel_len);
}

static inline rd_slice rd_message_payload(const rd_message *message) {
    return rd_slice_of(message->bytes + message->channel_len, message->payload_len);
}

/* Queues channel and payload without a copy; the queue holds a reference. */
void rd_message_borrow(rd_message *message, rd_outq *queue);

/* The encoding of that kind, made by `encode` when it is the first time somebody asks; NULL when
 * the encoder refused, now or then. */
rd_encoding *rd_message_encoding(rd_message *message, rd_encoding_kind kind, rd_encode *encode,
                                 void *with);

static inline rd_slice rd_encoding_bytes(const rd_encoding *encoding) {
    return rd_slice_of(rd_buffer_ptr(&encoding->bytes), rd_buffer_len(&encoding->bytes));
}

/* Queues the bytes without a copy; the queue holds a reference until they are sent or dropped. */
void rd_encoding_borrow(rd_encoding *encoding, rd_outq *queue);

/* Takes whole encodings out of the queue, the oldest first, until it takes at most so much memory
 * or there are none; how many. What has begun to leave stays. */
uint32_t rd_encoding_drop_oldest(rd_outq *queue, rd_chunk_pool *pool, size_t memory);

#endif

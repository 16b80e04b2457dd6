/* SPDX-License-Identifier: MIT
 *
 * A published message: channel, payload, text or binary, id. It is immutable and counted, so that
 * all subscribers, the history and the output queues share it. The protocols make its bytes for the
 * wire, at most once for each kind. They are kept with the message, and output queues borrow them.
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
    RD_ENCODING_WS_TEXT_DEFLATED, /* without context takeover: the same bytes for all clients */
    RD_ENCODING_WS_BINARY_DEFLATED,
    RD_ENCODING_SSE,
    RD_ENCODING_RAW, /* the payload alone */
    RD_ENCODING_COUNT
} rd_encoding_kind;

typedef struct rd_message rd_message;

/* The bytes of one kind. They live as long as their message. */
typedef struct rd_encoding {
    rd_release release; /* drops one reference to the message */
    rd_message *message;
    rd_buffer bytes;
    uint32_t queues;   /* that hold these bytes */
    rd_ledger *ledger; /* counts the bytes once as output while a queue holds them; or NULL */
    bool is_none;      /* the encoder refused: this message has no such encoding */
} rd_encoding;

struct rd_message {
    rd_release release; /* drops one reference */
    uint32_t refs;
    bool is_text;
    bool is_gap; /* no message: some before this place are lost */
    uint64_t id; /* 0: none */
    rd_encoding *encodings[RD_ENCODING_COUNT];
    size_t channel_len, payload_len;
    char bytes[]; /* channel, then payload */
};

/* Appends the wire form of the message to `out`. Returns < 0 when the message cannot be encoded, or
 * when it is not worth it. `with` comes from the caller, a compressor for instance. */
typedef int rd_encode(const rd_message *message, void *with, rd_buffer *out);

/* Copies both. The caller owns the only reference. */
rd_message *rd_message_new(rd_slice channel, rd_slice payload, bool is_text, uint64_t id);

rd_message *rd_message_ref(rd_message *message);
void rd_message_unref(rd_message *message);

static inline rd_slice rd_message_channel(const rd_message *message) {
    return rd_slice_of(message->bytes, message->channel_len);
}

static inline rd_slice rd_message_payload(const rd_message *message) {
    return rd_slice_of(message->bytes + message->channel_len, message->payload_len);
}

/* Queues channel and payload without a copy. The queue holds a reference. */
void rd_message_borrow(rd_message *message, rd_outq *queue);

/* The encoding of this kind. The first call makes it by `encode`. NULL when the encoder refused,
 * now or then. */
rd_encoding *rd_message_encoding(rd_message *message, rd_encoding_kind kind, rd_encode *encode,
                                 void *with);

static inline rd_slice rd_encoding_bytes(const rd_encoding *encoding) {
    return rd_slice_of(rd_buffer_ptr(&encoding->bytes), rd_buffer_len(&encoding->bytes));
}

/* Queues the bytes without a copy. The queue holds a reference until they are sent or dropped. */
void rd_encoding_borrow(rd_encoding *encoding, rd_outq *queue, rd_chunk_pool *pool);

/* Removes whole encodings from the queue, the oldest first, until it uses at most `memory` bytes or
 * none is left. Returns how many. A partly sent one stays. */
uint32_t rd_encoding_drop_oldest(rd_outq *queue, rd_chunk_pool *pool, size_t memory);

#endif

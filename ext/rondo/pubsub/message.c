/* SPDX-License-Identifier: MIT
 *
 * Messages and their encodings; see message.h.
 */
#include "pubsub/message.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

static void release_encoding(rd_release *release) {
    rd_encoding *encoding = RD_CONTAINER(release, rd_encoding, release);
    if (--encoding->queues == 0 && encoding->ledger != NULL) {
        rd_ledger_release(encoding->ledger, RD_LEDGER_OUTPUT, rd_buffer_len(&encoding->bytes));
    }
    rd_message_unref(encoding->message);
}

static void release_message(rd_release *release) {
    rd_message_unref(RD_CONTAINER(release, rd_message, release));
}

rd_message *rd_message_new(rd_slice channel, rd_slice payload, bool is_text, uint64_t id) {
    rd_message *message = rd_alloc(sizeof(*message) + channel.len + payload.len);
    *message = (rd_message){.release = {release_message}, .refs = 1, .is_text = is_text, .id = id};
    message->channel_len = channel.len;
    message->payload_len = payload.len;
    if (channel.len > 0) memcpy(message->bytes, channel.ptr, channel.len);
    if (payload.len > 0) memcpy(message->bytes + channel.len, payload.ptr, payload.len);
    return message;
}

rd_message *rd_message_ref(rd_message *message) {
    assert(message->refs > 0 && message->refs < UINT32_MAX);
    message->refs++;
    return message;
}

void rd_message_unref(rd_message *message) {
    assert(message->refs > 0);
    if (--message->refs > 0) return;
    for (int kind = 0; kind < RD_ENCODING_COUNT; kind++) {
        if (message->encodings[kind] == NULL) continue;
        rd_buffer_clear(&message->encodings[kind]->bytes);
        rd_free(message->encodings[kind]);
    }
    rd_free(message);
}

void rd_message_borrow(rd_message *message, rd_outq *queue) {
    const size_t len = message->channel_len + message->payload_len;
    rd_message_ref(message);
    rd_outq_borrow(queue, message->bytes, len, &message->release);
}

rd_encoding *rd_message_encoding(rd_message *message, rd_encoding_kind kind, rd_encode *encode,
                                 void *with) {
    rd_encoding *encoding = message->encodings[kind];
    if (encoding == NULL) {
        encoding = rd_alloc_zero(sizeof(*encoding));
        encoding->release.run = release_encoding;
        encoding->message = message;
        message->encodings[kind] = encoding;
        encoding->is_none = encode(message, with, &encoding->bytes) < 0;
        if (encoding->is_none) rd_buffer_clear(&encoding->bytes);
    }
    return encoding->is_none ? NULL : encoding;
}

void rd_encoding_borrow(rd_encoding *encoding, rd_outq *queue, rd_chunk_pool *pool) {
    const rd_slice bytes = rd_encoding_bytes(encoding);
    assert(!encoding->is_none);
    if (bytes.len == 0) return;
    rd_message_ref(encoding->message);
    if (encoding->queues++ == 0 && encoding->ledger != NULL) {
        rd_ledger_add(encoding->ledger, RD_LEDGER_OUTPUT, bytes.len);
    }
    rd_outq_share(queue, pool, bytes.ptr, bytes.len, &encoding->release);
}

static bool is_encoding(const rd_chunk *chunk) {
    return chunk->kind == RD_CHUNK_BORROWED && chunk->release->run == release_encoding;
}

uint32_t rd_encoding_drop_oldest(rd_outq *queue, rd_chunk_pool *pool, size_t memory) {
    uint32_t dropped = 0;
    rd_chunk *before = rd_outq_first(queue); /* the chunk before; it may be partly sent */
    while (before != queue->last && queue->memory > memory) {
        if (is_encoding(before->next)) {
            rd_outq_drop_after(queue, pool, before);
            dropped++;
        } else {
            before = before->next;
        }
    }
    return dropped;
}

/* SPDX-License-Identifier: MIT
 *
 * Frames between processes; see relay.h. A frame that is complete in the caller's bytes is returned
 * in place. Only a frame that was cut is assembled in `kept`.
 */
#include "pubsub/relay.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "pubsub/channel.h"

typedef struct head {
    unsigned type, flags;
    uint32_t channel_len, payload_len;
    uint64_t id;
} head;

uint64_t rd_relay_get_number(const char *bytes, int len) {
    uint64_t value = 0;
    for (int i = 0; i < len; i++) value = value << 8 | (uint8_t)bytes[i];
    return value;
}

void rd_relay_put_number(char *bytes, int len, uint64_t value) {
    for (int i = len - 1; i >= 0; i--, value >>= 8) bytes[i] = (char)(uint8_t)value;
}

static head head_of(const char *bytes) {
    return (head){.type = (uint8_t)bytes[0],
                  .flags = (uint8_t)bytes[1],
                  .channel_len = (uint32_t)rd_relay_get_number(bytes + 2, 2),
                  .payload_len = (uint32_t)rd_relay_get_number(bytes + 4, 4),
                  .id = rd_relay_get_number(bytes + 8, 8)};
}

static size_t frame_bytes(const head *head) {
    return RD_RELAY_HEAD_BYTES + (size_t)head->channel_len + head->payload_len;
}

/* What a frame of each type may contain. */
typedef struct shape {
    uint8_t flags;
    bool has_channel;
    uint32_t payload_least, payload_most; /* of PUBLISH: the reader's limit */
} shape;

static const shape shapes[RD_RELAY_TYPE_END] = {
    [RD_RELAY_SUBSCRIBE] = {RD_RELAY_PATTERN, true, 0, 0},
    [RD_RELAY_UNSUBSCRIBE] = {RD_RELAY_PATTERN, true, 0, 0},
    [RD_RELAY_PUBLISH] = {RD_RELAY_TEXT | RD_RELAY_ECHO | RD_RELAY_ENGINE | RD_RELAY_ROOT |
                              RD_RELAY_WORKERS | RD_RELAY_GAP | RD_RELAY_CONFIRM,
                          true, 0, 0},
    [RD_RELAY_REPLAY] = {RD_RELAY_PATTERN, true, 0, RD_RELAY_NOTE_MAX},
    [RD_RELAY_REPLAY_BEGIN] = {RD_RELAY_PATTERN, true, 0, RD_RELAY_NOTE_MAX},
    [RD_RELAY_REPLAY_END] = {RD_RELAY_PATTERN, true, 0, RD_RELAY_NOTE_MAX},
    [RD_RELAY_KEEP] = {RD_RELAY_PATTERN, true, RD_RELAY_TERMS_LEAST, RD_RELAY_TERMS_BYTES},
    [RD_RELAY_SAVED_TIME] = {0, false, 0, 0},
    [RD_RELAY_SAVED_FLOOR] = {0, true, 0, 0},
    [RD_RELAY_SAVED_IDS] = {0, false, 8, 8},
    [RD_RELAY_SAVED_LINK] = {0, false, 8, 8},
    [RD_RELAY_SAVED_INPUT] = {0, false, 1, RD_RELAY_PAYLOAD_MAX},
    [RD_RELAY_SAVED_OUTPUT] = {0, false, 1, RD_RELAY_PAYLOAD_MAX},
    [RD_RELAY_REPLAY_WAITS] = {0, true, 0, RD_RELAY_NOTE_MAX},
    [RD_RELAY_SAVED_ENGINE] = {0, false, 0, 0},
};

static int check(const head *head, uint32_t payload_max) {
    if (head->type == 0 || head->type >= RD_RELAY_TYPE_END) return RD_ERR_RELAY_TYPE;
    const shape *shape = &shapes[head->type];
    if ((head->flags & ~(unsigned)shape->flags) != 0) return RD_ERR_RELAY_TYPE;
    const bool has_channel = head->channel_len > 0;
    if (has_channel != shape->has_channel || head->channel_len > RD_CHANNEL_NAME_MAX) {
        return RD_ERR_RELAY_CHANNEL;
    }
    const bool is_message = head->type == RD_RELAY_PUBLISH;
    const uint32_t most = is_message ? payload_max : shape->payload_most;
    const bool has_note = is_message && (head->flags & RD_RELAY_CONFIRM) != 0;
    const uint32_t least = has_note ? RD_RELAY_CONFIRM_NOTE : shape->payload_least;
    if (head->payload_len < least || head->payload_len > most) {
        return RD_ERR_RELAY_PAYLOAD;
    }
    return 0;
}

static int check_read(const rd_relay_reader *reader, const head *head) {
    const bool is_saved =
        (head->type >= RD_RELAY_SAVED_TIME && head->type <= RD_RELAY_SAVED_OUTPUT) ||
        head->type == RD_RELAY_SAVED_ENGINE;
    if (is_saved && !reader->takes_saved) return RD_ERR_RELAY_TYPE;
    return check(head, reader->payload_max);
}

static rd_relay_frame frame_at(const char *bytes, const head *head) {
    const char *channel = bytes + RD_RELAY_HEAD_BYTES;
    return (rd_relay_frame){.type = (rd_relay_type)head->type,
                            .flags = (uint8_t)head->flags,
                            .id = head->id,
                            .channel = rd_slice_of(channel, head->channel_len),
                            .payload = rd_slice_of(channel + head->channel_len, head->payload_len)};
}

void rd_relay_reader_init(rd_relay_reader *reader, uint32_t payload_max) {
    assert(payload_max <= 1u << 30);
    *reader = (rd_relay_reader){.payload_max = payload_max};
}

void rd_relay_reader_clear(rd_relay_reader *reader) {
    rd_buffer_clear(&reader->kept);
}

/* Moves bytes behind the kept ones until there are `wanted`. Returns whether there are. */
static bool keep(rd_relay_reader *reader, size_t wanted, const char *bytes, size_t len,
                 size_t *used) {
    const size_t have = rd_buffer_len(&reader->kept);
    if (have >= wanted) return true;
    const size_t missing = wanted - have, left = len - *used;
    const size_t part = missing < left ? missing : left;
    rd_buffer_append(&reader->kept, bytes + *used, part);
    *used += part;
    return part == missing;
}

static int read_kept(rd_relay_reader *reader, const char *bytes, size_t len, size_t *used,
                     rd_relay_frame *frame) {
    if (!keep(reader, RD_RELAY_HEAD_BYTES, bytes, len, used)) return 0;
    const head head = head_of(rd_buffer_ptr(&reader->kept));
    reader->error = check_read(reader, &head);
    if (reader->error < 0) return reader->error;
    if (!keep(reader, frame_bytes(&head), bytes, len, used)) return 0;
    reader->spent = frame_bytes(&head);
    *frame = frame_at(rd_buffer_ptr(&reader->kept), &head);
    return 1;
}

int rd_relay_read(rd_relay_reader *reader, const char *bytes, size_t len, size_t *used,
                  rd_relay_frame *frame) {
    *used = 0;
    if (reader->error < 0) return reader->error;
    if (reader->spent > 0) rd_buffer_consume(&reader->kept, reader->spent);
    reader->spent = 0;
    if (rd_buffer_len(&reader->kept) > 0 || len < RD_RELAY_HEAD_BYTES) {
        return read_kept(reader, bytes, len, used, frame);
    }
    const head head = head_of(bytes);
    reader->error = check_read(reader, &head);
    if (reader->error < 0) return reader->error;
    if (len < frame_bytes(&head)) return read_kept(reader, bytes, len, used, frame);
    *used = frame_bytes(&head);
    *frame = frame_at(bytes, &head);
    return 1;
}

rd_slice rd_relay_put_terms(char bytes[RD_RELAY_TERMS_BYTES], const rd_relay_terms *terms) {
    rd_relay_put_number(bytes, 4, terms->size);
    rd_relay_put_number(bytes + 4, 8, terms->ttl_ms);
    rd_relay_put_number(bytes + 12, 8, terms->bytes);
    return rd_slice_of(bytes, terms->bytes == 0 ? RD_RELAY_TERMS_LEAST : RD_RELAY_TERMS_BYTES);
}

rd_relay_terms rd_relay_get_terms(const rd_relay_frame *frame) {
    const char *bytes = frame->payload.ptr;
    assert(frame->payload.len >= RD_RELAY_TERMS_LEAST);
    return (rd_relay_terms){.size = (uint32_t)rd_relay_get_number(bytes, 4),
                            .ttl_ms = rd_relay_get_number(bytes + 4, 8),
                            .bytes = frame->payload.len == RD_RELAY_TERMS_BYTES
                                         ? rd_relay_get_number(bytes + 12, 8)
                                         : 0};
}

int rd_relay_head(const rd_relay_frame *frame, uint32_t payload_max,
                  char head_bytes[RD_RELAY_HEAD_BYTES]) {
    if (frame->channel.len > UINT16_MAX) return RD_ERR_RELAY_CHANNEL;
    if (frame->payload.len > UINT32_MAX) return RD_ERR_RELAY_PAYLOAD;
    const head head = {.type = frame->type,
                       .flags = frame->flags,
                       .channel_len = (uint32_t)frame->channel.len,
                       .payload_len = (uint32_t)frame->payload.len};
    const int error = check(&head, payload_max);
    if (error < 0) return error;
    head_bytes[0] = (char)frame->type;
    head_bytes[1] = (char)frame->flags;
    rd_relay_put_number(head_bytes + 2, 2, head.channel_len);
    rd_relay_put_number(head_bytes + 4, 4, head.payload_len);
    rd_relay_put_number(head_bytes + 8, 8, frame->id);
    return 0;
}

int rd_relay_write(const rd_relay_frame *frame, uint32_t payload_max, rd_buffer *out) {
    char head_bytes[RD_RELAY_HEAD_BYTES];
    const int error = rd_relay_head(frame, payload_max, head_bytes);
    if (error < 0) return error;
    rd_buffer_append(out, head_bytes, sizeof(head_bytes));
    rd_buffer_append(out, frame->channel.ptr, frame->channel.len);
    rd_buffer_append(out, frame->payload.ptr, frame->payload.len);
    return 0;
}

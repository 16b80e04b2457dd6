/* SPDX-License-Identifier: MIT
 *
 * Frames between processes; see relay.h. A frame that lies whole in the bytes is handed out where
 * it lies; only one that was cut is put together in `kept`.
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

static uint64_t read_number(const char *bytes, int len) {
    uint64_t value = 0;
    for (int i = 0; i < len; i++) value = value << 8 | (uint8_t)bytes[i];
    return value;
}

static void write_number(char *bytes, int len, uint64_t value) {
    for (int i = len - 1; i >= 0; i--, value >>= 8) bytes[i] = (char)(uint8_t)value;
}

static head head_of(const char *bytes) {
    return (head){.type = (uint8_t)bytes[0],
                  .flags = (uint8_t)bytes[1],
                  .channel_len = (uint32_t)read_number(bytes + 2, 2),
                  .payload_len = (uint32_t)read_number(bytes + 4, 4),
                  .id = read_number(bytes + 8, 8)};
}

static size_t frame_bytes(const head *head) {
    return RD_RELAY_HEAD_BYTES + (size_t)head->channel_len + head->payload_len;
}

static uint32_t payload_limit(unsigned type, uint32_t payload_max) {
    if (type == RD_RELAY_PUBLISH) return payload_max;
    return type < RD_RELAY_PUBLISH ? 0 : RD_RELAY_NOTE_MAX;
}

static int check(const head *head, uint32_t payload_max) {
    if (head->type == 0 || head->type >= RD_RELAY_TYPE_END) return RD_ERR_RELAY_TYPE;
    const unsigned flags = head->type == RD_RELAY_PUBLISH ? RD_RELAY_TEXT : RD_RELAY_PATTERN;
    if ((head->flags & ~flags) != 0) return RD_ERR_RELAY_TYPE;
    if (head->channel_len == 0 || head->channel_len > RD_CHANNEL_NAME_MAX) {
        return RD_ERR_RELAY_CHANNEL;
    }
    if (head->payload_len > payload_limit(head->type, payload_max)) return RD_ERR_RELAY_PAYLOAD;
    return 0;
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

/* Moves bytes behind the kept ones until there are `wanted`; whether there are. */
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
    reader->error = check(&head, reader->payload_max);
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
    reader->error = check(&head, reader->payload_max);
    if (reader->error < 0) return reader->error;
    if (len < frame_bytes(&head)) return read_kept(reader, bytes, len, used, frame);
    *used = frame_bytes(&head);
    *frame = frame_at(bytes, &head);
    return 1;
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
    write_number(head_bytes + 2, 2, head.channel_len);
    write_number(head_bytes + 4, 4, head.payload_len);
    write_number(head_bytes + 8, 8, frame->id);
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

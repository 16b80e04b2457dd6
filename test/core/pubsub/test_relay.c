/* SPDX-License-Identifier: MIT
 *
 * Frames between processes: what is written is read, whatever the cuts; bad heads are refused with
 * their 16th byte, before anything is kept for them, and by the writer too.
 */
#include <stdlib.h>

#include "base/error.h"
#include "check.h"
#include "pubsub/relay.h"

enum { PAYLOAD_MAX = 5000 };

static char letters[PAYLOAD_MAX + 1];

static const rd_relay_frame frames[] = {
    {RD_RELAY_SUBSCRIBE, RD_RELAY_PATTERN, 0, RD_SLICE_INIT("news.*"), {NULL, 0}},
    {RD_RELAY_SUBSCRIBE, 0, 0, RD_SLICE_INIT("x"), {NULL, 0}},
    {RD_RELAY_PUBLISH, RD_RELAY_TEXT, 1, RD_SLICE_INIT("news.sport"), RD_SLICE_INIT("a goal")},
    {RD_RELAY_PUBLISH, 0, UINT64_C(0x0102030405060708), {letters, 1024}, {letters, PAYLOAD_MAX}},
    {RD_RELAY_PUBLISH, RD_RELAY_ROOT, UINT64_MAX, RD_SLICE_INIT("\0\xff"), {NULL, 0}},
    {RD_RELAY_REPLAY, 0, 17, RD_SLICE_INIT("x"), RD_SLICE_INIT("client 5")},
    {RD_RELAY_REPLAY_BEGIN, RD_RELAY_PATTERN, 1, RD_SLICE_INIT("x"), {letters, 64}},
    {RD_RELAY_REPLAY_END, 0, 18, RD_SLICE_INIT("x"), RD_SLICE_INIT("client 5")},
    {RD_RELAY_UNSUBSCRIBE, 0, 0, RD_SLICE_INIT("x"), {NULL, 0}},
    {RD_RELAY_KEEP, RD_RELAY_PATTERN, 0, RD_SLICE_INIT("x*"), {letters, RD_RELAY_TERMS_BYTES}},
};
enum { FRAMES = sizeof(frames) / sizeof(*frames) };

static rd_buffer all_written(void) {
    rd_buffer out = {0};
    for (int i = 0; i < FRAMES; i++) CHECK_INT(rd_relay_write(&frames[i], PAYLOAD_MAX, &out), 0);
    return out;
}

static void check_same(const rd_relay_frame *frame, int number) {
    if (!CHECK(number < FRAMES)) return;
    const rd_relay_frame *expected = &frames[number];
    CHECK_INT(frame->type, expected->type);
    CHECK_INT(frame->flags, expected->flags);
    CHECK(frame->id == expected->id);
    CHECK(rd_slice_equal(frame->channel, expected->channel));
    CHECK_INT(frame->payload.len, expected->payload.len);
    CHECK(frame->payload.len == 0 || rd_slice_equal(frame->payload, expected->payload));
}

/* A block of exactly the piece's length, freed after its frames were checked. */
static int read_piece(rd_relay_reader *reader, const char *bytes, size_t len, int number) {
    char *piece = malloc(len);
    memcpy(piece, bytes, len);
    rd_relay_frame frame;
    size_t at = 0, used;
    while (rd_relay_read(reader, piece + at, len - at, &used, &frame) == 1) {
        check_same(&frame, number++);
        at += used;
    }
    CHECK_INT(reader->error, 0);
    CHECK_INT(at + used, len);
    free(piece);
    return number;
}

static void test_every_cut(void) {
    rd_buffer out = all_written();
    const size_t len = rd_buffer_len(&out);
    for (size_t step = 1; step <= len; step += step < 40 ? 1 : step / 2) {
        rd_relay_reader reader;
        rd_relay_reader_init(&reader, PAYLOAD_MAX);
        int number = 0;
        for (size_t at = 0; at < len; at += step) {
            const size_t part = len - at < step ? len - at : step;
            number = read_piece(&reader, rd_buffer_ptr(&out) + at, part, number);
        }
        CHECK_INT(number, FRAMES);
        rd_relay_reader_clear(&reader);
    }
    rd_buffer_clear(&out);
}

/* A frame that is complete in the bytes is not copied. */
static void test_whole_frames_stay_where_they_are(void) {
    rd_buffer out = all_written();
    const char *bytes = rd_buffer_ptr(&out);
    rd_relay_reader reader;
    rd_relay_frame frame;
    size_t used;
    rd_relay_reader_init(&reader, PAYLOAD_MAX);
    CHECK_INT(rd_relay_read(&reader, bytes, rd_buffer_len(&out), &used, &frame), 1);
    CHECK(frame.channel.ptr == bytes + RD_RELAY_HEAD_BYTES);
    CHECK(used == RD_RELAY_HEAD_BYTES + 6 && reader.kept.bytes == NULL);
    CHECK_INT(rd_relay_read(&reader, bytes, 0, &used, &frame), 0);
    rd_relay_reader_clear(&reader);
    rd_buffer_clear(&out);
}

static void check_refused(const char *head, int error) {
    for (size_t step = 1; step <= RD_RELAY_HEAD_BYTES; step++) {
        rd_relay_reader reader;
        rd_relay_frame frame;
        size_t at = 0, used;
        int answer = 0;
        rd_relay_reader_init(&reader, PAYLOAD_MAX);
        while (at < RD_RELAY_HEAD_BYTES) {
            const size_t left = RD_RELAY_HEAD_BYTES - at;
            CHECK_INT(answer, 0);
            answer = rd_relay_read(&reader, head + at, left < step ? left : step, &used, &frame);
            at += left < step ? left : step;
        }
        CHECK_INT(answer, error);
        CHECK_INT(rd_relay_read(&reader, head, 1, &used, &frame), error); /* the error stays */
        CHECK(reader.kept.capacity <= 512);
        rd_relay_reader_clear(&reader);
    }
}

static void test_bad_heads(void) {
    check_refused("\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0", RD_ERR_RELAY_TYPE);
    check_refused("\17\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0", RD_ERR_RELAY_TYPE);
    check_refused("\xff\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0", RD_ERR_RELAY_TYPE);
    check_refused("\1\4\0\1\0\0\0\0\0\0\0\0\0\0\0\0", RD_ERR_RELAY_TYPE);
    check_refused("\1\1\0\1\0\0\0\0\0\0\0\0\0\0\0\0", RD_ERR_RELAY_TYPE); /* text subscribe */
    check_refused("\3\2\0\1\0\0\0\0\0\0\0\0\0\0\0\0", RD_ERR_RELAY_TYPE); /* publish to a pattern */
    check_refused("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", RD_ERR_RELAY_CHANNEL);
    check_refused("\3\0\4\1\0\0\0\0\0\0\0\0\0\0\0\0", RD_ERR_RELAY_CHANNEL); /* 1025 */
    check_refused("\3\0\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0", RD_ERR_RELAY_CHANNEL);
    check_refused("\7\0\0\1\0\0\0\xb\0\0\0\0\0\0\0\0", RD_ERR_RELAY_PAYLOAD); /* without terms */
    check_refused("\1\0\0\1\0\0\0\1\0\0\0\0\0\0\0\0", RD_ERR_RELAY_PAYLOAD);
    check_refused("\4\0\0\1\0\0\0\x41\0\0\0\0\0\0\0\0", RD_ERR_RELAY_PAYLOAD);   /* 65 */
    check_refused("\3\0\0\1\0\0\x13\x89\0\0\0\0\0\0\0\0", RD_ERR_RELAY_PAYLOAD); /* 5001 */
    check_refused("\3\0\0\1\xff\xff\xff\xff\0\0\0\0\0\0\0\0", RD_ERR_RELAY_PAYLOAD);
}

static void test_the_writer_has_the_same_limits(void) {
    rd_buffer out = {0};
    const rd_slice x = RD_SLICE("x"), none = {NULL, 0};
    const struct {
        rd_relay_frame frame;
        int error;
    } rows[] = {
        {{0, 0, 0, x, none}, RD_ERR_RELAY_TYPE},
        {{RD_RELAY_TYPE_END, 0, 0, x, none}, RD_ERR_RELAY_TYPE},
        {{RD_RELAY_PUBLISH, RD_RELAY_PATTERN, 0, x, none}, RD_ERR_RELAY_TYPE},
        {{RD_RELAY_PUBLISH, RD_RELAY_CONFIRM, 0, x, {letters, 15}}, RD_ERR_RELAY_PAYLOAD},
        {{RD_RELAY_KEEP, 0, 0, x, {letters, 11}}, RD_ERR_RELAY_PAYLOAD},
        {{RD_RELAY_SAVED_IDS, 0, 0, x, {letters, 8}}, RD_ERR_RELAY_CHANNEL},
        {{RD_RELAY_PUBLISH, 0, 0, none, none}, RD_ERR_RELAY_CHANNEL},
        {{RD_RELAY_PUBLISH, 0, 0, {letters, 1025}, none}, RD_ERR_RELAY_CHANNEL},
        {{RD_RELAY_PUBLISH, 0, 0, {letters, 65536 + 1}, none}, RD_ERR_RELAY_CHANNEL},
        {{RD_RELAY_PUBLISH, 0, 0, x, {letters, PAYLOAD_MAX + 1}}, RD_ERR_RELAY_PAYLOAD},
        {{RD_RELAY_SUBSCRIBE, 0, 0, x, {letters, 1}}, RD_ERR_RELAY_PAYLOAD},
        {{RD_RELAY_REPLAY, 0, 0, x, {letters, 65}}, RD_ERR_RELAY_PAYLOAD},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK_INT(rd_relay_write(&rows[i].frame, PAYLOAD_MAX, &out), rows[i].error);
    }
    CHECK_INT(rd_buffer_len(&out), 0);
}

/* Only the saved state of a hub has these frames. From a worker they are refused. */
static void test_saved_frames(void) {
    const rd_relay_frame saved = {RD_RELAY_SAVED_IDS, 0, 7, {NULL, 0}, {letters, 8}};
    rd_buffer out = {0};
    CHECK_INT(rd_relay_write(&saved, PAYLOAD_MAX, &out), 0);
    check_refused(rd_buffer_ptr(&out), RD_ERR_RELAY_TYPE);
    rd_relay_reader reader;
    rd_relay_frame frame;
    size_t used;
    rd_relay_reader_init(&reader, PAYLOAD_MAX);
    reader.takes_saved = true;
    CHECK_INT(rd_relay_read(&reader, rd_buffer_ptr(&out), rd_buffer_len(&out), &used, &frame), 1);
    CHECK(frame.id == 7 && frame.channel.len == 0 && frame.payload.len == 8);
    rd_relay_reader_clear(&reader);
    rd_buffer_clear(&out);
    const rd_relay_frame engine = {RD_RELAY_SAVED_ENGINE, 0, 7, {NULL, 0}, {NULL, 0}};
    CHECK_INT(rd_relay_write(&engine, PAYLOAD_MAX, &out), 0);
    check_refused(rd_buffer_ptr(&out), RD_ERR_RELAY_TYPE);
    rd_buffer_clear(&out);
}

/* Those without a limit of bytes are as older versions write and read them. */
static void test_terms(void) {
    static const rd_relay_terms cases[] = {{UINT32_MAX - 1, UINT64_MAX - 2, 0},
                                           {UINT32_MAX - 1, UINT64_MAX - 2, UINT64_MAX - 3},
                                           {0, 0, 1},
                                           {0, 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char bytes[RD_RELAY_TERMS_BYTES];
        const rd_relay_frame frame = {.payload = rd_relay_put_terms(bytes, &cases[i])};
        const rd_relay_terms found = rd_relay_get_terms(&frame);
        CHECK_INT(frame.payload.len, cases[i].bytes == 0 ? 12 : 20);
        CHECK(found.size == cases[i].size && found.ttl_ms == cases[i].ttl_ms);
        CHECK(found.bytes == cases[i].bytes);
    }
}

static void test_layout(void) {
    rd_buffer out = {0};
    CHECK_INT(rd_relay_write(&frames[2], PAYLOAD_MAX, &out), 0);
    static const char expected[] = "\3\1\0\x0a\0\0\0\6\0\0\0\0\0\0\0\1news.sporta goal";
    CHECK_INT(rd_buffer_len(&out), sizeof(expected) - 1);
    CHECK(memcmp(rd_buffer_ptr(&out), expected, sizeof(expected) - 1) == 0);
    rd_buffer_clear(&out);
}

int main(void) {
    for (size_t i = 0; i < sizeof(letters); i++) letters[i] = (char)('a' + i % 26);
    test_every_cut();
    test_whole_frames_stay_where_they_are();
    test_bad_heads();
    test_the_writer_has_the_same_limits();
    test_saved_frames();
    test_terms();
    test_layout();
    return check_summary();
}

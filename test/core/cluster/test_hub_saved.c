/* SPDX-License-Identifier: MIT
 *
 * A hub that goes on in another program: at the very byte where the one before stopped.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "hub_workers.h"

typedef struct held {
    int fds[LINKS], copies[LINKS];
    int count;
} held;

static void hold(void *with, int64_t number, int fd) {
    held *held = with;
    CHECK(number > 0);
    held->fds[held->count] = fd;
    held->copies[held->count++] = dup(fd);
}

/* As with exec: the descriptors stay, and everything else is lost. */
static void replace_hub(int file) {
    held held = {.count = 0};
    rd_hub_thread_stop(hub);
    CHECK_INT(ftruncate(file, 0), 0);
    CHECK_INT(lseek(file, 0, SEEK_SET), 0);
    CHECK_INT(rd_hub_thread_save(hub, file), 0);
    rd_hub_thread_each(hub, hold, &held);
    rd_hub_thread_free(hub);
    for (int i = 0; i < held.count; i++) {
        CHECK_INT(dup2(held.copies[i], held.fds[i]), held.fds[i]);
        close(held.copies[i]);
    }
    hub = rd_hub_thread_new(limits, QUEUE);
    CHECK_INT(rd_hub_thread_restore(hub, file), 0);
    CHECK_INT(rd_hub_thread_start(hub), 0);
}

static void write_message(int number, char letter, rd_buffer *out) {
    static char payload[4000];
    memset(payload, letter, sizeof(payload));
    const int len = snprintf(payload, sizeof(payload), "%d", number);
    payload[len] = letter;
    const size_t bytes = number % 5 == 3 ? sizeof(payload) : (size_t)len;
    const rd_relay_frame frame = {RD_RELAY_PUBLISH, 0, 0, text("news"), {payload, bytes}};
    CHECK_INT(rd_relay_write(&frame, RD_RELAY_PAYLOAD_MAX, out), 0);
}

static void check_numbered(worker *worker, int number, uint64_t *last_id) {
    rd_relay_frame frame;
    char digits[16];
    (void)snprintf(digits, sizeof(digits), "%d", number);
    if (!CHECK(hear(worker, &frame)) || !CHECK_INT(frame.type, RD_RELAY_PUBLISH)) return;
    CHECK(memcmp(frame.payload.ptr, digits, strlen(digits)) == 0);
    CHECK_INT(frame.payload.len, number % 5 == 3 ? 4000 : strlen(digits));
    CHECK(frame.id > *last_id);
    *last_id = frame.id;
}

static bool is_unread(const worker *worker) {
    int bytes = 0;
    CHECK_INT(ioctl(worker->fd, SIOCOUTQ, &bytes), 0);
    return bytes > 0;
}

/* The reader reads only at the end: bytes that do not fit in its socket are queued when the hub
 * changes. The writer is cut in the middle of a frame each time. */
static void test_another_one_goes_on(void) {
    enum { CHANGES = 40, EACH = 10 };
    const int file = memfd_create("hub", MFD_CLOEXEC);
    uint64_t last_id = 0;
    rd_relay_frame frame;
    int published = 0;
    begin(2);
    CHECK_INT(rd_hub_thread_keep(hub, text("news"), false, (rd_relay_terms){1000, 0, 0}), 0);
    CHECK(hear(&workers[0], &frame) && frame.type == RD_RELAY_KEEP);
    subscribe(&workers[0], "news");
    settle(&workers[0], "news");
    for (int change = 0; change < CHANGES; change++) {
        rd_buffer out = {0};
        for (int i = 0; i < EACH; i++) write_message(published++, (char)('a' + change % 26), &out);
        const size_t cut = rd_buffer_len(&out) - 1 - (size_t)(change * 7 % 30);
        put(&workers[1], rd_buffer_ptr(&out), cut);
        while (change % 2 == 0 && is_unread(&workers[1])) continue;
        replace_hub(file);
        put(&workers[1], rd_buffer_ptr(&out) + cut, rd_buffer_len(&out) - cut);
        rd_buffer_clear(&out);
    }
    for (int i = 0; i < published; i++) check_numbered(&workers[0], i, &last_id);
    say(&workers[1], RD_RELAY_REPLAY, 0, "news", text("note"), last_id - 1);
    do {
        if (!CHECK(hear(&workers[1], &frame))) break;
    } while (frame.type != RD_RELAY_PUBLISH);
    CHECK(frame.id == last_id);
    CHECK(hear(&workers[1], &frame) && frame.type == RD_RELAY_REPLAY_END && frame.id == 0);
    close(file);
    finish();
}

/* What a new engine is told of a channel: the rule, then after which message it goes on. */
static void check_goes_on(worker *engine, uint64_t after) {
    rd_relay_frame frame;
    join_as(engine, RD_HUB_STREAMS);
    CHECK(hear(engine, &frame) && frame.type == RD_RELAY_KEEP);
    CHECK(hear(engine, &frame) && frame.type == RD_RELAY_SUBSCRIBE && frame.id == after);
}

static void begin_kept(void) {
    begin(1);
    CHECK_INT(rd_hub_thread_keep(hub, text("news"), false, (rd_relay_terms){10, 0, 0}), 0);
    subscribe(&workers[0], "news");
    settle(&workers[0], "news");
}

/* The clock of the engine may be far behind the one here. */
static void test_the_ids_of_the_engine_go_on(void) {
    const int file = memfd_create("hub", MFD_CLOEXEC);
    begin_kept();
    check_goes_on(&workers[1], 1);
    say(&workers[1], RD_RELAY_PUBLISH, 0, "news", text("one"), 70);
    check_message(&workers[0], "news", "one");
    for (int change = 0; change < 2; change++) {
        go(&workers[1]);
        rd_hub_thread_remove(hub, workers[1].number);
        replace_hub(file);
        check_goes_on(&workers[1], 70);
    }
    close(file);
    finish();
}

/* It says where channels begin. What the clock here says is nothing to it. */
static void test_an_engine_that_brought_no_message(void) {
    static const uint64_t known[] = {0, 50};
    for (size_t i = 0; i < 2; i++) {
        const int file = memfd_create("hub", MFD_CLOEXEC);
        begin_kept();
        check_goes_on(&workers[1], 1);
        const rd_relay_frame frame = {RD_RELAY_SAVED_ENGINE, 0, known[i], {NULL, 0}, {NULL, 0}};
        rd_buffer out = {0};
        rd_relay_write(&frame, RD_RELAY_PAYLOAD_MAX, &out);
        put(&workers[1], rd_buffer_ptr(&out), rd_buffer_len(&out));
        rd_buffer_clear(&out);
        say(&workers[1], RD_RELAY_PUBLISH, 0, "news", text("without an id"), 0);
        check_message(&workers[0], "news", "without an id");
        go(&workers[1]);
        rd_hub_thread_remove(hub, workers[1].number);
        replace_hub(file);
        check_goes_on(&workers[1], known[i] == 0 ? 1 : known[i]);
        close(file);
        finish();
    }
}

/* Channels of a server without an engine begin now at the first one. */
static void test_the_first_engine(void) {
    const int file = memfd_create("hub", MFD_CLOEXEC);
    begin_kept();
    replace_hub(file);
    check_goes_on(&workers[1], 1);
    close(file);
    finish();
}

/* It has no id of the engine. The last one of all is never too low. */
static void test_a_file_of_an_older_version(void) {
    static const char forgotten[8];
    const rd_relay_frame ids = {RD_RELAY_SAVED_IDS, 0, 99, {NULL, 0}, {forgotten, 8}};
    const int file = memfd_create("hub", MFD_CLOEXEC);
    rd_buffer saved = {0};
    CHECK_INT(rd_relay_write(&ids, RD_RELAY_PAYLOAD_MAX, &saved), 0);
    CHECK_INT(write(file, rd_buffer_ptr(&saved), rd_buffer_len(&saved)), rd_buffer_len(&saved));
    rd_buffer_clear(&saved);
    begin_kept();
    rd_hub_thread_stop(hub);
    CHECK_INT(rd_hub_thread_restore(hub, file), 0);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    check_goes_on(&workers[1], 99);
    close(file);
    finish();
}

static void test_a_file_that_is_none(void) {
    const int file = memfd_create("hub", MFD_CLOEXEC);
    begin(0);
    rd_hub_thread_stop(hub);
    CHECK_INT(rd_hub_thread_restore(hub, file), 0); /* an empty file restores nothing */
    CHECK(write(file, "what is this?...", 16) == 16);
    CHECK(rd_hub_thread_restore(hub, file) == -1 && errno == EINVAL);
    close(file);
    finish();
}

int main(void) {
    test_another_one_goes_on();
    test_the_ids_of_the_engine_go_on();
    test_an_engine_that_brought_no_message();
    test_the_first_engine();
    test_a_file_of_an_older_version();
    test_a_file_that_is_none();
    return check_summary();
}

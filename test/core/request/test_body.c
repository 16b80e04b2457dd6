/* SPDX-License-Identifier: MIT
 *
 * Request bodies: memory up to the limit whatever the portions, then a file without a name, the
 * same bytes either way; disks that are full. And the buffer they live in.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/error.h"
#include "check.h"
#include "disk_jobs.h"
#include "full_disk.h"
#include "loop/disk.h"
#include "request/body.h"

static rd_ledger ledger;
static rd_loop loop;
static rd_spools spools = {.folder = "/tmp"}, nowhere = {.folder = "/nonexistent"};

static int append(rd_body *body, const char *bytes, size_t len, size_t limit) {
    rd_loop_lock(&loop);
    const int code = rd_body_append(body, &loop, bytes, len, limit);
    rd_loop_unlock(&loop);
    return code;
}

static void clear(rd_body *body) {
    rd_loop_lock(&loop);
    rd_body_clear(body);
    rd_loop_unlock(&loop);
    finish_jobs(&loop);
}

static void fill(rd_body *body, size_t size, size_t portion, size_t limit) {
    char bytes[64];
    rd_body_init(body, &ledger, &spools);
    for (size_t at = 0; at < size; at += portion) {
        size_t len = size - at < portion ? size - at : portion;
        for (size_t i = 0; i < len; i++) bytes[i] = (char)('a' + (at + i) % 26);
        CHECK_INT(append(body, bytes, len, limit), 0);
    }
    finish_jobs(&loop);
}

static int file_of(const rd_body *body) {
    return body->spool == NULL ? -1 : body->spool->fd;
}

static void check_content(const rd_body *body, size_t size) {
    char bytes[50];
    uint64_t at = 0;
    for (ssize_t got; (got = rd_body_read(body, at, bytes, sizeof(bytes))) > 0;
         at += (uint64_t)got) {
        for (ssize_t i = 0; i < got; i++) {
            if (!CHECK_INT(bytes[i], 'a' + (at + (uint64_t)i) % 26)) return;
        }
    }
    CHECK_INT(at, size);
}

static void test_the_limit(void) {
    for (size_t size = 995; size <= 1005; size++) {
        for (size_t portion = 1; portion <= 64; portion *= 2) {
            rd_body body;
            fill(&body, size, portion, 1000);
            CHECK_INT(body.size, size);
            CHECK_INT(file_of(&body) >= 0, size > 1000);
            check_content(&body, size);
            clear(&body);
            CHECK(body.spool == NULL);
        }
    }
}

static void test_small_portions_are_written_together(void) {
    for (size_t portion = 1; portion <= 64; portion *= 2) {
        rd_body body;
        struct stat info;
        fill(&body, 3 * 4096 + 7, portion, 1000);
        CHECK_INT(fstat(file_of(&body), &info), 0);
        CHECK_INT(info.st_size, body.spool->stored);
        CHECK_INT(body.spool->stored + rd_buffer_len(&body.memory), body.size);
        CHECK(rd_body_is_stored(&body) && rd_buffer_len(&body.memory) <= 4096);
        check_content(&body, 3 * 4096 + 7);
        clear(&body);
    }
}

static void test_the_file_has_no_name(void) {
    rd_body body;
    struct stat info;
    fill(&body, 100, 10, 0);
    CHECK_INT(fstat(file_of(&body), &info), 0);
    CHECK_INT(info.st_nlink, 0);
    CHECK(fcntl(file_of(&body), F_GETFD) & FD_CLOEXEC);
    clear(&body);
}

static const struct {
    size_t room, portion, memory; /* of the disk; of each append; before there is a file */
    size_t kept;                  /* bytes that can still be read after the failure */
} full_disks[] = {
    {0, 10, 0, 10},    {25, 10, 0, 4110},   {25, 10, 15, 4120},      {25, 10, 40, 50},
    {64, 64, 0, 4224}, {4224, 64, 0, 8384}, {25, 5000, 5000, 10000}, {5000, 5000, 0, 10000},
};

/* No byte that came is lost, but no more bytes are accepted. */
static void test_a_full_disk(void) {
    for (size_t i = 0; i < sizeof(full_disks) / sizeof(full_disks[0]); i++) {
        char bytes[5000];
        rd_body body;
        memset(bytes, 'x', sizeof(bytes));
        rd_body_init(&body, &ledger, &spools);
        fill_disk(full_disks[i].room);
        int code = 0;
        while (code == 0 && body.size < 20000) {
            code = append(&body, bytes, full_disks[i].portion, full_disks[i].memory);
            finish_jobs(&loop);
        }
        empty_disk();
        CHECK_INT(code, RD_ERR_DISK_FULL);
        CHECK_INT(rd_body_error(&body), RD_ERR_DISK_FULL);
        CHECK_INT(body.size, full_disks[i].kept);
        uint64_t at = 0;
        for (ssize_t read; (read = rd_body_read(&body, at, bytes, sizeof(bytes))) > 0;)
            at += (uint64_t)read;
        CHECK_INT(at, full_disks[i].kept);
        int fd = file_of(&body);
        clear(&body);
        CHECK(fd < 0 || fcntl(fd, F_GETFD) < 0);
    }
}

static void test_no_folder_for_the_file(void) {
    rd_body body;
    rd_body_init(&body, &ledger, &nowhere);
    CHECK_INT(append(&body, "bytes", 5, 4), 0);
    finish_jobs(&loop);
    CHECK_INT(rd_body_error(&body), RD_ERR_DISK_FULL);
    CHECK(file_of(&body) < 0);
    clear(&body);
}

static void test_which_folder(void) {
    unsetenv("TMPDIR");
    CHECK_STR(rd_spool_folder(), "/tmp");
    setenv("TMPDIR", "relative", 1); /* is ignored */
    CHECK_STR(rd_spool_folder(), "/tmp");
    setenv("TMPDIR", "/var/tmp", 1);
    CHECK_STR(rd_spool_folder(), "/var/tmp");
    unsetenv("TMPDIR");
}

/* ---- while a write is in flight ---- */

static unsigned stored;

static void note_stored(rd_body *body) {
    stored += body->size > 0;
}

/* All bytes can be read wherever they are, and no more are taken than the queue holds. */
static void test_reading_what_is_not_written_yet(void) {
    static char bytes[65536];
    rd_body body;
    rd_body_init(&body, &ledger, &spools);
    body.on_stored = note_stored;
    stored = 0;
    hold_jobs(&loop);
    for (size_t at = 0; !rd_body_is_full(&body); at += sizeof(bytes)) {
        for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)('a' + (at + i) % 26);
        CHECK_INT(append(&body, bytes, sizeof(bytes), 0), 0);
    }
    const uint64_t size = body.size;
    CHECK(!rd_body_is_stored(&body));
    CHECK_INT(size, RD_BODY_QUEUE_BYTES + sizeof(bytes));
    check_content(&body, (size_t)size);
    release_jobs(&loop);
    finish_jobs(&loop);
    CHECK(rd_body_is_stored(&body) && !rd_body_is_full(&body));
    CHECK_INT(stored, 2);
    CHECK_INT(body.spool->stored, size);
    check_content(&body, (size_t)size);
    clear(&body);
}

/* A caller that releases a body does not wait, and is not notified. */
static void test_letting_go_of_a_write_in_flight(void) {
    rd_body body;
    rd_body_init(&body, &ledger, &spools);
    body.on_stored = note_stored;
    stored = 0;
    hold_jobs(&loop);
    CHECK_INT(append(&body, "bytes", 5, 0), 0);
    rd_loop_lock(&loop);
    rd_body_clear(&body);
    rd_loop_unlock(&loop);
    CHECK(body.size == 0 && body.spool == NULL);
    release_jobs(&loop);
    finish_jobs(&loop);
    CHECK_INT(stored, 0);
}

/* A disk may answer after the server has ended, and with it the memory that `spools` is in. */
static void test_a_thread_that_is_late(void) {
    rd_body body;
    rd_body_init(&body, &ledger, &spools);
    hold_jobs(&loop);
    CHECK_INT(append(&body, "bytes", 5, 0), 0);
    spools.folder = NULL;
    release_jobs(&loop);
    spools.folder = "/tmp";
    finish_jobs(&loop);
    CHECK_INT(rd_body_error(&body), 0);
    CHECK(file_of(&body) >= 0);
    clear(&body);
}

static uint64_t held(rd_ledger_kind kind) {
    return ledger.rows[kind].held;
}

/* A body that waits for its client keeps little, and the memory serves the next piece. */
static void test_memory_of_what_is_written(void) {
    static char bytes[100000];
    rd_body body;
    rd_body_init(&body, &ledger, &spools);
    for (int piece = 0; piece < 3; piece++) {
        const rd_buffer spare = spools.spare_count > 0 ? spools.spares[0] : (rd_buffer){0};
        hold_jobs(&loop);
        CHECK_INT(append(&body, bytes, sizeof(bytes), 0), 0);
        if (piece > 0) CHECK(body.spool->writing.bytes == spare.bytes);
        CHECK_INT(append(&body, "more", 4, 0), 0);
        release_jobs(&loop);
        finish_jobs(&loop);
        CHECK_INT(rd_buffer_len(&body.memory), 4);
        CHECK(body.memory.capacity <= 4096 && body.spool->writing.capacity == 0);
        CHECK_INT(spools.spare_count, 1);
    }
    CHECK_INT(held(RD_LEDGER_INPUT), 0);
    clear(&body);
}

/* However many bodies there are. */
static void test_spare_memory(void) {
    static char bytes[300000];
    rd_body bodies[6];
    for (size_t size = 1000; size <= sizeof(bytes); size += 99000) {
        hold_jobs(&loop);
        for (size_t i = 0; i < 6; i++) {
            rd_body_init(&bodies[i], &ledger, &spools);
            CHECK_INT(append(&bodies[i], bytes, size, 0), 0);
        }
        release_jobs(&loop);
        finish_jobs(&loop);
        for (size_t i = 0; i < 6; i++) clear(&bodies[i]);
        CHECK(spools.spare_count <= RD_SPOOL_SPARES);
        for (size_t i = 0; i < spools.spare_count; i++) {
            CHECK(spools.spares[i].capacity >= 65536 && spools.spares[i].capacity <= 524288);
        }
    }
    rd_spools_clear(&spools);
    CHECK_INT(spools.spare_count, 0);
}

static void test_buffer(void) {
    rd_buffer buf = {0};
    size_t in = 0, out = 0;
    for (unsigned round = 0; round < 2000; round++) {
        char bytes[37];
        size_t len = round % 37 + 1;
        for (size_t i = 0; i < len; i++) bytes[i] = (char)(in++ % 251);
        rd_buffer_append(&buf, bytes, len);
        size_t take = rd_buffer_len(&buf) * (round % 5) / 5;
        for (size_t i = 0; i < take; i++) {
            if (!CHECK_INT((unsigned char)rd_buffer_ptr(&buf)[i], out++ % 251)) return;
        }
        if (take > 0) rd_buffer_consume(&buf, take);
    }
    rd_buffer_consume(&buf, rd_buffer_len(&buf));
    CHECK(buf.bytes == NULL && buf.capacity == 0);
}

static void check_nothing_is_held(void) {
    for (int kind = 0; kind < RD_LEDGER_KINDS; kind++) {
        CHECK_INT(held((rd_ledger_kind)kind), 0);
    }
}

static void test_what_a_file_takes(void) {
    rd_body body, small;
    fill(&body, 5000, 64, 1000);
    fill(&small, 100, 10, 1000);
    CHECK_INT(held(RD_LEDGER_BODY_FILES), 1);
    CHECK_INT(held(RD_LEDGER_DESCRIPTORS), 1);
    CHECK_INT(held(RD_LEDGER_BODY_DISK), body.size);
    clear(&body);
    clear(&small);
    check_nothing_is_held();
}

/* The file is not even opened. */
static void test_no_descriptor_is_left(void) {
    static const rd_ledger_kind kinds[] = {RD_LEDGER_BODY_FILES, RD_LEDGER_DESCRIPTORS};
    for (size_t i = 0; i < 2; i++) {
        rd_body first, second;
        rd_ledger_limit(&ledger, kinds[i], 1);
        const uint64_t refused = ledger.rows[RD_LEDGER_BODY_FILES].refused;
        fill(&first, 2000, 10, 1000);
        fill(&second, 1000, 10, 1000);
        CHECK_INT(append(&second, "x", 1, 1000), RD_ERR_BODY_DESCRIPTOR);
        CHECK_INT(ledger.rows[RD_LEDGER_BODY_FILES].refused, refused + 1);
        CHECK(second.spool == NULL);
        check_content(&second, 1000);
        clear(&first);
        CHECK_INT(append(&second, "m", 1, 1000), 0); /* 'a' + 1000 % 26 */
        check_content(&second, 1001);
        clear(&second);
        check_nothing_is_held();
        rd_ledger_limit(&ledger, kinds[i], UINT64_MAX);
    }
}

static void test_all_bodies_take_the_disk(void) {
    char bytes[5000];
    rd_body first, second;
    memset(bytes, 'x', sizeof(bytes));
    rd_ledger_limit(&ledger, RD_LEDGER_BODY_DISK, 12000);
    fill(&first, 5000, 1, 0);
    rd_body_init(&second, &ledger, &spools);
    CHECK_INT(append(&second, bytes, sizeof(bytes), 0), 0);
    CHECK_INT(append(&second, bytes, sizeof(bytes), 0), RD_ERR_BODY_DISK);
    CHECK_INT(ledger.rows[RD_LEDGER_BODY_DISK].refused, 1);
    CHECK_INT(second.size, 5000);
    clear(&first);
    CHECK_INT(append(&second, bytes, sizeof(bytes), 0), 0);
    clear(&second);
    check_nothing_is_held();
    rd_ledger_limit(&ledger, RD_LEDGER_BODY_DISK, UINT64_MAX);
}

/* Bytes that wait for the disk are counted until they are freed, even those of a body that had to
 * leave memory. The disk may answer long after the client has gone. */
static void test_memory_that_waits_for_the_disk(void) {
    static char bytes[100000];
    static const size_t limits[] = {0, sizeof(bytes)};
    for (size_t i = 0; i < 2; i++) {
        rd_body body;
        rd_body_init(&body, &ledger, &spools);
        rd_ledger_limit(&ledger, RD_LEDGER_INPUT, 50000);
        hold_jobs(&loop);
        CHECK_INT(append(&body, bytes, sizeof(bytes), limits[i]), 0);
        CHECK(body.spool != NULL && !rd_body_is_stored(&body));
        const uint64_t counted = held(RD_LEDGER_INPUT);
        CHECK(counted >= sizeof(bytes) - RD_LEDGER_FREE);
        rd_loop_lock(&loop);
        rd_body_clear(&body);
        rd_loop_unlock(&loop);
        CHECK_INT(held(RD_LEDGER_INPUT), counted);
        release_jobs(&loop);
        finish_jobs(&loop);
        check_nothing_is_held();
    }
    rd_ledger_limit(&ledger, RD_LEDGER_INPUT, UINT64_MAX);
}

int main(void) {
    rd_ledger_init(&ledger);
    CHECK_INT(rd_loop_init(&loop, false), 0);
    test_the_limit();
    test_small_portions_are_written_together();
    test_the_file_has_no_name();
    test_a_full_disk();
    test_no_folder_for_the_file();
    test_which_folder();
    test_what_a_file_takes();
    test_no_descriptor_is_left();
    test_all_bodies_take_the_disk();
    check_nothing_is_held();
    test_reading_what_is_not_written_yet();
    test_letting_go_of_a_write_in_flight();
    test_a_thread_that_is_late();
    test_memory_that_waits_for_the_disk();
    test_memory_of_what_is_written();
    test_spare_memory();
    test_buffer();
    rd_disk_stop(&loop);
    rd_loop_clear(&loop);
    return check_summary();
}

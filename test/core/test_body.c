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
#include "full_disk.h"
#include "http/body.h"

static void fill(rd_body *body, size_t size, size_t portion, size_t limit) {
    char bytes[64];
    rd_body_init(body);
    for (size_t at = 0; at < size; at += portion) {
        size_t len = size - at < portion ? size - at : portion;
        for (size_t i = 0; i < len; i++) bytes[i] = (char)('a' + (at + i) % 26);
        CHECK_INT(rd_body_append(body, bytes, len, limit), 0);
    }
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
            CHECK_INT(body.fd >= 0, size > 1000);
            check_content(&body, size);
            rd_body_clear(&body);
            CHECK_INT(body.fd, -1);
        }
    }
}

static void test_small_portions_are_written_together(void) {
    for (size_t portion = 1; portion <= 64; portion *= 2) {
        rd_body body;
        struct stat info;
        fill(&body, 3 * 4096 + 7, portion, 1000);
        CHECK_INT(fstat(body.fd, &info), 0);
        CHECK_INT(info.st_size, body.stored);
        CHECK_INT(body.stored + rd_buffer_len(&body.memory), body.size);
        CHECK(rd_buffer_len(&body.memory) > 0);
        check_content(&body, 3 * 4096 + 7);
        rd_body_clear(&body);
    }
}

static void test_the_file_has_no_name(void) {
    rd_body body;
    struct stat info;
    fill(&body, 100, 10, 0);
    CHECK_INT(fstat(body.fd, &info), 0);
    CHECK_INT(info.st_nlink, 0);
    CHECK(fcntl(body.fd, F_GETFD) & FD_CLOEXEC);
    rd_body_clear(&body);
}

static const struct {
    size_t room, portion, memory; /* of the disk; of each append; before there is a file */
    size_t kept;                  /* bytes that can still be read after the failure */
} full_disks[] = {
    {0, 10, 0, 0},     {25, 10, 0, 4100},   {25, 10, 15, 4110},     {25, 10, 40, 40},
    {64, 64, 0, 4160}, {4224, 64, 0, 8320}, {25, 5000, 5000, 5000}, {5000, 5000, 0, 5000},
};

static void test_a_full_disk(void) {
    for (size_t i = 0; i < sizeof(full_disks) / sizeof(full_disks[0]); i++) {
        char bytes[5000];
        rd_body body;
        memset(bytes, 'x', sizeof(bytes));
        rd_body_init(&body);
        fill_disk(full_disks[i].room);
        int code = 0;
        while (code == 0 && body.size < 20000) {
            code = rd_body_append(&body, bytes, full_disks[i].portion, full_disks[i].memory);
        }
        empty_disk();
        CHECK_INT(code, RD_ERR_DISK_FULL);
        CHECK_INT(body.size, full_disks[i].kept);
        uint64_t at = 0;
        for (ssize_t read; (read = rd_body_read(&body, at, bytes, sizeof(bytes))) > 0;)
            at += (uint64_t)read;
        CHECK_INT(at, full_disks[i].kept);
        int fd = body.fd;
        rd_body_clear(&body);
        CHECK(fd < 0 || fcntl(fd, F_GETFD) < 0);
    }
}

static void test_no_folder_for_the_file(void) {
    rd_body body;
    rd_body_init(&body);
    setenv("TMPDIR", "/nonexistent", 1);
    CHECK_INT(rd_body_append(&body, "bytes", 5, 4), RD_ERR_DISK_FULL);
    CHECK(body.fd < 0 && body.size == 0);
    setenv("TMPDIR", "relative", 1); /* counts for nothing */
    CHECK_INT(rd_body_append(&body, "bytes", 5, 4), 0);
    CHECK(body.fd >= 0);
    unsetenv("TMPDIR");
    rd_body_clear(&body);
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

int main(void) {
    test_the_limit();
    test_small_portions_are_written_together();
    test_the_file_has_no_name();
    test_a_full_disk();
    test_no_folder_for_the_file();
    test_buffer();
    return check_summary();
}

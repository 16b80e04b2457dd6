/* SPDX-License-Identifier: MIT
 *
 * Whether a part of a file is in the memory of the kernel, and reading what is not, against
 * transport/warming.h; and that a connection waits for it without waiting.
 */
#include "transport/warming.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn_notes.h"
#include "disk_jobs.h"
#include "hand_clock.h"

#define SIZE (2u << 20)

static unsigned warm;

static void note_warm(void *owner) {
    CHECK(owner == &warm);
    warm++;
}

/* Under the lock, as in all tests here. */
static void finish(void) {
    rd_disk_wait_idle(&loop);
    rd_loop_run_posted(&loop);
}

static rd_file *file_of(int fd, size_t size) {
    static char bytes[SIZE];
    struct stat facts;
    CHECK_INT(pwrite(fd, bytes, size, 0), size);
    CHECK_INT(fstat(fd, &facts), 0);
    return rd_file_new(&loop, fd, facts.st_dev);
}

/* A file that was written and is no longer in memory, if the file system follows the advice. */
static rd_file *cold_file(void) {
    char path[] = "/tmp/rondo-cold-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    rd_file *file = file_of(fd, SIZE);
    unlink(path);
    CHECK_INT(fsync(fd), 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return file;
}

static rd_chunk part_of(rd_file *file, off_t offset) {
    rd_chunk part = {.kind = RD_CHUNK_FILE, .len = SIZE - (size_t)offset};
    part.file = file;
    part.offset = offset;
    part.looked_to = 0;
    return part;
}

static void test_a_part_is_read_before_it_is_sent(void) {
    rd_file *file = cold_file();
    rd_chunk part = part_of(file, 4096);
    warm = 0;
    if (!rd_warming_is_warm(&part, 65536) && file->memory == RD_FILE_WARM) {
        rd_warming_begin(&part, 65536, note_warm, &warm);
        CHECK_INT(warm, 0);
        finish();
        CHECK_INT(warm, 1);
        CHECK(rd_warming_is_warm(&part, 65536));
        CHECK_INT(part.looked_to, 4096 + 65536);
        part.offset += 65536;
        part.len -= 65536;
        CHECK(rd_warming_is_warm(&part, 65536)); /* one job reads more than 64 KiB */
    }
    CHECK_INT(file->refs, 1);
    rd_file_unref(file);
    finish();
}

/* There is no disk behind this file. The first job finds that out. */
static void test_files_in_memory(void) {
    rd_file *file = file_of(memfd_create("memory", MFD_CLOEXEC), SIZE);
    rd_chunk part = part_of(file, 0);
    warm = 0;
    if (!rd_warming_is_warm(&part, 65536)) {
        CHECK_INT(file->memory, RD_FILE_BLIND);
        rd_warming_begin(&part, 65536, note_warm, &warm);
        finish();
        CHECK_INT(warm, 1);
        CHECK_INT(file->memory, RD_FILE_IS_MEMORY);
    }
    CHECK(rd_warming_is_warm(&part, 65536));
    rd_file_unref(file);
    finish();
}

/* The send reports what is wrong with the file. */
static void test_parts_that_cannot_be_read(void) {
    int fds[2];
    CHECK_INT(pipe(fds), 0);
    rd_file *file = rd_file_new(&loop, fds[0], 0);
    rd_chunk part = part_of(file, 0);
    warm = 0;
    rd_warming_begin(&part, 65536, note_warm, &warm);
    finish();
    CHECK_INT(warm, 1);
    rd_file_unref(file);
    finish();
    close(fds[1]);
}

/* ---- on a connection ---- */

static rd_conn *conn;
static int peer;

static void open_conn(void) {
    rd_address nobody = {0};
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    peer = pair[1];
    conn = rd_conn_open(&set, pair[0], &rd_transport_tcp, &notes, &nobody);
    rd_conn_read_now(conn);
}

static void turn(void) {
    rd_conn_set_flush(&set);
    rd_conn_set_send_long(&set);
    rd_loop_wait(&loop, &found, 0);
    rd_loop_process(&loop, &found);
}

/* A file whose memory cannot be checked: a job reads each slice, and the queue waits meanwhile. */
static void queue_blind_file(rd_file *file) {
    file->memory = RD_FILE_BLIND;
    rd_outq_copy(&conn->out, &set.chunks, "head", 4);
    rd_outq_file(&conn->out, file, 0, SIZE);
    rd_outq_copy(&conn->out, &set.chunks, "end", 3);
    rd_conn_mark_dirty(conn);
}

static size_t take(void) {
    static char bytes[65536];
    size_t total = 0;
    for (ssize_t got; (got = recv(peer, bytes, sizeof(bytes), 0)) > 0;) total += (size_t)got;
    return total;
}

static void test_a_connection_stands_still_meanwhile(void) {
    rd_file *file = cold_file();
    open_conn();
    queue_blind_file(file);
    rd_loop_unlock(&loop);
    hold_volume(&loop, file->volume);
    rd_loop_lock(&loop);
    turn();
    CHECK_INT(take(), 4);
    CHECK(conn->warming && !(conn->source.interest & RD_WRITABLE));
    CHECK_INT(rd_conn_write_deadline(conn), UINT64_MAX);
    pass_ms(10 * 60 * 1000); /* this time does not count against the peer */
    turn();
    CHECK_INT(take(), 0);
    CHECK_INT(set.write_timeouts, 0);
    release_jobs(&loop);
    size_t total = 4;
    for (int i = 0; i < 400 && total < SIZE + 7; i++) {
        finish();
        turn();
        total += take();
    }
    CHECK_INT(total, SIZE + 7);
    CHECK_INT(conn->out.bytes, 0);
    rd_file_unref(file);
    rd_conn_close(conn);
    close(peer);
    finish();
    turn();
}

static void test_a_connection_that_ends_meanwhile(void) {
    rd_file *file = cold_file();
    open_conn();
    queue_blind_file(file);
    rd_loop_unlock(&loop);
    hold_volume(&loop, file->volume);
    rd_loop_lock(&loop);
    turn();
    rd_file_unref(file);
    rd_conn_close(conn);
    turn();
    CHECK_INT(set.count, 0);
    CHECK_INT(file->refs, 1); /* the reference of the job */
    release_jobs(&loop);
    finish();
    turn();
    close(peer);
}

static void test_all(void) {
    test_a_part_is_read_before_it_is_sent();
    test_files_in_memory();
    test_parts_that_cannot_be_read();
    test_a_connection_stands_still_meanwhile();
    test_a_connection_that_ends_meanwhile();
    finish();
}

int main(void) {
    return check_on_both_pollers(test_all);
}

/* SPDX-License-Identifier: MIT
 *
 * Output queues: what was put in comes out in order whatever the sizes sent, releases run once
 * and at their byte, files end a gathering, blocks go back to their pool.
 */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"
#include "disk_jobs.h"
#include "transport/outq.h"

static rd_loop loop;
static unsigned released;

static void count_release(rd_release *release) {
    (void)release;
    released++;
}

static size_t drain(rd_outq *queue, rd_chunk_pool *pool, char *to, size_t step, size_t limit) {
    struct iovec iov[8];
    size_t total = 0;
    int count;
    while ((count = rd_outq_gather(queue, iov, 8, limit)) > 0) {
        size_t left = step;
        for (int i = 0; i < count && left > 0; i++) {
            size_t part = iov[i].iov_len < left ? iov[i].iov_len : left;
            memcpy(to + total, iov[i].iov_base, part);
            total += part;
            left -= part;
        }
        rd_outq_advance(queue, pool, step - left);
    }
    return total;
}

static void test_every_step_size(void) {
    static char big[20000], out[40000];
    memset(big, 'b', sizeof(big));
    for (size_t step = 1; step < 9000; step = step * 3 + 1) {
        rd_chunk_pool pool = {0};
        rd_outq queue = {0};
        rd_release release = {count_release};
        released = 0;
        rd_outq_copy(&queue, &pool, "head", 4);
        rd_outq_borrow(&queue, "borrowed", 8, &release);
        rd_outq_copy(&queue, &pool, big, sizeof(big));
        memcpy(rd_outq_reserve(&queue, &pool, 4), "tail", 4);
        rd_outq_commit(&queue, 4);
        CHECK_INT(queue.bytes, 16 + sizeof(big));
        size_t total = drain(&queue, &pool, out, step, 5000);
        CHECK_INT(total, 16 + sizeof(big));
        CHECK(memcmp(out, "headborrowed", 12) == 0);
        CHECK(memcmp(out + 12, big, sizeof(big)) == 0);
        CHECK(memcmp(out + 12 + sizeof(big), "tail", 4) == 0);
        CHECK_INT(released, 1);
        CHECK(queue.last == NULL && queue.bytes == 0);
        CHECK_INT(queue.memory, 0);
        rd_chunk_pool_clear(&pool);
    }
}

/* One chunk of every kind, a file in the middle, as the bytes 0 to 39. */
enum { BORROWED_END = 20, FILE_END = 30, MIXED = 40 };

static void fill_mixed(rd_outq *queue, rd_chunk_pool *pool, rd_release *release, int fd) {
    static const char text[] = "0123456789ABCDEFGHIJ----------abcdefghij";
    rd_outq_copy(queue, pool, text, 10);
    rd_outq_borrow(queue, text + 10, 10, release);
    rd_file *file = rd_file_new(&loop, fd, 0);
    rd_outq_file(queue, file, 100, 10);
    rd_file_unref(file);
    rd_outq_copy(queue, pool, text + FILE_END, 10);
}

/* The kind and position of the queue's first byte. */
static int position(const rd_outq *queue) {
    struct iovec iov[4];
    const rd_chunk *first = rd_outq_first(queue);
    if (first == NULL) return MIXED;
    if (first->kind == RD_CHUNK_FILE) return (int)first->offset - 80;
    if (!CHECK(rd_outq_gather(queue, iov, 4, 1) == 1 && iov[0].iov_len == 1)) return -1;
    char byte = *(const char *)iov[0].iov_base;
    if (byte >= 'a') return FILE_END + byte - 'a';
    return byte >= 'A' ? 10 + byte - 'A' : byte - '0';
}

static void check_at(const rd_outq *queue, int fd, int sent) {
    CHECK_INT(position(queue), sent);
    CHECK_INT(queue->bytes, MIXED - sent);
    CHECK_INT(released, sent >= BORROWED_END);
    if (sent >= FILE_END) finish_jobs(&loop);
    CHECK_INT(fcntl(fd, F_GETFD) < 0, sent >= FILE_END);
}

/* A socket may take any part of the bytes: every pair of positions where it stops. */
static void test_every_partial_write(void) {
    rd_chunk_pool pool = {0};
    for (int first = 0; first <= MIXED; first++) {
        for (int second = first; second <= MIXED; second++) {
            rd_outq queue = {0};
            rd_release release = {count_release};
            int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
            released = 0;
            fill_mixed(&queue, &pool, &release, fd);
            rd_outq_advance(&queue, &pool, (size_t)first);
            check_at(&queue, fd, first);
            rd_outq_advance(&queue, &pool, (size_t)(second - first));
            check_at(&queue, fd, second);
            rd_outq_clear(&queue, &pool);
            finish_jobs(&loop);
            CHECK_INT(released, 1);
            CHECK(fcntl(fd, F_GETFD) < 0);
        }
    }
    rd_chunk_pool_clear(&pool);
}

static void test_limits_of_a_gathering(void) {
    rd_chunk_pool pool = {0};
    rd_outq queue = {0};
    rd_release releases[4] = {{count_release}, {count_release}, {count_release}, {count_release}};
    struct iovec iov[4];
    for (int i = 0; i < 4; i++) rd_outq_borrow(&queue, "12345", 5, &releases[i]);
    for (int count = 0; count <= 4; count++) {
        for (size_t limit = 0; limit <= 20; limit++) {
            size_t total = 0;
            int found = rd_outq_gather(&queue, iov, count, limit);
            for (int i = 0; i < found; i++) total += iov[i].iov_len;
            size_t most = 5 * (size_t)count;
            CHECK_INT(total, limit < most ? limit : most);
            CHECK_INT(found, (total + 4) / 5);
        }
    }
    rd_outq_clear(&queue, &pool);
    rd_chunk_pool_clear(&pool);
}

static void test_files_end_a_gathering(void) {
    rd_chunk_pool pool = {0};
    rd_outq queue = {0};
    struct iovec iov[4];
    int fds[2];
    CHECK_INT(pipe(fds), 0);
    rd_outq_copy(&queue, &pool, "a", 1);
    rd_file *file = rd_file_new(&loop, fds[0], 0);
    rd_outq_file(&queue, file, 0, 10);
    rd_file_unref(file);
    rd_outq_copy(&queue, &pool, "b", 1);
    CHECK_INT(queue.bytes, 12);
    /* Two blocks, and a chunk for the file: its bytes take no memory. */
    CHECK_INT(queue.memory, 3 * sizeof(rd_chunk) + 2 * RD_CHUNK_BLOCK_BYTES);
    CHECK_INT(rd_outq_gather(&queue, iov, 4, 100), 1);
    rd_outq_advance(&queue, &pool, 1);
    CHECK_INT(rd_outq_gather(&queue, iov, 4, 100), 0);
    rd_outq_advance(&queue, &pool, 4);
    CHECK_INT(rd_outq_first(&queue)->len, 6);
    CHECK_INT(rd_outq_first(&queue)->offset, 4);
    CHECK_INT(queue.memory, 2 * sizeof(rd_chunk) + RD_CHUNK_BLOCK_BYTES);
    rd_outq_advance(&queue, &pool, 6);
    finish_jobs(&loop);
    CHECK(write(fds[1], "x", 1) < 0 || close(fds[0]) != 0); /* the queue closed it */
    CHECK_INT(rd_outq_gather(&queue, iov, 4, 100), 1);
    rd_outq_clear(&queue, &pool);
    rd_chunk_pool_clear(&pool);
    close(fds[1]);
}

static void test_clear_releases(void) {
    rd_chunk_pool pool = {0};
    rd_outq queue = {0};
    rd_release releases[3] = {{count_release}, {count_release}, {count_release}};
    released = 0;
    for (int i = 0; i < 3; i++) rd_outq_borrow(&queue, "x", 1, &releases[i]);
    rd_outq_clear(&queue, &pool);
    CHECK_INT(released, 3);
    rd_outq_copy(&queue, &pool, "y", 1);
    const rd_chunk *block = rd_outq_first(&queue);
    rd_outq_clear(&queue, &pool);
    CHECK_INT(pool.count, 1);
    rd_outq_copy(&queue, &pool, "z", 1);
    CHECK(rd_outq_first(&queue) == block);
    rd_outq_clear(&queue, &pool);
    rd_chunk_pool_clear(&pool);
}

/* A burst of messages to many clients: what is free afterwards serves the next burst, up to a
 * limit. */
static void test_shared_chunks_come_back(void) {
    enum { MANY = 20000 };
    rd_chunk_pool pool = {0};
    rd_outq queue = {0};
    rd_release release = {count_release};
    released = 0;
    for (int burst = 1; burst <= 2; burst++) {
        for (int i = 0; i < MANY; i++) rd_outq_share(&queue, &pool, "shared", 6, &release);
        CHECK_INT(pool.small_count, 0);
        CHECK_INT(queue.shared, 6 * MANY);
        rd_outq_advance(&queue, &pool, 6 * MANY);
        CHECK_INT(released, burst * MANY);
        CHECK(pool.small_count * sizeof(rd_chunk) <= 1 << 19);
    }
    const rd_chunk *chunk = pool.small;
    rd_outq_share(&queue, &pool, "shared", 6, &release);
    CHECK(rd_outq_first(&queue) == chunk);
    rd_outq_borrow(&queue, "one client's", 12, &release);
    const uint32_t count = pool.small_count;
    rd_outq_clear(&queue, &pool);
    CHECK_INT(pool.small_count, count + 1); /* what is not shared is not kept */
    rd_chunk_pool_clear(&pool);
    CHECK(pool.small == NULL && pool.small_count == 0);
}

static void add_text(void *with, rd_slice bytes) {
    (void)strncat(with, bytes.ptr, bytes.len);
}

static void test_what_is_left(void) {
    rd_chunk_pool pool = {0};
    rd_outq queue = {0};
    rd_release release = {count_release};
    rd_outq_copy(&queue, &pool, "copied", 6);
    rd_outq_borrow(&queue, " borrowed", 9, &release);
    for (size_t sent = 0; sent < 15; sent++) {
        char left[16] = "";
        rd_outq_each(&queue, add_text, left);
        CHECK_STR(left, &"copied borrowed"[sent]);
        rd_outq_advance(&queue, &pool, 1);
    }
    rd_outq_clear(&queue, &pool);
    rd_chunk_pool_clear(&pool);
}

int main(void) {
    CHECK_INT(rd_loop_init(&loop, false), 0);
    test_what_is_left();
    (void)signal(SIGPIPE, SIG_IGN);
    test_every_step_size();
    test_every_partial_write();
    test_limits_of_a_gathering();
    test_files_end_a_gathering();
    test_clear_releases();
    test_shared_chunks_come_back();
    rd_disk_stop(&loop);
    rd_loop_clear(&loop);
    return check_summary();
}

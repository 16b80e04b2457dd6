/* SPDX-License-Identifier: MIT
 *
 * Requests and their pool: references, what a request used again must not remember, heads of every
 * size, bodies that end with their request.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "check.h"
#include "disk_jobs.h"
#include "full_disk.h"
#include "request/request.h"

static rd_ledger ledger;
static rd_request_pool pool = {.ledger = &ledger, .spools = {.folder = "/tmp"}};
static rd_loop loop;

static void test_references(void) {
    rd_request *request = rd_request_new(&pool);
    CHECK_INT(pool.live, 1);
    rd_request_ref(request);
    rd_request_unref(request);
    CHECK_INT(pool.live, 1);
    rd_request_unref(request);
    CHECK_INT(pool.live, 0);
    CHECK_INT(pool.count, 1);
    CHECK(rd_request_new(&pool) == request); /* the one freed last */
    CHECK_INT(pool.count, 0);
    rd_request_unref(request);
}

/* A request that is kept beyond its call is live while its client is there, in whichever order both
 * end. */
static void test_live_with_a_client_or_a_call(void) {
    for (int client_first = 0; client_first < 2; client_first++) {
        rd_request *request = rd_request_new(&pool);
        CHECK(!request->kept && request->is_live);
        if (client_first) {
            rd_request_set_gone(request);
        } else {
            rd_request_keep(request);
        }
        CHECK_INT(pool.live, 1);
        if (client_first) {
            rd_request_keep(request);
        } else {
            rd_request_set_gone(request);
        }
        CHECK_INT(pool.live, 0);
        rd_request_unref(request);
        CHECK_INT(pool.live, 0);
    }
}

static void use_every_field(rd_request *request, rd_list *queue) {
    rd_list_append(queue, &request->in_queue);
    request->bytes_out = 9;
    request->times.ready_ns = request->times.taken_ns = 3;
    request->body_error = request->status = 500;
    request->body_complete = request->gone = true;
    request->drop_body = request->detached = true;
    request->head.header_count = 1;
    rd_request_keep_head(request, "GET", 3);
    CHECK_INT(rd_body_append(&request->body, &loop, "body", 4, 64), 0);
}

static void test_nothing_is_remembered(void) {
    rd_list queue;
    rd_list_init(&queue);
    rd_request *request = rd_request_new(&pool);
    use_every_field(request, &queue);
    rd_request_unref(request);
    CHECK(rd_list_is_empty(&queue));
    CHECK(rd_request_new(&pool) == request);
    CHECK(request->conn == NULL && request->responder == NULL);
    CHECK_INT(request->bytes_out, 0);
    CHECK_INT(request->times.ready_ns + request->times.taken_ns, 0);
    CHECK_INT(request->body_error, 0);
    CHECK_INT(request->status, 0);
    CHECK(!request->body_complete && !request->gone);
    CHECK(!request->drop_body && !request->detached);
    CHECK_INT(request->head.header_count, 0);
    CHECK_INT(request->body.size, 0);
    CHECK(request->body.spool == NULL && rd_buffer_len(&request->body.memory) == 0);
    rd_request_unref(request);
}

static void test_heads_of_every_size(void) {
    static char bytes[3 * RD_REQUEST_INLINE_BYTES];
    static const size_t sizes[] = {1, RD_REQUEST_INLINE_BYTES, RD_REQUEST_INLINE_BYTES + 1,
                                   sizeof(bytes)};
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)('a' + i % 26);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        rd_request *request = rd_request_new(&pool);
        CHECK(request->bytes == request->inline_bytes);
        rd_request_keep_head(request, bytes, sizes[i]);
        CHECK_INT(request->bytes == request->inline_bytes, sizes[i] <= RD_REQUEST_INLINE_BYTES);
        CHECK(memcmp(request->bytes, bytes, sizes[i]) == 0);
        rd_span all = {0, (uint32_t)sizes[i]};
        CHECK_INT(rd_request_slice(request, all).len, sizes[i]);
        rd_request_unref(request);
    }
}

static void test_a_body_ends_with_its_request(void) {
    rd_request *request = rd_request_new(&pool);
    CHECK_INT(rd_body_append(&request->body, &loop, "long", 4, 2), 0);
    finish_jobs(&loop);
    int fd = request->body.spool->fd;
    CHECK(fcntl(fd, F_GETFD) >= 0);
    rd_request_unref(request);
    finish_jobs(&loop);
    CHECK(fcntl(fd, F_GETFD) < 0);
}

/* A file that stored nothing, or only a part, is not given to the next request. */
static void test_a_body_that_failed_ends_with_its_request(void) {
    rd_request *request = rd_request_new(&pool);
    fill_disk(3);
    CHECK_INT(rd_body_append(&request->body, &loop, "secret", 6, 0), 0);
    finish_jobs(&loop);
    CHECK_INT(rd_body_error(&request->body), RD_ERR_DISK_FULL);
    empty_disk();
    int fd = request->body.spool->fd;
    rd_request_unref(request);
    finish_jobs(&loop);
    CHECK(fcntl(fd, F_GETFD) < 0);
    CHECK(rd_request_new(&pool) == request);
    CHECK_INT(rd_body_append(&request->body, &loop, "next", 4, 64), 0);
    char bytes[8];
    CHECK_INT(rd_body_read(&request->body, 0, bytes, sizeof(bytes)), 4);
    CHECK_BYTES(bytes, 4, "next");
    rd_request_unref(request);
}

/* The pool keeps some requests, not all. The others are freed (the sanitizer checks it). */
static void test_the_pool_is_bounded(void) {
    static rd_request *many[200];
    for (size_t i = 0; i < 200; i++) many[i] = rd_request_new(&pool);
    CHECK_INT(pool.live, 200);
    for (size_t i = 0; i < 200; i++) rd_request_unref(many[i]);
    CHECK_INT(pool.live, 0);
    CHECK(pool.count > 0 && pool.count < 200);
    rd_request_pool_clear(&pool);
    CHECK_INT(pool.count, 0);
    CHECK(pool.free == NULL);
}

int main(void) {
    rd_ledger_init(&ledger);
    CHECK_INT(rd_loop_init(&loop, false), 0);
    test_references();
    test_live_with_a_client_or_a_call();
    test_nothing_is_remembered();
    test_heads_of_every_size();
    test_a_body_ends_with_its_request();
    test_a_body_that_failed_ends_with_its_request();
    test_the_pool_is_bounded();
    rd_disk_stop(&loop);
    rd_loop_clear(&loop);
    return check_summary();
}

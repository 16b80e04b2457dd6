/* SPDX-License-Identifier: MIT
 *
 * Requests and their pool; see request.h. The pool hands out the one freed last, which is still
 * in the cache.
 */
#include "http/request.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define POOL_MAX 64

rd_request *rd_request_new(rd_request_pool *pool) {
    rd_request *request = pool->free;
    if (request != NULL) {
        pool->free = request->next_free;
        pool->count--;
    } else {
        request = rd_alloc(sizeof(*request));
        rd_head_init(&request->head);
        rd_list_init(&request->in_queue);
        rd_list_init(&request->waiters);
        request->bytes = request->inline_bytes;
        rd_body_init(&request->body);
        request->pool = pool;
    }
    pool->live++;
    request->conn = NULL;
    request->responder = NULL;
    request->bytes_out = 0;
    request->refs = 1;
    request->ready_ns = request->taken_ns = 0;
    request->body_error = request->status = 0;
    request->body_complete = request->gone = request->drop_body = false;
    request->detached = request->timed_out = request->reported = false;
    return request;
}

void rd_request_ref(rd_request *request) {
    request->refs++;
}

static void free_request(rd_request *request) {
    rd_head_clear(&request->head);
    rd_free(request);
}

void rd_request_unref(rd_request *request) {
    assert(request->refs > 0);
    if (--request->refs > 0) return;
    rd_request_pool *pool = request->pool;
    if (rd_list_is_linked(&request->in_queue)) rd_list_unlink(&request->in_queue);
    if (request->bytes != request->inline_bytes) rd_free(request->bytes);
    request->bytes = request->inline_bytes;
    if (request->body.size > 0 || request->body.fd >= 0) rd_body_clear(&request->body);
    pool->live--;
    if (pool->count >= POOL_MAX) {
        free_request(request);
        return;
    }
    rd_head_reset(&request->head);
    request->next_free = pool->free;
    pool->free = request;
    pool->count++;
}

void rd_request_wake(rd_request *request) {
    for (rd_list *node; (node = rd_list_shift(&request->waiters)) != NULL;) {
        rd_waiter *waiter = RD_CONTAINER(node, rd_waiter, node);
        waiter->wake(waiter);
    }
}

void rd_request_pool_clear(rd_request_pool *pool) {
    while (pool->free != NULL) {
        rd_request *request = pool->free;
        pool->free = request->next_free;
        free_request(request);
    }
    pool->count = 0;
}

void rd_request_keep_head(rd_request *request, const char *bytes, size_t len) {
    if (len > RD_REQUEST_INLINE_BYTES) request->bytes = rd_alloc(len);
    request->head_len = (uint32_t)len;
    memcpy(request->bytes, bytes, len);
}

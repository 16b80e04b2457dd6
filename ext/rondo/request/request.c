/* SPDX-License-Identifier: MIT
 *
 * Requests and their pool; see request.h. The pool hands out the request that was freed last, which
 * is still in the cache.
 */
#include "request/request.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "system/clock.h"

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
        rd_list_init(&request->queued.by_age);
        rd_list_init(&request->queued.standing.node);
        request->queued.standing.is_line = false;
        request->queued.place = RD_PLACE_NONE;
        request->queued.urgency = RD_URGENCY_DEFAULT;
        request->queued.is_out = false;
        rd_list_init(&request->waiters);
        request->bytes = request->inline_bytes;
        rd_body_init(&request->body, pool->ledger, &pool->spools);
        request->pool = pool;
        request->head_counted = 0;
        request->site = 0;
    }
    pool->live++;
    request->conn = NULL;
    request->responder = NULL;
    request->bytes_out = 0;
    request->refs = 1;
    request->times = (rd_request_times){0};
    request->body_error = request->status = 0;
    request->body_complete = request->gone = request->drop_body = false;
    request->detached = request->timed_out = request->reported = request->kept = false;
    request->hung = false;
    request->is_live = true;
    return request;
}

void rd_request_ref(rd_request *request) {
    request->refs++;
}

static void free_request(rd_request *request) {
    rd_head_clear(&request->head);
    rd_free(request);
}

static void drop_head(rd_request *request) {
    rd_free(request->bytes);
    request->bytes = request->inline_bytes;
    rd_ledger_keep(request->pool->ledger, RD_LEDGER_INPUT, &request->head_counted, 0);
}

static void end_live(rd_request *request) {
    if (!request->is_live) return;
    request->is_live = false;
    request->pool->live--;
}

void rd_request_keep(rd_request *request) {
    request->kept = true;
    if (request->gone) end_live(request);
}

void rd_request_set_gone(rd_request *request) {
    request->gone = true;
    if (request->kept) end_live(request);
}

void rd_request_set_hung(rd_request *request) {
    request->hung = true;
    end_live(request);
}

void rd_request_unref(rd_request *request) {
    assert(request->refs > 0);
    if (--request->refs > 0) return;
    rd_request_pool *pool = request->pool;
    if (rd_list_is_linked(&request->in_queue)) rd_list_unlink(&request->in_queue);
    if (request->bytes != request->inline_bytes) drop_head(request);
    if (request->body.size > 0 || request->body.spool != NULL) rd_body_clear(&request->body);
    end_live(request);
    if (pool->count >= POOL_MAX) {
        free_request(request);
        return;
    }
    rd_head_reset(&request->head);
    request->next_free = pool->free;
    pool->free = request;
    pool->count++;
}

void rd_request_begin_wait(rd_request *request, rd_waiter *waiter) {
    if (request->times.client_since_ns == 0) request->times.client_since_ns = rd_clock_ns();
    rd_list_append(&request->waiters, &waiter->node);
}

static void count_wait(rd_request *request) {
    if (request->times.client_since_ns == 0 || !rd_list_is_empty(&request->waiters)) return;
    request->times.client_ns += rd_clock_ns() - request->times.client_since_ns;
    request->times.client_since_ns = 0;
}

void rd_request_end_wait(rd_request *request, rd_waiter *waiter) {
    if (rd_list_is_linked(&waiter->node)) rd_list_unlink(&waiter->node);
    count_wait(request);
}

uint64_t rd_request_begun_ns(const rd_request *request, uint64_t now_ns) {
    const rd_request_times *times = &request->times;
    const uint64_t since = times->client_since_ns;
    return times->taken_ns + times->client_ns + (since > 0 && now_ns > since ? now_ns - since : 0);
}

void rd_request_wake(rd_request *request) {
    for (rd_list *node; (node = rd_list_shift(&request->waiters)) != NULL;) {
        rd_waiter *waiter = RD_CONTAINER(node, rd_waiter, node);
        waiter->wake(waiter);
    }
    count_wait(request);
}

/* Whether the application has the whole body, in a call or through a stream that it left open. */
static bool can_be_read_on(const rd_request *request) {
    const bool in_call = request->times.taken_ns > 0 && rd_list_is_linked(&request->in_queue);
    return request->body_complete && (in_call || request->kept);
}

void rd_request_pool_abandon(rd_request_pool *pool) {
    for (rd_spool *spool = pool->spools.first; spool != NULL; spool = spool->next) {
        if (atomic_load_explicit(&spool->abandoned, memory_order_relaxed)) continue;
        spool->is_kept = can_be_read_on(RD_CONTAINER(spool->owner, rd_request, body));
    }
    rd_spools_abandon(&pool->spools);
}

void rd_request_pool_clear(rd_request_pool *pool) {
    while (pool->free != NULL) {
        rd_request *request = pool->free;
        pool->free = request->next_free;
        free_request(request);
    }
    pool->count = 0;
    rd_spools_clear(&pool->spools);
}

bool rd_request_keep_head(rd_request *request, const char *bytes, size_t len) {
    request->head_len = (uint32_t)len;
    if (len > RD_REQUEST_INLINE_BYTES) request->bytes = rd_alloc(len);
    memcpy(request->bytes, bytes, len);
    return len <= RD_LEDGER_FREE ||
           rd_ledger_resize(request->pool->ledger, RD_LEDGER_INPUT, &request->head_counted, len);
}

/* A connection has few streams at a time, so the walk is short; most requests are as urgent as the
 * last one. */
void rd_request_join_line(rd_request *request, rd_line *line) {
    rd_list *before = &line->waiting;
    while (before->prev != &line->waiting &&
           RD_CONTAINER(before->prev, rd_request, in_queue)->queued.urgency >
               request->queued.urgency) {
        before = before->prev;
    }
    rd_list_insert_before(before, &request->in_queue);
}

void rd_request_set_urgency(rd_request *request, uint8_t urgency) {
    const rd_queued *queued = &request->queued;
    const bool waits = queued->place == RD_PLACE_WAITING || queued->place == RD_PLACE_FILES;
    request->queued.urgency = urgency;
    if (!waits || queued->line == NULL) return;
    rd_list_unlink(&request->in_queue);
    rd_request_join_line(request, queued->line);
}

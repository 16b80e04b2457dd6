/* SPDX-License-Identifier: MIT
 *
 * The output queue and its pool of blocks; see outq.h.
 */
#include "transport/outq.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

#define POOL_MAX  64
#define SMALL_MAX 8192 /* half a MiB */

static char *chunk_bytes(rd_chunk *chunk) {
    return (char *)(chunk + 1);
}

static rd_chunk *copied_chunk(rd_chunk_pool *pool, size_t capacity) {
    rd_chunk *chunk;
    if (capacity <= RD_CHUNK_BLOCK_BYTES && pool->free != NULL) {
        chunk = pool->free;
        pool->free = chunk->next;
        pool->count--;
    } else {
        if (capacity < RD_CHUNK_BLOCK_BYTES) capacity = RD_CHUNK_BLOCK_BYTES;
        chunk = rd_alloc(sizeof(*chunk) + capacity);
        chunk->capacity = (uint32_t)capacity;
        chunk->kind = RD_CHUNK_COPIED;
    }
    chunk->next = NULL;
    chunk->is_shared = false;
    chunk->at = 0;
    chunk->len = 0;
    return chunk;
}

static void free_chunk(rd_chunk *chunk, rd_chunk_pool *pool) {
    if (chunk->kind == RD_CHUNK_COPIED && chunk->capacity == RD_CHUNK_BLOCK_BYTES &&
        pool->count < POOL_MAX) {
        chunk->next = pool->free;
        pool->free = chunk;
        pool->count++;
        return;
    }
    if (chunk->kind == RD_CHUNK_BORROWED) {
        chunk->release->run(chunk->release);
        if (chunk->is_shared && pool->small_count < SMALL_MAX) {
            chunk->next = pool->small;
            pool->small = chunk;
            pool->small_count++;
            return;
        }
    }
    if (chunk->kind == RD_CHUNK_FILE) rd_file_unref(chunk->file);
    rd_free(chunk);
}

static rd_chunk *small_chunk(rd_chunk_pool *pool) {
    rd_chunk *chunk = pool->small;
    if (chunk == NULL) return rd_alloc(sizeof(*chunk));
    pool->small = chunk->next;
    pool->small_count--;
    return chunk;
}

static void free_list(rd_chunk *chunk) {
    while (chunk != NULL) {
        rd_chunk *next = chunk->next;
        rd_free(chunk);
        chunk = next;
    }
}

void rd_chunk_pool_clear(rd_chunk_pool *pool) {
    free_list(pool->free);
    free_list(pool->small);
    *pool = (rd_chunk_pool){0};
}

static size_t room_in(const rd_chunk *chunk) {
    if (chunk == NULL || chunk->kind != RD_CHUNK_COPIED) return 0;
    return chunk->capacity - chunk->at - chunk->len;
}

static size_t overhead_of(const rd_chunk *chunk) {
    return sizeof(*chunk) + room_in(chunk);
}

/* `len` bytes of the chunk were sent or dropped. */
static void uncount(rd_outq *queue, const rd_chunk *chunk, size_t len) {
    queue->bytes -= len;
    if (chunk->kind != RD_CHUNK_FILE) queue->memory -= len;
    if (chunk->is_shared) queue->shared -= len;
}

static void append(rd_outq *queue, rd_chunk *chunk) {
    chunk->next = chunk;
    if (queue->last != NULL) {
        chunk->next = queue->last->next;
        queue->last->next = chunk;
    }
    queue->last = chunk;
    queue->bytes += chunk->len;
    queue->memory += overhead_of(chunk);
    if (chunk->kind != RD_CHUNK_FILE) queue->memory += chunk->len;
    if (chunk->is_shared) queue->shared += chunk->len;
}

char *rd_outq_reserve(rd_outq *queue, rd_chunk_pool *pool, size_t len) {
    assert(len <= RD_CHUNK_COPY_MAX);
    if (room_in(queue->last) < len) append(queue, copied_chunk(pool, len));
    rd_chunk *chunk = queue->last;
    /* With a len of 0 this must still be a chunk of copied bytes. */
    if (chunk == NULL || chunk->kind != RD_CHUNK_COPIED) {
        append(queue, copied_chunk(pool, 0));
        chunk = queue->last;
    }
    return chunk_bytes(chunk) + chunk->at + chunk->len;
}

void rd_outq_commit(rd_outq *queue, size_t len) {
    assert(len <= room_in(queue->last));
    queue->last->len += len;
    queue->bytes += len;
}

void rd_outq_copy(rd_outq *queue, rd_chunk_pool *pool, const char *bytes, size_t len) {
    while (len > 0) {
        size_t room = room_in(queue->last);
        if (room == 0) {
            size_t capacity = len < RD_CHUNK_COPY_MAX ? len : RD_CHUNK_COPY_MAX;
            append(queue, copied_chunk(pool, capacity));
            room = room_in(queue->last);
        }
        size_t part = len < room ? len : room;
        rd_chunk *chunk = queue->last;
        memcpy(chunk_bytes(chunk) + chunk->at + chunk->len, bytes, part);
        rd_outq_commit(queue, part);
        bytes += part;
        len -= part;
    }
}

static void borrow(rd_outq *queue, rd_chunk *chunk, const char *bytes, size_t len,
                   rd_release *release, bool is_shared) {
    *chunk = (rd_chunk){.kind = RD_CHUNK_BORROWED, .is_shared = is_shared, .len = len};
    chunk->ptr = bytes;
    chunk->release = release;
    append(queue, chunk);
}

void rd_outq_borrow(rd_outq *queue, const char *bytes, size_t len, rd_release *release) {
    borrow(queue, rd_alloc(sizeof(rd_chunk)), bytes, len, release, false);
}

void rd_outq_share(rd_outq *queue, rd_chunk_pool *pool, const char *bytes, size_t len,
                   rd_release *release) {
    borrow(queue, small_chunk(pool), bytes, len, release, true);
}

void rd_outq_file(rd_outq *queue, rd_file *file, off_t offset, size_t len) {
    rd_chunk *chunk = rd_alloc(sizeof(*chunk));
    *chunk = (rd_chunk){.kind = RD_CHUNK_FILE, .len = len};
    rd_file_ref(file);
    chunk->file = file;
    chunk->offset = offset;
    chunk->looked_to = 0;
    append(queue, chunk);
}

int rd_outq_gather(const rd_outq *queue, struct iovec *iov, int count, size_t limit) {
    int found = 0;
    for (rd_chunk *chunk = rd_outq_first(queue); chunk != NULL && found < count && limit > 0;
         chunk = rd_outq_after(queue, chunk)) {
        if (chunk->kind == RD_CHUNK_FILE) break;
        if (chunk->len == 0) continue;
        char *from = chunk->kind == RD_CHUNK_COPIED ? chunk_bytes(chunk) + chunk->at
                                                    : (char *)(uintptr_t)chunk->ptr;
        size_t len = chunk->len < limit ? chunk->len : limit;
        iov[found++] = (struct iovec){.iov_base = from, .iov_len = len};
        limit -= len;
    }
    return found;
}

static void shift(rd_outq *queue, rd_chunk_pool *pool) {
    rd_chunk *chunk = queue->last->next;
    if (chunk == queue->last) {
        queue->last = NULL;
    } else {
        queue->last->next = chunk->next;
    }
    queue->memory -= overhead_of(chunk);
    free_chunk(chunk, pool);
}

void rd_outq_drop_after(rd_outq *queue, rd_chunk_pool *pool, rd_chunk *before) {
    rd_chunk *chunk = before->next;
    before->next = chunk->next;
    if (queue->last == chunk) queue->last = before;
    uncount(queue, chunk, chunk->len);
    queue->memory -= overhead_of(chunk);
    free_chunk(chunk, pool);
}

static void consume(rd_chunk *chunk, size_t len) {
    chunk->len -= len;
    if (chunk->kind == RD_CHUNK_COPIED) chunk->at += (uint32_t)len;
    if (chunk->kind == RD_CHUNK_BORROWED) chunk->ptr += len;
    if (chunk->kind == RD_CHUNK_FILE) chunk->offset += (off_t)len;
}

void rd_outq_each(const rd_outq *queue, rd_outq_visit *run, void *with) {
    for (rd_chunk *chunk = rd_outq_first(queue); chunk != NULL;
         chunk = rd_outq_after(queue, chunk)) {
        assert(chunk->kind != RD_CHUNK_FILE);
        const bool is_copied = chunk->kind == RD_CHUNK_COPIED;
        run(with, rd_slice_of(is_copied ? chunk_bytes(chunk) + chunk->at : chunk->ptr, chunk->len));
    }
}

void rd_outq_advance(rd_outq *queue, rd_chunk_pool *pool, size_t len) {
    assert(len <= queue->bytes);
    while (queue->last != NULL) {
        rd_chunk *chunk = queue->last->next;
        const size_t part = len < chunk->len ? len : chunk->len;
        uncount(queue, chunk, part);
        if (len < chunk->len) {
            consume(chunk, len);
            return;
        }
        len -= part;
        shift(queue, pool);
    }
}

void rd_outq_clear(rd_outq *queue, rd_chunk_pool *pool) {
    while (queue->last != NULL) shift(queue, pool);
    queue->bytes = queue->memory = queue->shared = 0;
}

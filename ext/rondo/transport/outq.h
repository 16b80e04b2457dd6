/* SPDX-License-Identifier: MIT
 *
 * The output queue of a connection: what is to be sent, in order, as chunks of three kinds:
 *
 *   copied    bytes in a pooled block of 4 KiB (or in a block of exact size, up to 16 KiB)
 *   borrowed  bytes of another owner, with a release that runs when they are no longer needed
 *   file      a range of an open file, with a reference to it
 *
 * Releases run under the loop lock, so they never call the application: a release puts itself on a
 * list of its owner. The queue knows no socket; conn_send.c sends.
 */
#ifndef RD_TRANSPORT_OUTQ_H
#define RD_TRANSPORT_OUTQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/slice.h"
#include "transport/file.h"

#define RD_CHUNK_BLOCK_BYTES 4096
#define RD_CHUNK_COPY_MAX    16384

typedef struct rd_release {
    void (*run)(struct rd_release *release);
} rd_release;

typedef enum rd_chunk_kind { RD_CHUNK_COPIED, RD_CHUNK_BORROWED, RD_CHUNK_FILE } rd_chunk_kind;

typedef struct rd_chunk {
    struct rd_chunk *next;
    rd_chunk_kind kind;
    bool is_shared; /* borrowed, by other queues as well */
    size_t len;     /* bytes not yet sent */
    union {
        struct { /* copied: bytes follow the struct */
            uint32_t at, capacity;
        };
        struct { /* borrowed */
            const char *ptr;
            rd_release *release;
        };
        struct { /* file */
            rd_file *file;
            off_t offset;
            off_t looked_to; /* the last check found it in memory up to here */
        };
    };
} rd_chunk;

/* Chunks ready for use, one pool per server: blocks, and chunks without bytes of their own. A burst
 * of messages to many clients needs thousands of those at once. */
typedef struct rd_chunk_pool {
    rd_chunk *free, *small;
    uint32_t count, small_count;
} rd_chunk_pool;

typedef struct rd_outq {
    rd_chunk *last; /* NULL: the queue is empty. Its `next` is the first one */
    size_t bytes;   /* everything queued */
    size_t memory;  /* what is freed when the queue is cleared: the bytes that are not in files, the
                     * chunks themselves, unused room in blocks. Small pieces, alternately copied and
                     * borrowed, cost many times their bytes. */
    size_t shared;  /* bytes of them that other queues hold as well */
} rd_outq;

/* NULL: the queue is empty. */
static inline rd_chunk *rd_outq_first(const rd_outq *queue) {
    return queue->last != NULL ? queue->last->next : NULL;
}

/* The chunk after this one; NULL: it is the last. */
static inline rd_chunk *rd_outq_after(const rd_outq *queue, const rd_chunk *chunk) {
    return chunk != queue->last ? chunk->next : NULL;
}

/* Memory that nobody else holds. */
static inline size_t rd_outq_own(const rd_outq *queue) {
    return queue->memory - queue->shared;
}

void rd_chunk_pool_clear(rd_chunk_pool *pool);

/* Room for `len` (<= RD_CHUNK_COPY_MAX) more bytes in one piece at the end. What is written there
 * counts only after rd_outq_commit(). */
char *rd_outq_reserve(rd_outq *queue, rd_chunk_pool *pool, size_t len);
void rd_outq_commit(rd_outq *queue, size_t len);

void rd_outq_copy(rd_outq *queue, rd_chunk_pool *pool, const char *bytes, size_t len);
void rd_outq_borrow(rd_outq *queue, const char *bytes, size_t len, rd_release *release);
/* The same for bytes that several queues borrow. */
void rd_outq_share(rd_outq *queue, rd_chunk_pool *pool, const char *bytes, size_t len,
                   rd_release *release);
/* Takes its own reference. */
void rd_outq_file(rd_outq *queue, rd_file *file, off_t offset, size_t len);

/* Fills iov with the leading copied and borrowed chunks, at most `count` entries and `limit` bytes.
 * Returns the number of entries; 0: the first chunk is a file, or there is none. */
int rd_outq_gather(const rd_outq *queue, struct iovec *iov, int count, size_t limit);

/* Calls `run` with each queued piece. There must be no file in the queue. */
typedef void rd_outq_visit(void *with, rd_slice bytes);
void rd_outq_each(const rd_outq *queue, rd_outq_visit *run, void *with);

/* Drops `len` sent bytes from the front, and releases chunks that are finished. */
void rd_outq_advance(rd_outq *queue, rd_chunk_pool *pool, size_t len);

/* Drops the chunk after this one, unsent. */
void rd_outq_drop_after(rd_outq *queue, rd_chunk_pool *pool, rd_chunk *before);

void rd_outq_clear(rd_outq *queue, rd_chunk_pool *pool);

#endif

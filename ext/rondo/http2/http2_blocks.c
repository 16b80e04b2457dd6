/* SPDX-License-Identifier: MIT
 *
 * Small blocks of memory; see http2_blocks.h.
 */
#include "http2/http2_blocks.h"

#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"

/* Before the bytes of a block. */
struct rd_http2_block {
    alignas(max_align_t) size_t size;
    rd_http2_block *next; /* while it is kept */
};

static void *bytes_of(rd_http2_block *block) {
    return block + 1;
}

static rd_http2_block *block_at(void *ptr) {
    return (rd_http2_block *)ptr - 1;
}

void rd_http2_blocks_init(rd_http2_blocks *blocks, size_t most) {
    *blocks = (rd_http2_blocks){.most = most};
}

void rd_http2_blocks_clear(rd_http2_blocks *blocks) {
    for (size_t i = 0; i < RD_HTTP2_BLOCK_SIZES; i++) {
        for (rd_http2_block *block = blocks->kept[i], *next; block != NULL; block = next) {
            next = block->next;
            rd_free(block);
        }
    }
    rd_http2_blocks_init(blocks, 0);
}

static rd_http2_block *allocate(size_t size) {
    rd_http2_block *block = rd_alloc(sizeof(*block) + size);
    block->size = size;
    return block;
}

void *rd_http2_blocks_take(rd_http2_blocks *blocks, size_t size) {
    const size_t number = size == 0 ? 0 : (size - 1) / RD_HTTP2_BLOCK_STEP;
    if (number >= RD_HTTP2_BLOCK_SIZES) return bytes_of(allocate(size));
    rd_http2_block *block = blocks->kept[number];
    if (block == NULL) return bytes_of(allocate((number + 1) * RD_HTTP2_BLOCK_STEP));
    blocks->kept[number] = block->next;
    blocks->kept_bytes -= block->size;
    return bytes_of(block);
}

void *rd_http2_blocks_resize(rd_http2_blocks *blocks, void *ptr, size_t size) {
    if (ptr == NULL) return rd_http2_blocks_take(blocks, size);
    const size_t before = block_at(ptr)->size;
    if (size <= before && before <= (size_t)RD_HTTP2_BLOCK_SIZES * RD_HTTP2_BLOCK_STEP) return ptr;
    void *now = rd_http2_blocks_take(blocks, size);
    memcpy(now, ptr, size < before ? size : before);
    rd_http2_blocks_give(blocks, ptr);
    return now;
}

void rd_http2_blocks_give(rd_http2_blocks *blocks, void *ptr) {
    if (ptr == NULL) return;
    rd_http2_block *block = block_at(ptr);
    const size_t number = (block->size - 1) / RD_HTTP2_BLOCK_STEP;
    if (number >= RD_HTTP2_BLOCK_SIZES || blocks->kept_bytes + block->size > blocks->most) {
        rd_free(block);
        return;
    }
    block->next = blocks->kept[number];
    blocks->kept[number] = block;
    blocks->kept_bytes += block->size;
}

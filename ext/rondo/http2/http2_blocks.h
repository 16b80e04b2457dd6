/* SPDX-License-Identifier: MIT
 *
 * Small blocks of memory for a library that allocates the same few sizes for each request. Blocks
 * that are given back are kept for the next request, by size, up to a limit. One owner, no lock.
 */
#ifndef RD_HTTP2_HTTP2_BLOCKS_H
#define RD_HTTP2_HTTP2_BLOCKS_H

#include <stddef.h>

#define RD_HTTP2_BLOCK_STEP  32 /* bytes between two sizes */
#define RD_HTTP2_BLOCK_SIZES 16 /* larger ones are not kept */

typedef struct rd_http2_block rd_http2_block;

typedef struct rd_http2_blocks {
    rd_http2_block *kept[RD_HTTP2_BLOCK_SIZES];
    size_t kept_bytes;
    size_t most; /* bytes that may be kept */
} rd_http2_blocks;

void rd_http2_blocks_init(rd_http2_blocks *blocks, size_t most);

/* Frees the blocks that are kept. Those that are in use may still be given back. */
void rd_http2_blocks_clear(rd_http2_blocks *blocks);

/* Never NULL. */
void *rd_http2_blocks_take(rd_http2_blocks *blocks, size_t size);

/* The bytes up to the smaller size stay. NULL: takes a new one. */
void *rd_http2_blocks_resize(rd_http2_blocks *blocks, void *ptr, size_t size);

/* NULL: nothing is given back. */
void rd_http2_blocks_give(rd_http2_blocks *blocks, void *ptr);

#endif

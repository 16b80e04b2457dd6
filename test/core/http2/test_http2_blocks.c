/* SPDX-License-Identifier: MIT
 *
 * Small blocks of memory (http2/http2_blocks.c).
 */
#include "check.h"

#include "http2/http2_blocks.h"

enum { LARGEST = RD_HTTP2_BLOCK_STEP * RD_HTTP2_BLOCK_SIZES };

static void fill(void *ptr, size_t size) {
    memset(ptr, (int)(size % 251), size);
}

static bool is_filled(const unsigned char *bytes, size_t size, size_t with) {
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != with % 251) return false;
    }
    return true;
}

/* All sizes at once, so that two that overlap are seen. */
static void test_sizes(size_t most) {
    static void *taken[2 * LARGEST];
    rd_http2_blocks blocks;
    rd_http2_blocks_init(&blocks, most);
    for (int round = 0; round < 3; round++) {
        for (size_t size = 0; size < 2 * LARGEST; size++) {
            taken[size] = rd_http2_blocks_take(&blocks, size);
            CHECK_INT((uintptr_t)taken[size] % 16, 0);
            fill(taken[size], size);
        }
        for (size_t size = 0; size < 2 * LARGEST; size++) {
            CHECK(is_filled(taken[size], size, size));
            rd_http2_blocks_give(&blocks, taken[size]);
            CHECK(blocks.kept_bytes <= most);
        }
    }
    rd_http2_blocks_clear(&blocks);
    CHECK_INT(blocks.kept_bytes, 0);
}

static void test_a_block_comes_back(void) {
    rd_http2_blocks blocks;
    rd_http2_blocks_init(&blocks, 1000);
    void *first = rd_http2_blocks_take(&blocks, 100);
    rd_http2_blocks_give(&blocks, first);
    CHECK_INT(blocks.kept_bytes, 128);
    CHECK(rd_http2_blocks_take(&blocks, 97) == first);
    CHECK_INT(blocks.kept_bytes, 0);
    rd_http2_blocks_give(&blocks, NULL);
    rd_http2_blocks_give(&blocks, first);
    rd_http2_blocks_give(&blocks, rd_http2_blocks_take(&blocks, LARGEST + 1)); /* is not kept */
    CHECK_INT(blocks.kept_bytes, 128);
    rd_http2_blocks_clear(&blocks);
}

static void test_resize(void) {
    rd_http2_blocks blocks;
    rd_http2_blocks_init(&blocks, 1 << 20);
    for (size_t from = 1; from < 2 * LARGEST; from += 37) {
        for (size_t to = 1; to < 2 * LARGEST; to += 29) {
            void *ptr = rd_http2_blocks_resize(&blocks, NULL, from);
            fill(ptr, from);
            ptr = rd_http2_blocks_resize(&blocks, ptr, to);
            CHECK(is_filled(ptr, from < to ? from : to, from));
            fill(ptr, to);
            rd_http2_blocks_give(&blocks, ptr);
        }
    }
    rd_http2_blocks_clear(&blocks);
}

/* A block that is given back after the end is freed. */
static void test_after_the_end(void) {
    rd_http2_blocks blocks;
    rd_http2_blocks_init(&blocks, 1000);
    void *late = rd_http2_blocks_take(&blocks, 10);
    rd_http2_blocks_clear(&blocks);
    rd_http2_blocks_give(&blocks, late);
    CHECK_INT(blocks.kept_bytes, 0);
}

int main(void) {
    test_sizes(0);
    test_sizes(10000);
    test_sizes(SIZE_MAX);
    test_a_block_comes_back();
    test_resize();
    test_after_the_end();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Memory for the next request; see http2_spare.h.
 */
#include "http2/http2_spare.h"

#include "base/alloc.h"

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED 0
#endif
/* For the requests of some hundred streams. A sanitizer has to see each block that
 * is given back. */
#define SPARE_BYTES (IS_SANITIZED ? 0 : 262144)

rd_http2_spare *rd_http2_spare_ref(rd_http_shared *shared) {
    if (shared->http2_spare == NULL) {
        shared->http2_spare = rd_alloc_zero(sizeof(rd_http2_spare));
        rd_http2_blocks_init(&shared->http2_spare->blocks, SPARE_BYTES);
        shared->http2_spare->shared = shared;
    }
    shared->http2_spare->refs++;
    return shared->http2_spare;
}

void rd_http2_spare_unref(rd_http2_spare *spare) {
    if (--spare->refs > 0) return;
    spare->shared->http2_spare = NULL;
    rd_http2_blocks_clear(&spare->blocks);
    for (size_t i = 0; i < RD_HTTP2_HEAD_BUFFERS; i++) rd_buffer_clear(&spare->head[i]);
    rd_free(spare);
}

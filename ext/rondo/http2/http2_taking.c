/* SPDX-License-Identifier: MIT
 *
 * What a client of HTTP/2 takes of its answers; see http2_taking.h.
 */
#include "http2/http2_taking.h"

#define UNTAKEN_MAX 262144 /* bytes */

static void hold(rd_http2 *http2, bool is_held) {
    rd_handler *handler = rd_http_shared_of(http2->carrier)->handler;
    if (http2->taking.is_held == is_held) return;
    http2->taking.is_held = is_held;
    handler->on_held(handler, http2->lines, is_held);
}

/* Once the connection has failed or ended, the line stays as it is. */
static void judge(rd_http2 *http2) {
    const rd_http2_taking *taking = &http2->taking;
    if (http2->has_failed || !rd_conn_is_open(http2->carrier)) return;
    hold(http2, taking->untaken + taking->heads >= UNTAKEN_MAX);
}

void rd_http2_add_untaken(rd_http2 *http2, uint32_t len) {
    http2->taking.untaken += len;
    judge(http2);
}

void rd_http2_remove_untaken(rd_http2 *http2, uint32_t len) {
    http2->taking.untaken -= len;
    judge(http2);
}

static void count_heads(rd_http2 *http2) {
    rd_http2_taking *taking = &http2->taking;
    if (taking->heads <= RD_LEDGER_FREE && taking->heads_counted == 0) return;
    rd_ledger_recount(&http2->carrier->set->ledger, RD_LEDGER_OUTPUT, &taking->heads_counted,
                      taking->heads);
}

void rd_http2_add_head(rd_http2 *http2, size_t len) {
    http2->taking.heads += (uint32_t)len;
    count_heads(http2);
    judge(http2);
}

void rd_http2_remove_head(rd_http2 *http2, const nghttp2_frame *frame, bool is_sent) {
    size_t len = 0;
    for (size_t i = 0; i < frame->headers.nvlen; i++) {
        len += frame->headers.nva[i].namelen + frame->headers.nva[i].valuelen;
    }
    if (is_sent) http2->taking.taken += len;
    http2->taking.heads -= (uint32_t)len;
    count_heads(http2);
    judge(http2);
}

void rd_http2_take_no_more(rd_http2 *http2) {
    hold(http2, true);
}

/* SPDX-License-Identifier: MIT
 *
 * What changes the state of HTTP/1.1; see http1_state.h.
 */
#include "protocol/http1_state.h"

#include <assert.h>

void rd_http1_set_input(rd_http1 *http, rd_http1_input input) {
    static const uint8_t ways[] = {
        [RD_HTTP1_HEAD] = 1 << RD_HTTP1_BODY | 1 << RD_HTTP1_DONE | 1 << RD_HTTP1_OVER,
        [RD_HTTP1_BODY] = 1 << RD_HTTP1_STORING | 1 << RD_HTTP1_DONE | 1 << RD_HTTP1_OVER,
        [RD_HTTP1_STORING] = 1 << RD_HTTP1_DONE | 1 << RD_HTTP1_HEAD | 1 << RD_HTTP1_OVER,
        [RD_HTTP1_DONE] = 1 << RD_HTTP1_HEAD | 1 << RD_HTTP1_OVER,
        [RD_HTTP1_OVER] = 0,
    };
    assert(ways[http->input] & 1 << input);
    (void)ways;
    http->input = (uint8_t)input;
}

void rd_http1_end_early_call(rd_http1 *http) {
    if (!http->early) return;
    http->early = false;
    rd_http_shared_of(http->request->conn)->early_calls--;
}

void rd_http1_drop_request(rd_http1 *http) {
    rd_request *request = http->request;
    if (request == NULL) return;
    rd_http1_end_early_call(http);
    http->request = NULL;
    rd_request_leave(request);
}

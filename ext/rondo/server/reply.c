/* SPDX-License-Identifier: MIT
 *
 * Answers through the responder of their request; see reply.h.
 */
#include "server/reply.h"

#include "base/text.h"

static void answer_with(rd_request *request, const rd_response_head *head, const char *bytes) {
    const rd_responder *responder = request->responder;
    if (request->conn == NULL || responder->start(request, head) != 0) return;
    if (head->length > 0) responder->write(request, bytes, (size_t)head->length);
    responder->finish(request);
}

void rd_reply(rd_request *request, int status, const char *type, const rd_buffer *text) {
    const rd_field fields[] = {
        {RD_SLICE("content-type"), rd_slice_of(type, strlen(type))},
        {RD_SLICE("cache-control"), RD_SLICE("no-store")},
        {RD_SLICE("allow"), RD_SLICE("GET, HEAD, POST")},
    };
    rd_response_head head = {.status = status,
                             .fields = fields,
                             .count = status == 405 ? 3 : 2,
                             .length = (int64_t)rd_buffer_len(text)};
    answer_with(request, &head, rd_buffer_ptr(text));
}

void rd_reply_error(rd_request *request, int status, const char *why) {
    rd_buffer text = {0};
    rd_text_add(&text, "{ \"error\": ");
    rd_text_add_json(&text, why);
    rd_text_add(&text, " }\n");
    rd_reply(request, status, RD_REPLY_JSON, &text);
    rd_buffer_clear(&text);
}

void rd_reply_ok(rd_request *request) {
    rd_buffer text = {0};
    rd_text_add(&text, "{ \"status\": \"ok\" }");
    rd_reply(request, 200, RD_REPLY_JSON, &text);
    rd_buffer_clear(&text);
}

/* SPDX-License-Identifier: MIT
 *
 * Answers through the responder of their request; see reply.h.
 */
#include "control/reply.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void answer_with(rd_request *request, const rd_response_head *head, const char *bytes) {
    const rd_responder *responder = request->responder;
    if (request->conn == NULL || responder->start(request, head) != 0) return;
    if (head->length > 0) responder->write(request, bytes, (size_t)head->length);
    responder->finish(request);
}

/* `allow`: NULL, or the Allow field of a 405. */
static void reply(rd_request *request, int status, const char *type, const rd_buffer *text,
                  const char *allow) {
    const rd_field fields[] = {
        {RD_SLICE("content-type"), rd_slice_of(type, strlen(type))},
        {RD_SLICE("cache-control"), RD_SLICE("no-store")},
        {RD_SLICE("allow"), rd_slice_of(allow, allow != NULL ? strlen(allow) : 0)},
    };
    rd_response_head head = {.status = status,
                             .fields = fields,
                             .count = allow != NULL ? 3 : 2,
                             .length = (int64_t)rd_buffer_len(text)};
    answer_with(request, &head, rd_buffer_ptr(text));
}

void rd_reply(rd_request *request, int status, const char *type, const rd_buffer *text) {
    reply(request, status, type, text, NULL);
}

static void add_error(rd_buffer *text, const char *why) {
    rd_text_add(text, "{ \"error\": ");
    rd_text_add_json(text, why);
    rd_text_add(text, " }\n");
}

void rd_reply_error(rd_request *request, int status, const char *why) {
    rd_buffer text = {0};
    add_error(&text, why);
    rd_reply(request, status, RD_REPLY_JSON, &text);
    rd_buffer_clear(&text);
}

void rd_reply_use(rd_request *request, const char *methods) {
    rd_buffer text = {0};
    char why[64];
    snprintf(why, sizeof(why), "use %s", methods);
    add_error(&text, why);
    reply(request, 405, RD_REPLY_JSON, &text, methods);
    rd_buffer_clear(&text);
}

void rd_reply_page(rd_request *request, const char *html, const char *policy) {
    const rd_field fields[] = {
        {RD_SLICE("content-type"), RD_SLICE("text/html; charset=utf-8")},
        {RD_SLICE("cache-control"), RD_SLICE("no-store")},
        {RD_SLICE("content-security-policy"), rd_slice_of(policy, strlen(policy))},
        {RD_SLICE("referrer-policy"), RD_SLICE("no-referrer")},
        {RD_SLICE("x-content-type-options"), RD_SLICE("nosniff")},
    };
    const rd_response_head head = {.status = 200,
                                   .fields = fields,
                                   .count = sizeof(fields) / sizeof(fields[0]),
                                   .length = (int64_t)strlen(html)};
    answer_with(request, &head, html);
}

void rd_reply_ask_password(rd_request *request) {
    static const char text[] = "The token of the control server is the password.\n";
    static const rd_field fields[] = {
        {RD_SLICE_INIT("content-type"), RD_SLICE_INIT(RD_REPLY_TEXT)},
        {RD_SLICE_INIT("cache-control"), RD_SLICE_INIT("no-store")},
        {RD_SLICE_INIT("www-authenticate"), RD_SLICE_INIT("Basic realm=\"Rondo\"")},
    };
    const rd_response_head head = {.status = 401,
                                   .fields = fields,
                                   .count = sizeof(fields) / sizeof(fields[0]),
                                   .length = sizeof(text) - 1};
    answer_with(request, &head, text);
}

void rd_reply_ok(rd_request *request) {
    rd_buffer text = {0};
    rd_text_add(&text, "{ \"status\": \"ok\" }");
    rd_reply(request, 200, RD_REPLY_JSON, &text);
    rd_buffer_clear(&text);
}

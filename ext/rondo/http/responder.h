/* SPDX-License-Identifier: MIT
 *
 * How an answer leaves, whatever the HTTP version: the table that a protocol gives each request.
 * The caller checked names and values (no CR, LF, NUL) before it comes here. All of it under the
 * loop lock; unless it says otherwise a function answers 0, or RD_ERR_CLOSED when the client has
 * gone meanwhile.
 */
#ifndef RD_HTTP_RESPONDER_H
#define RD_HTTP_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "transport/outq.h"

typedef struct rd_protocol rd_protocol;
typedef struct rd_request rd_request;

typedef struct rd_field {
    rd_slice name, value;
} rd_field;

typedef struct rd_response_head {
    int status;
    const rd_field *fields; /* content-length, connection, transfer-encoding left out */
    size_t count;
    int64_t length; /* of the body; -1: not known */
    bool has_date;  /* `fields` brings its own */
    bool close;     /* the application asks for the end of the connection */
    bool raw;       /* what follows is not HTTP (partial hijack): no framing */
} rd_response_head;

typedef struct rd_responder {
    /* An informational response (103), before start. */
    int (*inform)(rd_request *request, const rd_response_head *head);
    int (*start)(rd_request *request, const rd_response_head *head);
    /* Body bytes; dropped silently where the response has no body (HEAD, 204, 304). */
    int (*write)(rd_request *request, const char *bytes, size_t len);
    int (*borrow)(rd_request *request, const char *bytes, size_t len, rd_release *release);
    /* Takes its own reference. */
    int (*send_file)(rd_request *request, rd_file *file, off_t offset, size_t len);
    int (*flush)(rd_request *request);
    int (*finish)(rd_request *request);
    /* Ends the connection so that the client can see that the answer is not whole. */
    void (*abort)(rd_request *request);
    /* Asks a client that waits with its body (Expect: 100-continue) for it. Once the answer has
     * begun it is too late to ask, and only the deadline of the body begins to run. */
    int (*want_body)(rd_request *request);
    /* Nobody waits for the client any longer (RD_ERR_GIVEN_UP): when its body is what was waited
     * for and no answer has begun, the body fails, else the connection is reset. */
    void (*give_up)(rd_request *request);
    /* Takes the connection out of the server: its descriptor, or RD_ERR_CLOSED, and in `rest` what
     * was read ahead, which the caller has to clear. What is still queued is dropped: flush and
     * wait first, with tell_empty of the connection set. */
    int (*detach)(rd_request *request, rd_buffer *rest);
    /* The request is answered, and its connection has another protocol from now on, whose state is
     * zeroed and fits into that of the old one; on_open() is the caller's. For a request with a
     * client, whose body has come. */
    void (*switch_to)(rd_request *request, const rd_protocol *protocol);
} rd_responder;

#endif

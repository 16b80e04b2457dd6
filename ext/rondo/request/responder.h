/* SPDX-License-Identifier: MIT
 *
 * How an answer leaves, whatever the HTTP version: the table that a protocol gives each request.
 * The caller has checked names and values (no CR, LF, NUL). Everything under the loop lock. Unless
 * stated otherwise, a function returns 0, or RD_ERR_CLOSED when the client has gone meanwhile.
 */
#ifndef RD_REQUEST_RESPONDER_H
#define RD_REQUEST_RESPONDER_H

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
    const rd_field *fields; /* without content-length, connection, transfer-encoding */
    size_t count;
    int64_t length; /* of the body; -1: unknown */
    bool has_date;  /* `fields` has a date of its own */
    bool close;     /* the application wants the connection to end */
    bool raw;       /* what follows is not HTTP (partial hijack): no framing */
} rd_response_head;

typedef struct rd_responder {
    /* Sends an informational response (103), before start. */
    int (*inform)(rd_request *request, const rd_response_head *head);
    int (*start)(rd_request *request, const rd_response_head *head);
    /* Sends body bytes. They are dropped silently where the response has no body (HEAD, 204,
     * 304). */
    int (*write)(rd_request *request, const char *bytes, size_t len);
    int (*borrow)(rd_request *request, const char *bytes, size_t len, rd_release *release);
    /* Sends part of a file. Takes its own reference. */
    int (*send_file)(rd_request *request, rd_file *file, off_t offset, size_t len);
    int (*flush)(rd_request *request);
    int (*finish)(rd_request *request);
    /* Ends the connection so that the client can see that the answer is incomplete. */
    void (*abort)(rd_request *request);
    /* Asks a client that waits before it sends its body (Expect: 100-continue) for the body. Once
     * the answer has begun it is too late to ask, and only the deadline of the body starts. */
    int (*want_body)(rd_request *request);
    /* Answers a broken rule, RD_ERR_*, before the application has the request. It is the last
     * answer on the connection. */
    void (*refuse)(rd_request *request, int code);
    /* The application no longer waits for the client (RD_ERR_GIVEN_UP). If it waited for the body
     * and no answer has begun, the body fails, otherwise the connection is reset. */
    void (*give_up)(rd_request *request);
    /* Takes the connection out of the server. Returns its descriptor, or RD_ERR_CLOSED; `rest` gets
     * what was read ahead, and the caller must clear it. What is still queued is dropped: flush and
     * wait first, with notify_drained of the connection set. */
    int (*detach)(rd_request *request, rd_buffer *rest);
    /* The request is answered, and its connection has another protocol from now on, whose zeroed
     * state takes the place of the old one. The caller calls on_open(). Only for a request with a
     * client, whose body is complete. */
    void (*switch_to)(rd_request *request, const rd_protocol *protocol);
} rd_responder;

#endif

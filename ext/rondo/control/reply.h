/* SPDX-License-Identifier: MIT
 *
 * Complete answers of the control server: a status and a text. Under the lock of its loop. Does
 * nothing when the client has gone.
 */
#ifndef RD_CONTROL_REPLY_H
#define RD_CONTROL_REPLY_H

#include "base/buffer.h"
#include "request/request.h"

#define RD_REPLY_TEXT "text/plain; charset=utf-8"
#define RD_REPLY_JSON "application/json"

void rd_reply(rd_request *request, int status, const char *type, const rd_buffer *text);

/* { "error": why } */
void rd_reply_error(rd_request *request, int status, const char *why);

/* 405 with the Allow field `methods`, such as "GET, POST". */
void rd_reply_use(rd_request *request, const char *methods);

/* A page of HTML that loads nothing else, with its Content-Security-Policy. It is not found in a
 * frame of another page, and tells no other site where it was. */
void rd_reply_page(rd_request *request, const char *html, const char *policy);

/* 401: a browser asks its user for a password, and sends the request again. */
void rd_reply_ask_password(rd_request *request);

/* { "status": "ok" }, as Puma answers. */
void rd_reply_ok(rd_request *request);

#endif

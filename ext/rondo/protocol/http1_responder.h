/* SPDX-License-Identifier: MIT
 *
 * The answering side of HTTP/1.1: head, framing of the body, refusals. Everything queued here
 * leaves with the next flush of the connection. http1.c has what follows the end of an answer.
 * Under the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_RESPONDER_H
#define RD_PROTOCOL_HTTP1_RESPONDER_H

#include "protocol/http1_state.h"

/* Rows of rd_responder; request/responder.h describes them. */
int rd_http1_inform(rd_request *request, const rd_response_head *head);
int rd_http1_start(rd_request *request, const rd_response_head *head);
int rd_http1_write(rd_request *request, const char *bytes, size_t len);
int rd_http1_borrow(rd_request *request, const char *bytes, size_t len, rd_release *release);
int rd_http1_send_file(rd_request *request, rd_file *file, off_t offset, size_t len);
int rd_http1_flush(rd_request *request);

/* Queues the end of the body. False: the answer has fewer bytes than it promised, and its client
 * must notice. */
bool rd_http1_end_answer(rd_request *request);

/* Whether only the end of the connection ends the body of the answer (RFC 9112 section 6.3, rule
 * 8). */
bool rd_http1_ends_with_connection(const rd_request *request);

/* Answers a broken rule and ends the connection. The answer comes after those of earlier requests
 * in the queue. */
void rd_http1_refuse(rd_conn *conn, int code);

/* The answer to a client that cannot become a connection, ready for the wire. */
extern const rd_slice rd_http1_busy;

#endif

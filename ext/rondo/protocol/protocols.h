/* SPDX-License-Identifier: MIT
 *
 * The table of protocols, and all that the server, the control server and the binding know of them:
 * what a connection begins with, what a request can be upgraded to, what a client gets that cannot
 * become a connection. docs/ADDING_A_PROTOCOL.md tells how to add one.
 */
#ifndef RD_PROTOCOL_PROTOCOLS_H
#define RD_PROTOCOL_PROTOCOLS_H

#include "http/handler.h"
#include "protocol/request_protocols.h"

/* What a connection from such a peer begins with when nothing of it has been read: the first
 * protocol, or the opening (opening.h) that the transport or the peer needs before it. */
const rd_protocol *rd_protocol_begin(const rd_conn_set *set, const rd_transport *transport,
                                     const rd_address *peer);

/* What a client gets that cannot become a connection, ready for the wire. */
rd_slice rd_protocol_busy(void);

/* What a request can be upgraded to: a row for each protocol of upgraded connections. */
typedef struct rd_upgrade_row {
    rd_slice name;      /* what rack.upgrade? says */
    unsigned header_id; /* a request without this field does not ask for it */
    int status;         /* of the answer */
    bool text_only;     /* it has no messages but text */
    bool same_origin;   /* browsers let pages of other origins open it: the server must not */
    /* Whether this request asks for it and may be upgraded. */
    bool (*is_asked)(const rd_request *request);
    /* Whether the fields ask for it, whatever the method. */
    bool (*is_named)(const rd_request *request);
    /* Which of the application's fields may be in the answer: how many are left. Or NULL: all. */
    size_t (*choose)(const rd_request *request, rd_field *fields, size_t count);
    /* Answers with these fields and its own, and makes the connection one of its kind. A reference
     * for the caller, or NULL when the client has gone. Under the loop lock. */
    rd_push *(*begin)(rd_request *request, const rd_field *fields, size_t count);
} rd_upgrade_row;

/* What the request can be upgraded to, or NULL. Any thread. */
const rd_upgrade_row *rd_upgrade_asked(const rd_request *request);

/* Whether a request with these fields may ask for an upgrade, whatever its method. Any thread. */
bool rd_upgrade_is_named(const rd_request *request);

/* Frees what the protocols of a server keep in `shared`. */
void rd_protocols_clear(rd_http_shared *shared);

#endif

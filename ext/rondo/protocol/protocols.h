/* SPDX-License-Identifier: MIT
 *
 * The table of protocols, and all that the server, the control server and the binding know of them:
 * how a connection begins, what a request can be upgraded to, what a client gets that cannot become
 * a connection. docs/ADDING_A_PROTOCOL.md tells how to add a protocol.
 */
#ifndef RD_PROTOCOL_PROTOCOLS_H
#define RD_PROTOCOL_PROTOCOLS_H

#include "endpoint/endpoint.h"
#include "endpoint/raw.h"
#include "request/handler.h"
#include "protocol/forwarding.h"
#include "protocol/outgoing.h"
#include "protocol/request_protocols.h"

/* The protocol of a new connection from this peer: the first protocol, or the opening (opening.h)
 * that the transport or the peer needs before it. */
const rd_protocol *rd_protocol_begin(const rd_conn_set *set, const rd_transport *transport,
                                     const rd_address *peer);

/* Opens a connection that a raw listener with this number has accepted. */
rd_conn *rd_protocol_open_raw(rd_conn_set *set, int fd, const rd_transport *transport,
                              const rd_address *peer, uint32_t number);

/* The answer to a client that cannot become a connection, ready for the wire. */
rd_slice rd_protocol_busy(void);

/* What a request can be upgraded to: a row for each protocol of upgraded connections. */
typedef struct rd_upgrade_row {
    rd_slice name;      /* value of rack.upgrade? */
    unsigned header_id; /* a request without this field does not ask for the upgrade */
    int status;         /* of the answer */
    bool text_only;     /* all its messages are text */
    bool bytes_only;    /* its messages are neither text nor binary */
    bool same_origin;   /* browsers let pages of other origins open it: the server must check the
                         * origin */
    /* Whether this request asks for the upgrade and may have it. */
    bool (*is_asked)(const rd_request *request);
    /* Whether the fields ask for the upgrade, whatever the method. */
    bool (*is_named)(const rd_request *request);
    /* Chooses the application's fields for the answer. Returns how many are left. NULL: all. */
    size_t (*choose)(const rd_request *request, rd_field *fields, size_t count);
    /* Answers with these fields and its own, and upgrades the connection. Returns a reference for
     * the caller, or NULL when the client has gone. Under the loop lock. */
    rd_endpoint *(*begin)(rd_request *request, const rd_field *fields, size_t count);
} rd_upgrade_row;

/* Raw connections. No field asks for them, and `status` is the application's: so it has a name, and
 * otherwise the functions of endpoint/raw.h. */
extern const rd_upgrade_row rd_upgrade_raw;

/* The row of WebSockets, also of those that this process asks for. */
const rd_upgrade_row *rd_upgrade_websocket(void);

/* What the request can be upgraded to, or NULL. Any thread. */
const rd_upgrade_row *rd_upgrade_asked(const rd_request *request);

/* Whether a request with these fields may ask for an upgrade, whatever its method. Any thread. */
bool rd_upgrade_is_named(const rd_request *request);

/* Frees what the protocols of a server keep in `shared`. */
void rd_protocols_clear(rd_http_shared *shared);

#endif

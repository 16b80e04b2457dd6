/* SPDX-License-Identifier: MIT
 *
 * Connections that this process makes for its application, from the wish to the first event. A
 * connection that is made is as any other of its protocol (endpoint/raw.h), counts as one, and is
 * told to the application by OPEN. One that cannot be made is told by CLOSE alone: its endpoint is
 * there from the beginning. Under the loop lock.
 *
 *   begin ──▶ dialing (listen/dial.h) ──▶ handshakes: TLS, WebSocket ─▶ the protocol of the
 *                │  deadline, stop            │      └──────────────────▲  connection: OPEN … CLOSE
 *                └──────▶ failed: CLOSE ◀─────┘
 */
#ifndef RD_PROTOCOL_OUTGOING_H
#define RD_PROTOCOL_OUTGOING_H

#include "endpoint/endpoint.h"
#include "endpoint/websocket_call.h"
#include "listen/dial.h"
#include "transport/conn.h"

/* Those of a server. */
typedef struct rd_outgoings {
    rd_dialer dialer;
    rd_conn_set *set;
    const uint32_t *conn_limit; /* of all connections of the server */
    rd_list all;
    uint32_t count;
    bool has_stopped;
} rd_outgoings;

/* Where to. */
typedef struct rd_destination {
    const char *host; /* a name; NULL: `targets` */
    uint16_t port;
    rd_targets *targets;           /* of rd_alloc(), taken over */
    uint64_t timeout_ms;           /* for all of it */
    const rd_transport *transport; /* the connection becomes an owner */
    const char *peer_name;         /* for a transport with a handshake */
    const rd_ws_call *websocket;   /* what is asked for, without its key; NULL: raw */
} rd_destination;

void rd_outgoings_init(rd_outgoings *outgoings, rd_conn_set *set, const uint32_t *conn_limit);

/* Whether there are max_dials of them. A name or a path whose lookup goes on counts even if nobody
 * waits for it any more. */
bool rd_outgoings_are_full(const rd_outgoings *outgoings);

/* The endpoint of such a connection, dialing: the protocol's reference. */
rd_endpoint *rd_outgoing_endpoint(const rd_outgoings *outgoings, const rd_destination *where);

/* Takes over the protocol's reference to the endpoint, which is of rd_outgoing_endpoint(). It may
 * have failed, and the connection may be there, when this returns. */
void rd_outgoing_begin(rd_outgoings *outgoings, rd_endpoint *endpoint, const rd_destination *where);

/* Of a WebSocket: the place of the sub-protocol that the server has chosen among those that were
 * asked for, from 1 on; 0: none. */
unsigned rd_outgoing_subprotocol(rd_endpoint *endpoint);

/* The server stops: those that are being made fail, and so do all later ones. */
void rd_outgoings_stop(rd_outgoings *outgoings);

#endif

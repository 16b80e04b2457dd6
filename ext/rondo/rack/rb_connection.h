/* SPDX-License-Identifier: MIT
 *
 * Rondo::Connection, the rack.hijack of a request. With the GVL.
 */
#ifndef RD_RACK_CONNECTION_H
#define RD_RACK_CONNECTION_H

#include "rack/rb_call.h"

void rd_init_connection(VALUE rondo);
VALUE rd_connection_new(void);

/* The call whose rack.hijack this is, while the application is inside the call and on its thread;
 * else NULL. */
rd_call *rd_connection_call(VALUE self);

/* Whether the application may take the connection. A stream of HTTP/2 carries HTTP alone, unless it
 * is that of a WebSocket. Not before the env is built. */
bool rd_connection_is_takeable(const rd_call *call);

/* Waits until everything queued is sent, then takes the descriptor. Returns a Ruby IO. */
VALUE rd_connection_detach(rd_call *call);

#endif

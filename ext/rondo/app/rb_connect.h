/* SPDX-License-Identifier: MIT
 *
 * Connections that the application asks for: Rondo.connect. With the GVL.
 */
#ifndef RD_APP_CONNECT_H
#define RD_APP_CONNECT_H

#include "binding/rb_binding.h"

/* Reports why a connection could not be made. `client` is what rd_client_new() made for it.
 * Raises nothing. */
void rd_report_dial(rd_binding *binding, const rd_endpoint *endpoint, VALUE client);

/* Rondo::Client#subprotocol. */
void rd_init_client_connect(VALUE cClient);

/* `connect` of Rondo::Server::Core, and Rondo::DialLimitError. */
void rd_init_core_connect(VALUE core, VALUE rondo);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Names of listeners, by which a connection that comes from another process is opened as that
 * listener would have opened it. A plain listener has an empty name: whatever its address is, its
 * connections are all alike. Any other one is called by its URL; a connection that another process
 * goes on with in the middle is called by the scheme alone ("https"), because what a listener
 * decides is decided already. The names outlive their listeners: a server that stops has none any
 * more, and connections are still on their way to it. Under the loop lock.
 */
#ifndef RD_TRANSPORT_LISTENER_NAMES_H
#define RD_TRANSPORT_LISTENER_NAMES_H

#include "base/slice.h"
#include "transport/conn.h"
#include "transport/listener.h"

#define RD_LISTENER_NAME_MAX RD_LISTENER_URL_MAX

typedef struct rd_listener_name {
    const rd_transport *transport;
    char url[RD_LISTENER_URL_MAX];
} rd_listener_name;

/* Zeroed: none. */
typedef struct rd_listener_names {
    rd_listener_name *rows;
    size_t count;
} rd_listener_names;

void rd_listener_names_add(rd_listener_names *names, const rd_listener *listener);
void rd_listener_names_clear(rd_listener_names *names);

/* The transport of that listener; NULL: there never was one of this name. */
const rd_transport *rd_listener_names_find(const rd_listener_names *names, rd_slice name);

/* Of a connection that the listener has just accepted, and of one in the middle. */
rd_slice rd_listener_name_of(const rd_listener *listener);
rd_slice rd_listener_name_of_conn(rd_conn *conn);

#endif

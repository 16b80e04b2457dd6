/* SPDX-License-Identifier: MIT
 *
 * Names of listeners. By its name, a connection that comes from another process is opened as that
 * listener would have opened it. A plain listener has an empty name: its connections are all alike,
 * whatever its address is. Any other listener has its URL as its name. A connection that moves
 * after its first bytes has only the scheme ("https") as its name, because what a listener decides
 * is already decided. The names outlive their listeners: a server that stops has no listeners any
 * more, while connections are still on their way to it. A raw listener has no name: its connections
 * stay where they are. A listener with a site of its own has its URL as its name, plain or not, and
 * so have its connections at any time: each process has its own numbers of sites. Under the loop
 * lock.
 */
#ifndef RD_LISTEN_LISTENER_NAMES_H
#define RD_LISTEN_LISTENER_NAMES_H

#include "base/slice.h"
#include "transport/conn.h"
#include "listen/listener.h"

#define RD_LISTENER_NAME_MAX RD_LISTENER_URL_MAX

typedef struct rd_listener_name {
    const rd_transport *transport; /* the row is an owner */
    uint16_t site;
    char url[RD_LISTENER_URL_MAX];
} rd_listener_name;

/* Zeroed: there are no names. */
typedef struct rd_listener_names {
    rd_listener_name *rows;
    size_t count;
} rd_listener_names;

void rd_listener_names_add(rd_listener_names *names, const rd_listener *listener);
void rd_listener_names_clear(rd_listener_names *names);

/* Transport and site of the listener with this name. NULL: there never was one. */
const rd_listener_name *rd_listener_names_find(const rd_listener_names *names, rd_slice name);

/* The name for a connection that was just accepted, and for one that was already used. */
rd_slice rd_listener_name_of(const rd_listener *listener);
rd_slice rd_listener_name_of_conn(const rd_listener_names *names, rd_conn *conn);

#endif

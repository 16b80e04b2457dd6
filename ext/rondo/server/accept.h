/* SPDX-License-Identifier: MIT
 *
 * The listeners of a server, and the limit of connections. At the limit, new connections wait in
 * the kernel's queue, and unused connections are closed to make room. Under the loop lock, or
 * before the server runs.
 */
#ifndef RD_SERVER_ACCEPT_H
#define RD_SERVER_ACCEPT_H

#include "listen/listener.h"
#include "listen/listener_names.h"

struct rd_server;

typedef struct rd_accepting {
    rd_list listeners;
    rd_listener_names names;
    rd_network *proxies; /* owned: peers that begin with a PROXY header */
    uint32_t limit;      /* of connections */
    rd_timer timer;      /* runs while the limit is reached */
    bool paused;
    bool is_secure; /* there is, or was, a listener that is not plain */
} rd_accepting;

/* `node` advances before the body runs, so the body may end the listener. */
#define RD_EACH_LISTENER(server, listener, node)                                                   \
    for (rd_list *node = (server)->accepting.listeners.next, *next = node->next;                   \
         node != &(server)->accepting.listeners; node = next, next = node->next)                   \
        for (rd_listener *listener = RD_CONTAINER(node, rd_listener, in_server); listener != NULL; \
             listener = NULL)

void rd_accept_init(struct rd_server *server);

/* Call it after the listeners have ended and the connections are closed. */
void rd_accept_clear(struct rd_server *server);

/* Sets the peers that begin each connection with a PROXY header. Takes over the array. */
void rd_server_set_proxies(struct rd_server *server, rd_network *networks, size_t count);

/* Takes over an opened listener, allocated by rd_alloc. Returns 0, or -1 with errno. */
int rd_server_add_listener(struct rd_server *server, rd_listener *listener);

/* Pauses the listeners while there is no room. Part of every turn. */
void rd_accept_limit(struct rd_server *server);

/* Ends all listeners. Each first accepts at most `most` of the connections that wait. */
void rd_accept_end(struct rd_server *server, int most);

#endif

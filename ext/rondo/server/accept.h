/* SPDX-License-Identifier: MIT
 *
 * The listeners of a server, and whether there is room for what they accept. At the limit, new
 * connections wait in the kernel's queue, and connections that nothing uses make room for them.
 * Under the loop lock, or before the server runs.
 */
#ifndef RD_SERVER_ACCEPT_H
#define RD_SERVER_ACCEPT_H

#include "transport/listener.h"
#include "transport/listener_names.h"

struct rd_server;

typedef struct rd_accepting {
    rd_list listeners;
    rd_listener_names names;
    rd_network *proxies; /* owned: peers that open with the PROXY protocol */
    uint32_t limit;      /* of connections */
    rd_timer timer;      /* runs while the limit is reached */
    bool paused;
} rd_accepting;

/* `node` goes on before the body, which may end the listener. */
#define RD_EACH_LISTENER(server, listener, node)                                                   \
    for (rd_list *node = (server)->accepting.listeners.next, *next = node->next;                   \
         node != &(server)->accepting.listeners; node = next, next = node->next)                   \
        for (rd_listener *listener = RD_CONTAINER(node, rd_listener, in_server); listener != NULL; \
             listener = NULL)

void rd_accept_init(struct rd_server *server);

/* The listeners have ended, and the connections are closed. */
void rd_accept_clear(struct rd_server *server);

/* Peers that open each connection with the PROXY protocol; the array is taken over. */
void rd_server_set_proxies(struct rd_server *server, rd_network *networks, size_t count);

/* Takes over an opened listener (allocated by rd_alloc). 0 or -1 with errno. */
int rd_server_add_listener(struct rd_server *server, rd_listener *listener);

/* Accepts only while there is room. Part of every turn. */
void rd_accept_limit(struct rd_server *server);

/* Ends all listeners; each takes at most that many of the connections that wait. */
void rd_accept_end(struct rd_server *server, int most);

#endif

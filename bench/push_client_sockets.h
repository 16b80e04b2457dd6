/* SPDX-License-Identifier: MIT
 *
 * WebSockets: opening many of them, writing to one. Belongs to push_client.c. */
#ifndef BENCH_PUSH_CLIENT_SOCKETS_H
#define BENCH_PUSH_CLIENT_SOCKETS_H

#include "push_client_frames.h"

#include <stdbool.h>

typedef struct rd_socket {
    int fd;         /* -1 once it is lost */
    unsigned index; /* among its kind */
    uint32_t next;  /* number of the message it waits for */
    bool owes;      /* an echo came, the next message has to be sent */
    uint64_t sent_ns;
    rd_frame_reader reader;
} rd_socket;

/* Opens `count` WebSockets at the path. If `greeted`, it waits for one message on each, which says
 * that the server has subscribed it. Returns how many opened; the others have fd -1. */
unsigned rd_sockets_open(rd_socket *sockets, unsigned count, unsigned port, const char *path,
                         bool greeted, int receive_bytes);

/* Sends all of it or returns false; never blocks. */
bool rd_socket_send(rd_socket *socket, const void *bytes, size_t len);

/* These two decide when acknowledgements are sent. By default the kernel acknowledges the first
 * messages of a connection, and those after a pause, while they come in. On the loopback that
 * happens inside the server's send(), at the server's cost. After the first function the kernel
 * waits; the second makes it acknowledge the bytes that were read, at the client's cost. */
void rd_socket_delay_acknowledgement(rd_socket *socket);
void rd_socket_acknowledge(rd_socket *socket);

/* Closes with a reset, so that nothing waits in the kernel for the next run. */
void rd_socket_abort(rd_socket *socket);

#endif

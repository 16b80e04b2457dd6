/* SPDX-License-Identifier: MIT
 *
 * A server among the workers of its cluster: an inbox of its own, the way into those of the others,
 * and the message that takes a connection there. An inbox is a socket that keeps whole messages; it
 * belongs to a place in the cluster, so what is queued outlives a worker. Which connections go
 * where is decided in handover.h and departure.h. Under the loop lock.
 *
 *   worker 0 ── sendmsg(descriptor, header, bytes) ──▶ inbox of worker 1
 */
#ifndef RD_SERVER_SIBLINGS_H
#define RD_SERVER_SIBLINGS_H

#include "loop/loop.h"
#include "cluster/scoreboard.h"
#include "transport/listener_names.h"
#include "transport/packed.h"

/* Of messages; raised when an older reader would misread them. One that it cannot read at all, it
 * refuses by the magic number. */
#define RD_HANDOVER_VERSION   1
#define RD_HANDOVER_BYTES_MAX 32768 /* read and not answered */
#define RD_HANDOVER_NAMES_MAX 512

struct rd_server;

/* A server's place among its siblings. */
typedef struct rd_siblings {
    const rd_scoreboard *board; /* of those it sends to; NULL: there are none */
    const rd_scoreboard *home;  /* where senders count what is on its way to this server */
    uint32_t own;               /* its row at home */
    int *outboxes;   /* owned; by row of `board`, -1 where there is none; the descriptors are not */
    rd_source inbox; /* not owned; fd -1: none, or left */
    void (*on_messages)(struct rd_server *server); /* something is in the inbox */
} rd_siblings;

/* How a connection comes. */
enum {
    RD_HANDOVER_IDLE = 1, /* its worker stops: between two requests, or in the middle of a head */
    RD_HANDOVER_NEW = 2,  /* with RD_HANDOVER_IDLE: its PROXY header was not read, if it has one */
};

/* In front of the names and the bytes. Both ends are on the same machine, so it is a plain struct.
 * They may be of different versions: a reader of version 0 has one number for hops, flags and
 * names, and keeps a connection with flags like one that came too far. A message with names has a
 * magic number of its own: readers that know none refuse it, and do not open an encrypted
 * connection as a plain one. */
typedef struct rd_handover_header {
    uint32_t magic;
    uint32_t len;    /* of names and bytes */
    uint32_t served; /* requests so far */
    uint32_t time; /* us the request has waited; with RD_HANDOVER_IDLE: ms left of its deadline, if
                      any */
    uint8_t hops;  /* a new connection may be passed on, but not for ever */
    uint8_t flags;
    uint16_t names; /* bytes of them; 0: plain, and with the protocol that connections begin with */
    uint32_t to;    /* row it was meant for; the inbox may be another process's by now */
    rd_address peer;
} rd_handover_header;

/* A connection on its way. The header's magic, len, names and to are the message's own. */
typedef struct rd_handover {
    rd_handover_header header;
    rd_slice listener; /* see listener_names.h */
    rd_slice protocol; /* its name in the table of protocols; empty: the first one */
    rd_packed packed;  /* of the header: served, left_ms and begun */
} rd_handover;

void rd_siblings_init(rd_siblings *siblings, void (*on_messages)(struct rd_server *server));

/* Takes part from now on. `outboxes` (by row, as many as the board has) is copied; all descriptors
 * stay the caller's and must be open as long as the server. 0, or -1 with errno. */
int rd_siblings_join(struct rd_server *server, const rd_scoreboard *board, uint32_t own, int inbox,
                     const int *outboxes);

/* Another master has started other workers: they get what this server gives away from now on. What
 * is on its way here still comes. As rd_siblings_join(); nothing for a server that never joined. */
void rd_siblings_set_heirs(struct rd_server *server, const rd_scoreboard *board,
                           const int *outboxes);

/* A server that stops: siblings send nothing more, and when nothing is on its way the inbox is left
 * to whoever comes after. To be called until rd_siblings_expect() says no. */
void rd_siblings_leave(struct rd_server *server);
bool rd_siblings_expect(const struct rd_server *server);

void rd_siblings_clear(struct rd_server *server);

/* Connections of a worker, those on their way to it included. */
uint64_t rd_siblings_load_of(const struct rd_server *server, const rd_score_slot *slot);

/* Whether any of them takes connections. */
bool rd_siblings_are_there(const struct rd_server *server);

/* The one that takes connections and has the least of what `weigh` says, below that number; -1
 * without one. */
typedef uint64_t (*rd_siblings_weigh)(const struct rd_server *server, const rd_score_slot *slot);
int64_t rd_siblings_lightest(const struct rd_server *server, rd_siblings_weigh weigh,
                             uint64_t below);

/* True when the connection is in that one's inbox; the descriptor is still open here. False also
 * when there is too much to send along. */
bool rd_siblings_send(struct rd_server *server, int64_t to, int fd, rd_handover *handover);

/* Takes one message out of the inbox; false when there is none. What it says points into `bytes`,
 * which has room for RD_HANDOVER_NAMES_MAX + RD_HANDOVER_BYTES_MAX; `fd` is -1 where the message is
 * of no use. */
bool rd_siblings_receive(struct rd_server *server, rd_handover *handover, char *bytes, int *fd);

#endif

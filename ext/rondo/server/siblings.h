/* SPDX-License-Identifier: MIT
 *
 * A server among the workers of its cluster: its own inbox, the outboxes to the others, and the
 * message that carries a connection. An inbox is a socket that keeps whole messages. It belongs to
 * a row of the cluster, so queued messages outlive a worker. handover.h and departure.h decide
 * which connections move. Under the loop lock.
 *
 *   worker 0 ── sendmsg(descriptor, header, bytes) ──▶ inbox of worker 1
 */
#ifndef RD_SERVER_SIBLINGS_H
#define RD_SERVER_SIBLINGS_H

#include "loop/loop.h"
#include "cluster/scoreboard.h"
#include "listen/listener_names.h"
#include "transport/packed.h"

/* The version of messages, raised when an older reader would misread them. A reader refuses a
 * message that it cannot read at all by the magic number. */
#define RD_HANDOVER_VERSION   1
#define RD_HANDOVER_BYTES_MAX 32768 /* read and not answered */
#define RD_HANDOVER_NAMES_MAX 512

struct rd_server;

/* A server's place among its siblings. */
typedef struct rd_siblings {
    const rd_scoreboard *board; /* of the workers it sends to; NULL: there are none */
    const rd_scoreboard *home;  /* where senders count connections on their way to this server */
    uint32_t own;               /* this server's row in `home` */
    int *outboxes;   /* by row of `board`, -1: none; the array is owned, the descriptors are not */
    rd_source inbox; /* not owned; fd -1: none, or left */
    void (*on_messages)(struct rd_server *server); /* something is in the inbox */
} rd_siblings;

/* The state in which a connection comes. */
enum {
    RD_HANDOVER_IDLE = 1,    /* its worker stops: it is between two requests, or within a head */
    RD_HANDOVER_NEW = 2,     /* with RD_HANDOVER_IDLE: a PROXY header, if any, was not read yet */
    RD_HANDOVER_FORWARD = 4, /* only a request comes, see forward.h */
    RD_HANDOVER_STREAM = 8,  /* with RD_HANDOVER_FORWARD: it came on a stream of HTTP/2 */
};

/* The header before the names and the bytes. Both ends are on the same machine, so it is a plain
 * struct. The ends may have different versions: a reader of version 0 has one number for hops,
 * flags and names, and keeps a connection with flags as if it had too many hops. A message with
 * names has its own magic number: a reader that does not know names refuses it, and does not open
 * an encrypted connection as a plain one. So has a forward: a reader that does not know it does not
 * expect the transport of the listener on a socket pair. */
typedef struct rd_handover_header {
    uint32_t magic;
    uint32_t len;    /* of names and bytes */
    uint32_t served; /* requests so far */
    uint32_t time;   /* us that the request has waited; with RD_HANDOVER_IDLE: ms left of its
                        deadline, if any */
    uint8_t hops;    /* how often a new connection was passed on; limited */
    uint8_t flags;
    uint16_t names; /* their length; 0: plain, with the protocol that connections begin with */
    uint32_t to;    /* the row it was sent to; the inbox may belong to another process by now */
    rd_address peer;
} rd_handover_header;

/* A connection on its way. Sending sets magic, len, names and to of the header. */
typedef struct rd_handover {
    rd_handover_header header;
    rd_slice listener; /* see listener_names.h */
    rd_slice protocol; /* its name in the table of protocols; empty: the first protocol */
    rd_packed packed;  /* of the header: served, left_ms and begun */
} rd_handover;

void rd_siblings_init(rd_siblings *siblings, void (*on_messages)(struct rd_server *server));

/* The server takes part from now on. `outboxes` (one for each row of the board) is copied. All
 * descriptors stay the caller's, and must be open as long as the server lives. Returns 0, or -1
 * with errno. */
int rd_siblings_join(struct rd_server *server, const rd_scoreboard *board, uint32_t own, int inbox,
                     const int *outboxes);

/* Another master has started other workers: from now on this server sends connections to them. What
 * is on its way here still arrives. Arguments as for rd_siblings_join(). Does nothing for a server
 * that never joined. */
void rd_siblings_set_heirs(struct rd_server *server, const rd_scoreboard *board,
                           const int *outboxes);

/* The server stops: siblings send nothing more. When nothing is on its way any more, it leaves the
 * inbox to the next worker. Call it until rd_siblings_expect() is false. */
void rd_siblings_leave(struct rd_server *server);
bool rd_siblings_expect(const struct rd_server *server);

void rd_siblings_clear(struct rd_server *server);

/* Number of connections of a worker, including those on their way to it. */
uint64_t rd_siblings_load_of(const struct rd_server *server, const rd_score_row *row);

/* Whether any sibling takes connections. */
bool rd_siblings_are_there(const struct rd_server *server);

/* The sibling that takes connections and has the least weight, if that is below `below`; -1: there
 * is none. */
typedef uint64_t (*rd_siblings_weigh)(const struct rd_server *server, const rd_score_row *row);
int64_t rd_siblings_lightest(const struct rd_server *server, rd_siblings_weigh weigh,
                             uint64_t below);

/* True: the connection is in the inbox of `to`; the descriptor is still open here. Also false if
 * there are too many bytes to send. */
bool rd_siblings_send(struct rd_server *server, int64_t to, int fd, rd_handover *handover);

/* Takes one message out of the inbox. False: there is none. `handover` points into `bytes`, which
 * has room for RD_HANDOVER_NAMES_MAX + RD_HANDOVER_BYTES_MAX. `fd` is -1 if the message cannot be
 * used. */
bool rd_siblings_receive(struct rd_server *server, rd_handover *handover, char *bytes, int *fd);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Listening sockets: opened from an address or adopted from a parent. A listener accepts a bounded
 * number of connections a turn. Out of descriptors, it accepts one connection with the help of a
 * spare descriptor, sends it the bytes that its owner set for this case, and closes it. Then it
 * backs off, so that it neither spins nor starves.
 * Under the loop lock, except for the opening functions, which are called before the loop runs.
 */
#ifndef RD_LISTEN_LISTENER_H
#define RD_LISTEN_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/slice.h"
#include "loop/loop.h"
#include "transport/address.h"
#include "listen/retirement.h"
#include "transport/transport.h"

#define RD_LISTENER_URL_MAX   160
#define RD_LISTENER_ERROR_MAX 256

typedef struct rd_listener rd_listener;

typedef struct rd_listen_options {
    int backlog;
    bool reuse_port;
    bool nodelay;
    bool reserves;                 /* the port, and lets nobody in: it is about to be replaced */
    int mode;                      /* of a Unix socket's file; -1: as the umask says */
    const rd_transport *transport; /* of the connections; NULL: plain. The listener is an owner */
} rd_listen_options;

struct rd_listener {
    rd_source source;
    rd_list in_server;
    rd_timer backoff;
    rd_retirement retirement;
    rd_loop *loop;
    const rd_transport *transport;
    /* Takes over the descriptor. True: the connection has brought work for this turn. */
    bool (*on_accept)(rd_listener *listener, int fd, const rd_address *peer);
    /* NULL, or called for each connection that got no descriptor. */
    void (*on_busy)(rd_listener *listener);
    void *owner;
    rd_slice busy; /* what is sent to such a connection */
    int accepts_per_turn;
    bool paused;        /* see rd_listener_pause() */
    bool is_adopted;    /* another part opened the socket */
    uint16_t site;      /* of its connections; 0: that of the server. See listener_names.h */
    bool is_raw;        /* its connections are raw, see rd_listener_make_raw() */
    uint32_t maker;     /* then: the number of what makes their handlers */
    int spare_fd;       /* closed to refuse a connection if there is no other */
    uint16_t port;      /* 0 for Unix sockets */
    char *unlink_path;  /* the Unix socket's file, if it is to be removed */
    ino_t unlink_inode; /* inodes are reused at once, so its creation time counts, too */
    struct timespec unlink_made;
    char host[64];
    char url[RD_LISTENER_URL_MAX];
};

/* Each opens one listening socket. Returns 0, or a negative errno with one line in `error`. */
int rd_listen_tcp(rd_listener *listener, const char *host, uint16_t port,
                  const rd_listen_options *options, char error[RD_LISTENER_ERROR_MAX]);
int rd_listen_unix(rd_listener *listener, const char *path, const rd_listen_options *options,
                   char error[RD_LISTENER_ERROR_MAX]);
/* `transport` says what is spoken on the socket, because the socket does not; NULL: plain. With
 * `owns_file` the file of a Unix socket is removed at the end, as if it was opened here. The
 * descriptor stays the caller's until rd_listener_start() succeeds; only then is it closed here. */
int rd_listen_inherited(rd_listener *listener, int fd, const rd_transport *transport,
                        bool owns_file, char error[RD_LISTENER_ERROR_MAX]);

/* Call it before rd_listener_start(): its connections are raw (endpoint/raw.h), and its URL says
 * so, "raw tcp://127.0.0.1:7000". The kernel looks after peers that are silent for `silence_s`
 * seconds; 0: it does not. */
void rd_listener_make_raw(rd_listener *listener, uint32_t maker, unsigned silence_s);

/* Registers with the loop. Returns 0, or -1 with errno. An adopted descriptor and its file are the
 * caller's then. */
int rd_listener_start(rd_listener *listener, rd_loop *loop);

/* A paused listener leaves new connections in the kernel's queue. It takes effect with the next
 * connection, so on_accept may call it. */
void rd_listener_pause(rd_listener *listener, bool paused);

/* Accepts what waits in the kernel's queue, at most `most`. Returns how many there were. */
int rd_listener_accept(rd_listener *listener, int most);

/* Another process still uses the socket, so its file stays when this process closes it. */
void rd_listener_keep_file(rd_listener *listener);

/* Closes the socket, and removes the file of a Unix socket that it created. */
void rd_listener_close(rd_listener *listener);

/* In a forked child: closes its copies of the descriptors, and nothing else. */
void rd_listener_abandon(rd_listener *listener);

/* Ends a listener of a server: accepts what waits, at most `most`, closes and frees it. */
void rd_listener_end(rd_listener *listener, int most);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Where a name leads: the addresses to which dial.c connects. The system's resolver may wait long
 * for a name server, so it runs on a thread of loop/disk.h, two lookups at a time. Under the loop
 * lock, except for rd_targets_read().
 */
#ifndef RD_LISTEN_LOOKUP_H
#define RD_LISTEN_LOOKUP_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "loop/disk.h"

#define RD_TARGETS_MAX   16  /* of one name; further addresses are not tried */
#define RD_HOST_NAME_MAX 255 /* bytes */

/* An address as the kernel wants it. */
typedef struct rd_target {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un unix_path;
    } address;
} rd_target;

/* In the order in which they are tried. */
typedef struct rd_targets {
    uint32_t count;
    rd_target list[RD_TARGETS_MAX];
} rd_targets;

/* An address in place of a name ("127.0.0.1", "::1", "fe80::1%eth0"). False: it is a name. Asks no
 * name server. Any thread. */
bool rd_targets_read(rd_targets *targets, const char *host, uint16_t port);

/* A Unix socket; a path that begins with @ is abstract. False: it is too long. Any thread. */
bool rd_targets_of_path(rd_targets *targets, const char *path);

/* Alternates between the families, and begins with that of the first one (RFC 8305, section 4). Any
 * thread. */
void rd_targets_interleave(rd_targets *targets);

typedef struct rd_lookup rd_lookup;

struct rd_lookup {
    rd_disk_job job;
    atomic_bool is_dropped;
    /* Later, unless the lookup was dropped: there are targets, or there is none and `why`. */
    void (*on_found)(rd_lookup *lookup);
    void *owner;
    uint32_t *live; /* counts the lookups of which a thread may still know */
    const char *why;
    uint16_t port;
    rd_targets targets;
    char host[RD_HOST_NAME_MAX + 1];
};

/* The caller sets on_found, owner and live. A longer name is cut. */
rd_lookup *rd_lookup_new(const char *host, uint16_t port);

/* After on_found the lookup is not the caller's any more. */
void rd_lookup_begin(rd_loop *loop, rd_lookup *lookup);

/* The answer is not wanted any more. */
void rd_lookup_drop(rd_lookup *lookup);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Connecting to a name or an address, without ever blocking: the name is looked up (lookup.h), then
 * its addresses are tried as RFC 8305 has it ("happy eyeballs"): one after the other, a quarter of
 * a second apart or as soon as one has failed, and the first that answers wins. The path of a Unix
 * socket is looked up by a thread, too (path_call.h). All of it has one deadline. Each socket
 * counts as a descriptor in the ledger. Under the loop lock.
 *
 *   begin ──▶ looking up ──▶ trying ──▶ on_done(descriptor)
 *     └────────────────────────▲└─────▶ on_done(-1): `why`
 */
#ifndef RD_LISTEN_DIAL_H
#define RD_LISTEN_DIAL_H

#include "base/ledger.h"
#include "listen/lookup.h"
#include "listen/path_call.h"
#include "transport/address.h"

/* Those of one loop. */
typedef struct rd_dialer {
    rd_loop *loop;
    rd_ledger *ledger;
    rd_list attempts; /* of all */
    rd_list calls;    /* of path_call.h, of all, and those that were dropped */
    uint32_t waits;   /* for a name server or a disk: a thread may still know of so many */
    bool nodelay;
} rd_dialer;

/* Lives in its owner. */
typedef struct rd_dial {
    rd_dialer *dialer;
    rd_lookup *lookup;  /* while it goes on */
    rd_path_call *call; /* while it goes on */
    rd_targets *targets;
    uint32_t next;    /* target */
    rd_list attempts; /* that have begun and are not over */
    rd_timer due, stagger;
    const char *why; /* the last failure: a text that is there for ever */
    /* The dial is over, and may be freed. The descriptor is the owner's; -1: it has failed. */
    void (*on_done)(struct rd_dial *dial, int fd, const rd_address *peer);
} rd_dial;

void rd_dialer_init(rd_dialer *dialer, rd_loop *loop, rd_ledger *ledger);

/* In a forked child: closes the descriptors, which are copies of the parent's. */
void rd_dialer_abandon(rd_dialer *dialer);

/* Connects to one of these, which rd_alloc() has made; takes them over. May call on_done at once.
 */
void rd_dial_begin(rd_dialer *dialer, rd_dial *dial, rd_targets *targets, uint64_t due_ms);

/* Connects to a name. */
void rd_dial_name(rd_dialer *dialer, rd_dial *dial, const char *host, uint16_t port,
                  uint64_t due_ms);

/* Ends it without on_done. */
void rd_dial_cancel(rd_dial *dial);

#endif

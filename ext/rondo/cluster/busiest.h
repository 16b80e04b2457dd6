/* SPDX-License-Identifier: MIT
 *
 * Which connections ask most, and which wait longest, during one period. There may be any number of
 * connections: the busiest are found by the Space-Saving algorithm (Metwally, Agrawal, El Abbadi
 * 2005), which keeps a few of them. One that asks more often than the others together ask for each
 * place is among them; its number may be too high by that of the one whose place it took. One
 * owner, no lock.
 */
#ifndef RD_CLUSTER_BUSIEST_H
#define RD_CLUSTER_BUSIEST_H

#include "cluster/view.h"

#define RD_BUSIEST_KEPT 32

typedef struct rd_busiest {
    uint64_t keys[RD_BUSIEST_KEPT]; /* of the peers; 0: free */
    rd_view_client busy[RD_BUSIEST_KEPT];
    uint64_t late_keys[RD_VIEW_CLIENTS];
    rd_view_client late[RD_VIEW_CLIENTS];
    uint64_t late_above_us; /* a wait that is not longer changes nothing in `late` */
} rd_busiest;

void rd_busiest_add(rd_busiest *busiest, const rd_address *peer, uint64_t waited_us);

/* Writes them into the view, and begins anew. */
void rd_busiest_take(rd_busiest *busiest, rd_view *view);

#endif

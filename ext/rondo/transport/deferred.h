/* SPDX-License-Identifier: MIT
 *
 * Work that a protocol has put off because it would hold up everything else: input that costs far
 * more than its bytes. It is done in the next turns of the loop, a tenth of a millisecond in
 * each, by turns for all who stand in line. Under the loop lock.
 */
#ifndef RD_TRANSPORT_DEFERRED_H
#define RD_TRANSPORT_DEFERRED_H

#include "transport/conn.h"

typedef struct rd_deferred {
    rd_list in_line;
    void (*go_on)(struct rd_deferred *deferred); /* does a small part, or stands in line again */
} rd_deferred;

void rd_deferred_init(rd_deferred *deferred, void (*go_on)(rd_deferred *deferred));

static inline bool rd_deferred_waits(const rd_deferred *deferred) {
    return rd_list_is_linked(&deferred->in_line);
}

/* Stands in line. */
void rd_deferred_wait(rd_conn_set *set, rd_deferred *deferred);

/* Leaves the line; nothing if it does not stand there. */
void rd_deferred_leave(rd_conn_set *set, rd_deferred *deferred);

/* Until when new work of this kind may go on in this turn, in ns of rd_clock_ns(); 0: others wait,
 * or the time of this turn is spent. */
uint64_t rd_deferred_until(const rd_conn_set *set, uint64_t now_ns);

/* New work took this long in this turn. */
void rd_deferred_spend(rd_conn_set *set, uint64_t ns);

/* Does what stands in line, for as long as it may. */
void rd_deferred_serve(rd_conn_set *set);

/* Does all of it: every connection is closed. */
void rd_deferred_finish(rd_conn_set *set);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The view of a server (cluster/view.h), which it writes into its row of the scoreboard four times
 * a second while somebody watches: the status page, `rondo top`. Nobody watches most of the time;
 * then a turn tests one number. Under the loop lock.
 */
#ifndef RD_SERVER_ONLOOK_H
#define RD_SERVER_ONLOOK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cluster/busiest.h"
#include "cluster/scoreboard.h"
#include "loop/timer.h"
#include "request/request.h"

#define RD_MAY_BE_WATCHED 1 /* of rd_score_row.watched_ms: from time to time somebody does */

struct rd_server;

typedef struct rd_onlook {
    rd_timer timer;       /* armed while somebody watches */
    rd_busiest *busiest;  /* NULL: nobody watches */
    rd_view *view;        /* what was written last */
    uint64_t since_ms;    /* of the period */
    atomic_bool is_going; /* for the watch thread */
} rd_onlook;

void rd_onlook_init(struct rd_server *server);

/* Somebody watches: begins, unless it has begun. */
void rd_onlook_begin(struct rd_server *server);

/* While somebody watches: counts a request that goes to the application. */
void rd_onlook_count(rd_onlook *onlook, const rd_request *request, uint64_t waited_us);

void rd_onlook_end(struct rd_server *server);

/* Whether somebody watches. */
static inline bool rd_is_watched(const rd_score_row *score) {
    return atomic_load_explicit(&score->watched_ms, memory_order_relaxed) > RD_MAY_BE_WATCHED;
}

/* Whether somebody watches a server that does not know it, because it runs no turns. Any thread. */
static inline bool rd_onlook_is_missed(const rd_onlook *onlook, const rd_score_row *score) {
    return rd_is_watched(score) && !atomic_load_explicit(&onlook->is_going, memory_order_relaxed);
}

#endif

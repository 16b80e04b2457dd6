/* SPDX-License-Identifier: MIT
 *
 * The hub of a running cluster: in the master, on a native thread with a loop of its own, so that
 * messages pass between the workers whatever Ruby does. Each link is one end of a pair of stream
 * sockets; a worker has the other end (cluster/link.h). The rules are in pubsub/hub.h.
 *
 * No process waits for another: what a link does not take is queued up to a limit, and above the
 * limit its newest messages are dropped and counted. A link whose process has gone is read to its
 * end first.
 *
 * A master that replaces itself stops the thread and saves; the next program restores and starts.
 * Meanwhile what workers send waits in their sockets.
 *
 * These functions may be called by any thread, without a lock.
 */
#ifndef RD_CLUSTER_HUB_THREAD_H
#define RD_CLUSTER_HUB_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pubsub/hub.h"
#include "cluster/scoreboard.h"

typedef struct rd_hub_thread rd_hub_thread;

typedef struct rd_hub_stats {
    uint64_t links;
    uint64_t published, sent, dropped; /* messages; the last two: on all links, also former ones */
    uint64_t queue_bytes;
    uint64_t kept;           /* messages in the history */
    uint64_t unclaimed_lost; /* messages for an engine, while there was none */
} rd_hub_stats;

/* Creates a hub. `queue_bytes` limits the messages queued for each link. NULL with errno set. */
rd_hub_thread *rd_hub_thread_new(rd_history_limits limits, size_t queue_bytes);

/* See rd_hub_expect_streams(), rd_hub_expect_no_engine(). */
void rd_hub_thread_expect_streams(rd_hub_thread *thread);
void rd_hub_thread_expect_no_engine(rd_hub_thread *thread);

/* Starts the thread, with all signals blocked. Returns 0 or a negative errno. */
int rd_hub_thread_start(rd_hub_thread *thread);

/* Ends the thread, if it runs, and waits for it. All links stay; the thread may be started
 * again. */
void rd_hub_thread_stop(rd_hub_thread *thread);

/* Stops, and closes all links. */
void rd_hub_thread_free(rd_hub_thread *thread);

/* Adds a link and takes over its descriptor, a stream socket. Returns the link's number (> 0), or
 * -1 with errno; then the descriptor stays the caller's. `score`, if not NULL, is the worker's row
 * until the link ends. EEXIST: there is an engine already. */
int64_t rd_hub_thread_add(rd_hub_thread *thread, int fd, rd_hub_kind kind, rd_score_row *score);

/* Call it when the link's process has ended. Reads what the process has left and closes the link,
 * although other processes (its children) may still hold the socket. An engine's link closes after
 * it has been sent what was queued; what is published for an engine waits for the next one. */
void rd_hub_thread_remove(rd_hub_thread *thread, int64_t number);

/* Publishes a message of the master itself, with or without ENGINE, ROOT, WORKERS. Returns 1 when
 * it was queued for all links that want it, 0 when a link had no room, or an error as for a link.
 * keep() adds a rule and returns 0 or such an error. */
int rd_hub_thread_publish(rd_hub_thread *thread, rd_slice channel, rd_slice payload,
                          unsigned flags);
int rd_hub_thread_keep(rd_hub_thread *thread, rd_slice name, bool is_pattern, rd_relay_terms terms);

/* Takes a message that an engine gives back; see rd_hub_give_back(). */
bool rd_hub_thread_give_back(rd_hub_thread *thread, rd_slice channel, rd_slice payload,
                             unsigned flags);

void rd_hub_thread_stats(rd_hub_thread *thread, rd_hub_stats *stats);

/* Returns the number of a link that has begun to lose messages since the last call, or 0. */
int64_t rd_hub_thread_outage(rd_hub_thread *thread);

/* Writes the whole state into a file; reads it into a new hub, which continues with the same
 * descriptors. The engine's link is not saved. Returns 0, or -1 with errno (EINVAL: not written by
 * save). Only while the thread does not run. */
int rd_hub_thread_save(rd_hub_thread *thread, int fd);
int rd_hub_thread_restore(rd_hub_thread *thread, int fd);

/* Visits the links of workers and their descriptors. */
typedef void rd_hub_link_visit(void *with, int64_t number, int fd);
void rd_hub_thread_each(rd_hub_thread *thread, rd_hub_link_visit *run, void *with);

/* Around a fork, like rd_control_hold(), _release() and _abandon(). */
void rd_hub_thread_hold(rd_hub_thread *thread);
void rd_hub_thread_release(rd_hub_thread *thread);
void rd_hub_thread_abandon(rd_hub_thread *thread);

#endif

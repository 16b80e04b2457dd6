/* SPDX-License-Identifier: MIT
 *
 * The hub of a cluster as it runs: in the master, on a native thread with a loop of its own, so
 * that messages go between the workers whatever Ruby does. Each link is one end of a pair of stream
 * sockets; a worker has the other one (cluster/link.h). The rules are in pubsub/hub.h.
 *
 * Nobody waits for anybody: what a link does not take is queued up to a limit, and beyond that its
 * newest messages are lost and counted. A link whose process has gone is read to its end first.
 *
 * A master that replaces itself stops the thread and saves; the next one restores and starts. What
 * workers send meanwhile waits in their sockets.
 *
 * Any thread may call these, under no lock.
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
    uint64_t published, sent, dropped; /* messages; the last two: to all links, also former ones */
    uint64_t queue_bytes;
    uint64_t kept; /* messages in the history */
} rd_hub_stats;

/* `queue_bytes`: of messages for each link. NULL with errno set. */
rd_hub_thread *rd_hub_thread_new(rd_history_limits limits, size_t queue_bytes);

/* Starts the thread, which takes no signals. 0 or a negative errno. */
int rd_hub_thread_start(rd_hub_thread *thread);

/* Ends the thread, if it runs, and waits for it. All links stay; it may be started again. */
void rd_hub_thread_stop(rd_hub_thread *thread);

/* Stops, and closes all links. */
void rd_hub_thread_free(rd_hub_thread *thread);

/* Takes over the descriptor of a stream socket; the link's number (> 0), or -1 with errno and the
 * descriptor stays the caller's. `score`, where not NULL, is the worker's row, until the link ends.
 * EEXIST: there is an engine already. */
int64_t rd_hub_thread_add(rd_hub_thread *thread, int fd, rd_hub_kind kind, rd_score_slot *score);

/* Its process has ended: takes what it has left behind and closes, although others (its children)
 * may still hold the socket. An engine's link closes once it has been sent what was queued; what
 * is published for an engine waits for the next one. */
void rd_hub_thread_remove(rd_hub_thread *thread, int64_t number);

/* What the master itself publishes, ENGINE or not: 1: it was queued for all who want it; 0:
 * somebody has no room for it; or an error as for a link. Then its rules: 0, or such an error. */
int rd_hub_thread_publish(rd_hub_thread *thread, rd_slice channel, rd_slice payload,
                          unsigned flags);
int rd_hub_thread_keep(rd_hub_thread *thread, rd_slice name, bool is_pattern, uint32_t size,
                       uint64_t ttl_ms);

void rd_hub_thread_stats(rd_hub_thread *thread, rd_hub_stats *stats);

/* A link that has begun to lose messages since it was named last: its number, or 0. */
int64_t rd_hub_thread_outage(rd_hub_thread *thread);

/* Writes all there is into a file; reads it into a new hub, which goes on with the very same
 * descriptors. The engine's link stays behind. 0, or -1 with errno (EINVAL: not written by save).
 * Only while the thread does not run. */
int rd_hub_thread_save(rd_hub_thread *thread, int fd);
int rd_hub_thread_restore(rd_hub_thread *thread, int fd);

/* The links of workers and their descriptors. */
typedef void rd_hub_link_visit(void *with, int64_t number, int fd);
void rd_hub_thread_each(rd_hub_thread *thread, rd_hub_link_visit *run, void *with);

/* Around a fork, as rd_control_hold() and its kin. */
void rd_hub_thread_hold(rd_hub_thread *thread);
void rd_hub_thread_release(rd_hub_thread *thread);
void rd_hub_thread_abandon(rd_hub_thread *thread);

#endif

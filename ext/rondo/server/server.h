/* SPDX-License-Identifier: MIT
 *
 * The server: loop, listeners, connections and the queue of requests that the application has to
 * answer. rd_server_turn() is C only; whoever runs it (the Ruby binding, a test) takes requests
 * and wake-ups out of the queues and answers them through each request's responder.
 *
 *   turn   begin     messages find their subscribers ▶ answers leave ▶ long sends get their time ▶
 *                    connections leave a worker that stops ▶ the quantum of a connection ends ▶
 *                    guests stay or go on
 *          poll      sleeps when there is nothing to do
 *          process   every ready connection is read and parsed ▶ timers ▶ what closed is freed ▶
 *                    guests ▶ a stop is carried out ▶ requests for files are answered ▶ those that
 *                    waited too long are turned away ▶ calls that take too long are noticed ▶ the
 *                    scoreboard is written
 *   batch            next_request … answer … next_request … until it is over ▶ events ▶ next turn
 *
 * One thread at a time runs turns: the leader, which also calls the application, or the watch
 * thread while the leader is away for long. Whoever begins a turn owns the loop from then on, and
 * the other one finds out when it comes back for the lock.
 *
 * Everything under the loop lock, but for rd_server_stop() in stop.h and what is called before it
 * runs.
 */
#ifndef RD_SERVER_SERVER_H
#define RD_SERVER_SERVER_H

#include <stdatomic.h>

#include "loop/loop.h"
#include "transport/conn.h"
#include "cluster/scoreboard.h"
#include "http/handler.h"
#include "server/accept.h"
#include "server/calls.h"
#include "server/departure.h"
#include "server/events.h"
#include "server/files.h"
#include "server/handover.h"
#include "server/incidents.h"
#include "server/lead.h"
#include "server/pubsub.h"
#include "server/queue.h"
#include "server/stop.h"
#include "server/watch.h"

typedef struct rd_server rd_server;

#define RD_DESCRIPTORS_KEPT 64 /* clients never have them: for the application and its logs */

typedef struct rd_counts {
    uint64_t requests, refused, accepted, dropped, timed_out, given_up, handed_in, handed_out;
} rd_counts;

/* What the core asks of the binding. `owner` is the binding's own. */
typedef struct rd_server_hooks {
    void *owner;
    void (*need_thread)(rd_server *server); /* requests wait and no leader takes them; any thread */
    void (*need_attention)(rd_server *server); /* a call takes long: see its flags; any thread */
    void (*unheard)(rd_server *server); /* nobody came for that; under the lock, without the GVL */
} rd_server_hooks;

struct rd_server {
    rd_score_slot own_score;
    rd_score_slot *score; /* own_score, or a slot of the scoreboard that all workers share */
    rd_settings settings;
    rd_loop loop;
    rd_conn_set conns;
    rd_http_shared http;
    rd_handler handler;
    rd_server_hooks hooks;
    rd_lead lead;
    rd_accepting accepting;
    rd_queue queue;
    rd_calls calls;
    rd_event_queue events;
    rd_files_queue files;
    rd_pubsub pubsub;
    rd_siblings siblings;
    rd_departure departure;
    rd_stop stop;
    rd_counts counts;
    rd_incidents incidents;
    rd_watch watch;
    char *body_folder; /* for files of bodies, as it was in the beginning */
};

/* Sleeps in rd_loop_wait() for up to timeout_us, in whatever way suits the thread (the binding
 * lets go of the GVL). May say in server->lead.awake_ns when that was over, if it took longer to
 * come back. Called without the loop lock. */
typedef void (*rd_server_wait)(rd_server *server, int64_t timeout_us);

/* NULL with errno set when the system refuses a poller. Looks into the environment; threads of the
 * server never do, because the application may change it meanwhile. */
rd_server *rd_server_new(const rd_settings *settings);
void rd_server_free(rd_server *server);

/* One turn of the leader; sleeps through `wait` when there is nothing to do at all.
 * `takes_requests`: somebody is free for queued requests; else it sleeps in spite of them. */
void rd_server_turn(rd_server *server, rd_server_wait wait, bool takes_requests);

/* One turn of the watch thread. False, and nothing done, when the leader has taken over. */
bool rd_server_turn_apart(rd_server *server, rd_ready_set *found);

/* The next request of this batch with a reference for the caller, or NULL when the batch is over.
 * `before`: the one answered just now, or NULL; its reference is given back. */
rd_request *rd_server_next_request(rd_server *server, rd_request *before);

/* Counts the time since it was taken, and gives back its reference. */
void rd_server_let_go(rd_server *server, rd_request *request);

/* Gives the lock back. Whoever came by while the loop sleeps leaves nothing behind that nobody
 * sees: what was queued is sent, and the sleeper is woken where it has to know. */
void rd_server_unlock(rd_server *server);

/* The lock, and the right time even if the loop sleeps. */
void rd_server_lock(rd_server *server);

/* Writes its numbers into its slot of the scoreboard, as every turn does. */
void rd_server_publish(rd_server *server);

/* Whether a stop was asked for. Any thread. */
static inline bool rd_server_is_stopping(const rd_server *server) {
    return atomic_load_explicit(&server->stop.wanted, memory_order_relaxed) != RD_STOP_NOT;
}

/* Around a fork of the process, by the thread that forks: hold before it, then release in the
 * parent and abandon in the child. The child has copies of all descriptors. Kept open there, a
 * client would wait for the end of its connection, and new ones would be queued for a server that
 * has ended, as long as the child lives. So it closes them: a walk over all connections, but in the
 * child, where no thread waits for the lock. The lock is held across the fork, so the child finds
 * everything whole, and the lock free afterwards. See decision 16. */
void rd_server_hold(rd_server *server);
void rd_server_release(rd_server *server);

/* Closes the descriptors of clients, of listeners and of the hub's link. What is left is memory. */
void rd_server_abandon(rd_server *server);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The server: loop, listeners, connections and the queue of requests that the application has to
 * answer. rd_server_turn() is C only. Its caller (the Ruby binding, a test) takes requests and
 * wake-ups out of the queues, and answers each request through its responder.
 *
 *   turn   begin     messages find their subscribers ▶ answers leave ▶ long sends get their time ▶
 *                    connections leave a worker that stops ▶ the quantum of a connection ends ▶
 *                    guests stay or move on
 *          poll      sleeps when there is nothing to do
 *          process   every ready connection is read and parsed ▶ timers ▶ what closed is freed ▶
 *                    guests ▶ a stop is carried out ▶ requests for files are answered ▶ requests
 *                    that waited too long are turned away ▶ calls that take too long are noticed ▶
 *                    the scoreboard is written
 *   batch            next_request … answer … next_request … until it is over ▶ events ▶
 *                    tasks ▶ next turn
 *
 * One thread at a time runs turns: the leader, which also calls the application, or the watch
 * thread while the leader is away for long. The thread that begins a turn owns the loop from then
 * on. The other thread finds out when it takes the lock again.
 *
 * Everything under the loop lock, except for rd_server_stop() in stop.h and what is called before
 * the server runs.
 */
#ifndef RD_SERVER_SERVER_H
#define RD_SERVER_SERVER_H

#include <stdatomic.h>

#include "loop/loop.h"
#include "transport/conn.h"
#include "cluster/scoreboard.h"
#include "request/handler.h"
#include "request/tasks.h"
#include "server/accept.h"
#include "server/calls.h"
#include "server/departure.h"
#include "server/events.h"
#include "server/files.h"
#include "server/forward.h"
#include "server/handover.h"
#include "server/incidents.h"
#include "server/lead.h"
#include "server/onlook.h"
#include "messaging/pubsub.h"
#include "protocol/protocols.h"
#include "server/queue.h"
#include "server/stop.h"
#include "server/watch.h"

typedef struct rd_server rd_server;

#define RD_DESCRIPTORS_KEPT 64 /* never for clients, but for the application and its logs */

typedef struct rd_counts {
    uint64_t requests, refused, accepted, dropped, timed_out, given_up, cut, handed_in, handed_out;
} rd_counts;

/* What the core asks of the binding. `owner` is the binding's own. */
typedef struct rd_server_hooks {
    void *owner;
    void (*need_thread)(rd_server *server); /* requests wait and no leader takes them; any thread */
    /* A thread may compute while another one needs the GVL: it gives way. Any thread. */
    void (*need_gvl)(rd_server *server);
    /* Whether no thread can take the loop. NULL: none can if all places in the application are
     * taken. Any thread. */
    bool (*is_exhausted)(const rd_server *server);
    void (*need_attention)(rd_server *server); /* a call is slow: see its flags; any thread */
    void (*unheard)(
        rd_server *server); /* no thread reacted to it; under the lock, without the GVL */
} rd_server_hooks;

struct rd_server {
    rd_score_row own_score;
    rd_score_row *score; /* own_score, or a row of the shared scoreboard */
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
    rd_tasks tasks;
    rd_files_queue files;
    rd_pubsub pubsub;
    rd_outgoings outgoings;
    rd_siblings siblings;
    rd_forwards forwards;
    rd_departure departure;
    rd_stop stop;
    rd_counts counts;
    rd_incidents incidents;
    rd_watch watch;
    rd_onlook onlook;
    char *body_folder; /* for files of bodies, as it was at the start */
};

/* Sleeps in rd_loop_wait() for up to timeout_us, in the way that suits the thread (the binding
 * releases the GVL). If the return takes longer, it may set server->lead.awake_ns to the time when
 * the wait was over. Called without the loop lock. */
typedef void (*rd_server_wait)(rd_server *server, int64_t timeout_us);

/* NULL with errno: the system refuses a poller. Reads the environment. Threads of the server never
 * read it, because the application may change it meanwhile. */
rd_server *rd_server_new(const rd_settings *settings);
void rd_server_free(rd_server *server);

/* From now on requests know their site (request/request.h). */
void rd_server_begin_sites(rd_server *server);

/* One turn of the leader. Sleeps through `wait` when there is nothing to do. `takes_requests`: a
 * thread is free for queued requests; if not, the turn sleeps even if requests wait. */
void rd_server_turn(rd_server *server, rd_server_wait wait, bool takes_requests);

/* One turn of the watch thread. False: the leader has taken over, and nothing was done. */
bool rd_server_turn_apart(rd_server *server, rd_ready_set *found);

/* The next request of this batch with a reference for the caller, or NULL when the batch is over.
 * `before`: the request that was answered last, or NULL; its reference is given back. */
rd_request *rd_server_next_request(rd_server *server, rd_request *before);

/* Ends the call of a request: counts its time, and gives back the reference. */
void rd_server_let_go(rd_server *server, rd_request *request);

/* Releases the lock. If the loop sleeps, it first sends what was queued, and wakes the loop if the
 * loop has something to do. */
void rd_server_unlock(rd_server *server);

/* Takes the lock, and updates the loop's time if the loop sleeps. */
void rd_server_lock(rd_server *server);

/* Writes the numbers of the server into its row of the scoreboard. Every turn does it. */
void rd_server_write_scores(rd_server *server);

/* Whether the application could be called now, for a request, an event or a task. Locked. */
static inline bool rd_server_has_calls(const rd_server *server) {
    return rd_queue_has_work(server) || server->events.ready_count > 0;
}

/* Whether a stop was asked for. Any thread. */
static inline bool rd_server_is_stopping(const rd_server *server) {
    return atomic_load_explicit(&server->stop.wanted, memory_order_relaxed) != RD_STOP_NOT;
}

/* Around a fork of the process, by the thread that forks: hold before the fork, then release in the
 * parent and abandon in the child. The child has copies of all descriptors. If it kept them open, a
 * client would wait for the end of its connection as long as the child lives, and new connections
 * would be queued for a server that has ended. So the child closes them. That is a walk over all
 * connections, but in the child no thread waits for the lock. The lock is held across the fork, so
 * the child finds everything in a valid state, and the lock free afterwards. See decision 16. */
void rd_server_hold(rd_server *server);
void rd_server_release(rd_server *server);

/* Closes the descriptors of clients, of listeners, of the hub's link and of bodies that the
 * application cannot read on. Only memory is left. */
void rd_server_abandon(rd_server *server);

#endif

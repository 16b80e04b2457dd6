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
 * Everything under the loop lock, but for rd_server_stop() and what is called before it runs.
 */
#ifndef RD_SERVER_SERVER_H
#define RD_SERVER_SERVER_H

#include <stdatomic.h>

#include "system/thread.h"
#include "http/handler.h"
#include "files/static_file.h"
#include "loop/loop.h"
#include "server/departure.h"
#include "server/events.h"
#include "server/handover.h"
#include "server/pubsub.h"
#include "server/queue.h"
#include "cluster/scoreboard.h"
#include "server/watch.h"
#include "transport/conn.h"
#include "transport/listener.h"

#define RD_REFUSALS_KEPT 32

typedef struct rd_server rd_server;

#define RD_DESCRIPTORS_KEPT 64 /* clients never have them: for the application and its logs */

/* A request that was refused, an answer that was cut, or that no descriptor or no thread is left
 * (which is nobody's, so the peer is blank), for the log. */
typedef struct rd_refusal {
    rd_address peer;
    int code;
} rd_refusal;

/* Where the leader is, as far as others have to know. */
typedef enum rd_phase {
    RD_PHASE_TURN,        /* in the core */
    RD_PHASE_SLEEP,       /* in the poll, waiting */
    RD_PHASE_AWAKE,       /* out of it, and not in the core yet: it waits for the GVL */
    RD_PHASE_APPLICATION, /* wherever the application leads */
} rd_phase;

enum { RD_STOP_NOT, RD_STOP_DRAIN, RD_STOP_NOW };

struct rd_server {
    rd_score_slot own_score;
    rd_score_slot *score; /* own_score, or a slot of the scoreboard that all workers share */
    rd_settings settings;
    rd_loop loop;
    rd_conn_set conns;
    rd_http_shared http;
    rd_handler handler;
    rd_pubsub pubsub;
    rd_departure departure;
    rd_static *files; /* or NULL */
    rd_list listeners;
    rd_listener_names listener_names;
    rd_queue queue;
    rd_list for_files;    /* requests that the static folder answers; see files.h */
    rd_list files_opened; /* openings that are over */
    rd_list files_later;  /* requests beyond those that may be in flight */
    rd_list events;       /* upgraded connections that have something to tell; see events.h */
    rd_list calls;        /* requests inside the application, the oldest first */
    rd_timer drain_timer;
    rd_timer files_timer; /* runs while requests wait for the static folder, with a deadline */
    rd_timer room_timer;  /* runs while the connection limit is reached */
    rd_ready_set found;   /* by the leader's poll */
    rd_watch watch;
    rd_siblings siblings;
    void (*need_thread)(rd_server *server); /* requests wait and no leader takes them; any thread */
    void (*need_attention)(rd_server *server); /* a call takes long: see its flags; any thread */
    void (*unheard)(rd_server *server); /* nobody came for that; under the lock, without the GVL */
    void *owner;                        /* whoever set need_thread */
    rd_network *proxies;                /* owned; see http.proxies */
    char *body_folder;                  /* for files of bodies, as it was in the beginning */
    uint64_t attention_ns;              /* since when attention is needed; 0: it is not */
    uint64_t next_call_due_ns;          /* when one of `calls` takes too long */
    uint64_t leader_seen_ns;            /* when the leader last turned or took a request */
    rd_thread leader;                   /* who ran the last turn that was not the watch thread's */
    uint64_t watch_since_ns;            /* when the watch thread came in for the leader, */
    uint64_t leader_cpu_ns;             /* and the CPU time the leader had used by then */
    uint64_t call_ns;                   /* how long calls take lately */
    uint64_t busy_until_ns;             /* a pause before this one is expected to be short */
    uint64_t awake_ns;    /* when the last sleep was over, set by whoever slept; 0: not said */
    uint64_t return_ns;   /* how long the way back from a sleep took: others had the GVL */
    uint64_t returned_ns; /* when that was */
    uint64_t requests, refused, accepted, dropped, timed_out, given_up, handed_in, handed_out;
    rd_refusal refusals[RD_REFUSALS_KEPT];
    uint64_t no_descriptor_ms; /* when a connection last found none; 0: never */
    uint64_t no_thread_ms;     /* when a call last had to wait for a disk itself; 0: never */
    uint64_t told_given_up_ms; /* when the log was last told of a client given up; 0: never */
    uint64_t told_file_cut_ms; /* the same of a file that shrank while it was sent */
    uint32_t refusal_count;    /* kept in `refusals`; there is no line for the rest */
    uint32_t event_holders[RD_EVENT_FAMILY_COUNT]; /* sources whose last event was not told yet */
    uint32_t connection_limit;
    atomic_int phase;  /* rd_phase */
    atomic_uint turns; /* of the leader's */
    atomic_int stop_wanted;
    int stopping;     /* RD_STOP_* as carried out so far */
    bool watch_owns;  /* the watch thread runs the turns, not the leader */
    bool watch_waits; /* it is in its poll, whoever owns the turns by now */
    bool slept;       /* in its last turn */
    bool may_hold;    /* nobody else needs the GVL: a brief wait may keep it */
    bool expected;    /* the leader has to come back from this turn at once */
    bool accept_paused;
};

/* `node` goes on before the body, which may end the listener. */
#define RD_EACH_LISTENER(server, listener, node)                                                   \
    for (rd_list *node = (server)->listeners.next, *next = node->next;                             \
         node != &(server)->listeners; node = next, next = node->next)                             \
        for (rd_listener *listener = RD_CONTAINER(node, rd_listener, in_server); listener != NULL; \
             listener = NULL)

/* Sleeps in rd_loop_wait() for up to timeout_us, in whatever way suits the thread (the binding
 * lets go of the GVL). May say in server->awake_ns when that was over, if it took longer to come
 * back. Called without the loop lock. */
typedef void (*rd_server_wait)(rd_server *server, int64_t timeout_us);

/* NULL with errno set when the system refuses a poller. Looks into the environment; threads of the
 * server never do, because the application may change it meanwhile. */
rd_server *rd_server_new(const rd_settings *settings);
void rd_server_free(rd_server *server);

/* Peers that open each connection with the PROXY protocol; the array is taken over. */
void rd_server_set_proxies(rd_server *server, rd_network *networks, size_t count);

/* Takes over an opened listener (allocated by rd_alloc). 0 or -1 with errno. */
int rd_server_add_listener(rd_server *server, rd_listener *listener);

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

/* Whether its client has taken and sent nothing for so long, as far as a call waits for that. */
bool rd_server_is_silent(const rd_server *server, const rd_request *request, uint64_t for_ms);

/* Too many calls wait for their clients: that of this one is not waited for any longer. */
void rd_server_give_up(rd_server *server, rd_request *request);

/* Writes its numbers into its slot of the scoreboard, as every turn does. */
void rd_server_publish(rd_server *server);

/* Graceful with RD_STOP_DRAIN, at once with RD_STOP_NOW. Any thread, also a signal handler. */
void rd_server_stop(rd_server *server, int how);

/* Calls `visit` for every connection, any of which may close meanwhile. */
void rd_server_each_conn(rd_server *server, void (*visit)(rd_conn *conn));

/* For turn.c: accepts only while there is room, and begins a stop that was asked for. */
void rd_server_limit_accepting(rd_server *server);
void rd_server_carry_out_stop(rd_server *server);

/* For turn.c: notes for the log that calls wait for a disk under the lock. */
void rd_server_check_disk(rd_server *server);

/* Whether a stop was asked for. Any thread. */
static inline bool rd_server_is_stopping(const rd_server *server) {
    return atomic_load_explicit(&server->stop_wanted, memory_order_relaxed) != RD_STOP_NOT;
}

/* Whether a stop is complete: nothing is in flight and no connection waits for its answer. */
bool rd_server_is_done(const rd_server *server);

#endif

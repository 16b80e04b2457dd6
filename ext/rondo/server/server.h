/* SPDX-License-Identifier: MIT
 *
 * The server: loop, listeners, connections and the queue of requests that the application has to
 * answer. rd_server_turn() is C only; whoever runs it (the Ruby binding, a test) takes requests
 * and wake-ups out of the queues and answers them through each request's responder.
 *
 *   turn: flush what is answered ▶ poll ▶ read and parse every ready connection ▶ timers ▶ free
 *   then: next_request … answer … next_request … until the batch is over ▶ next turn
 *
 * Everything under the loop lock, but for rd_server_stop() and what is called before it runs.
 */
#ifndef RD_SERVER_SERVER_H
#define RD_SERVER_SERVER_H

#include <stdatomic.h>

#include "http/handler.h"
#include "loop/loop.h"
#include "transport/conn.h"
#include "transport/listener.h"

#define RD_REFUSALS_KEPT 32

/* A refused request, for the log. */
typedef struct rd_refusal {
    rd_address peer;
    int code;
} rd_refusal;

enum { RD_STOP_NOT, RD_STOP_DRAIN, RD_STOP_NOW };

typedef struct rd_server {
    rd_settings settings;
    rd_loop loop;
    rd_conn_set conns;
    rd_http_shared http;
    rd_handler handler;
    rd_list listeners;
    rd_list queue;   /* requests for the application, in the order in which they get their turn */
    rd_list next;    /* at most one: the next request of the connection whose quantum runs */
    rd_list wakeups; /* requests whose waiting owner has to look again */
    rd_timer drain_timer;
    rd_network *proxies; /* owned; see http.proxies */
    rd_conn *current;    /* whose request is being answered, for its quantum; never followed */
    uint64_t quantum_end_ns;
    uint64_t batch_since_ns;
    uint32_t batch_count;
    uint64_t busy_until_ns; /* a pause before this one is expected to be short */
    uint32_t connection_limit;
    uint32_t refusal_count; /* kept in `refusals`; the rest is only counted */
    rd_refusal refusals[RD_REFUSALS_KEPT];
    uint64_t requests, refused, accepted;
    atomic_int stop_wanted;
    int stopping; /* RD_STOP_* as carried out so far */
    bool accept_paused;
} rd_server;

/* Sleeps in rd_loop_wait() for up to timeout_us, in whatever way suits the thread (the binding
 * lets go of the GVL). Called without the loop lock. */
typedef void (*rd_server_wait)(rd_server *server, int64_t timeout_us);

/* NULL with errno set when the system refuses a poller. */
rd_server *rd_server_new(const rd_settings *settings);
void rd_server_free(rd_server *server);

/* Peers that open each connection with the PROXY protocol; the array is taken over. */
void rd_server_set_proxies(rd_server *server, rd_network *networks, size_t count);

/* Takes over an opened listener (allocated by rd_alloc). 0 or -1 with errno. */
int rd_server_add_listener(rd_server *server, rd_listener *listener);

/* One turn; sleeps through `wait` when there is nothing to do at all. */
void rd_server_turn(rd_server *server, rd_server_wait wait);

/* A turn for somebody who waits inside an application call: never takes on new requests, sleeps
 * even if requests are queued. */
void rd_server_turn_inner(rd_server *server, rd_server_wait wait);

/* The next request of this batch with a reference for the caller, or NULL when the batch is over.
 */
rd_request *rd_server_next_request(rd_server *server);

/* The next request whose owner waits and has to look again; its `waiting` is cleared. */
rd_request *rd_server_next_wakeup(rd_server *server);

/* Graceful with RD_STOP_DRAIN, at once with RD_STOP_NOW. Any thread, also a signal handler. */
void rd_server_stop(rd_server *server, int how);

/* Whether a stop was asked for. Any thread. */
static inline bool rd_server_is_stopping(const rd_server *server) {
    return atomic_load_explicit(&server->stop_wanted, memory_order_relaxed) != RD_STOP_NOT;
}

/* Whether a stop is complete: nothing is in flight and no connection waits for its answer. */
bool rd_server_is_done(const rd_server *server);

#endif

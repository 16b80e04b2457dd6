/* SPDX-License-Identifier: MIT
 *
 * Retires sockets and carries out a stop; see stop.h.
 */
#include "server/stop.h"

#include <limits.h>
#include <sys/stat.h>

#include "server/server.h"
#include "transport/parting.h"

/* ---- sockets that retire ---- */

/* Where the system cannot hold clients back, there may be no end of them. */
static void on_retired(rd_retirement *retirement) {
    rd_listener *listener = RD_CONTAINER(retirement, rd_listener, retirement);
    const rd_server *server = listener->owner;
    rd_listener_end(listener, retirement->holds_back ? INT_MAX : (int)server->settings.backlog);
}

static bool is_socket(int fd, uint64_t inode) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_ino == inode;
}

void rd_server_retire_socket(rd_server *server, uint64_t inode) {
    RD_EACH_LISTENER(server, listener, node) {
        int fd = listener->source.fd;
        if (!is_socket(fd, inode)) continue;
        rd_retirement_begin(&listener->retirement, &server->loop, fd, on_retired);
    }
}

static bool is_retiring(rd_server *server) {
    RD_EACH_LISTENER(server, listener, node) {
        if (rd_retirement_has_begun(&listener->retirement)) return true;
    }
    return false;
}

/* The stop that is due now: draining waits for listeners that retire. */
static int stop_due(rd_server *server) {
    int wanted = atomic_load(&server->stop.wanted);
    return wanted == RD_STOP_DRAIN && is_retiring(server) ? server->stop.state : wanted;
}

/* ---- stopping ---- */

/* An answer that is cut must not look complete: a reset tells the client. */
static void end_now(rd_conn *conn) {
    if (conn->awaits_answer || conn->out.bytes > 0) {
        rd_conn_reset(conn);
    } else {
        rd_conn_close(conn);
    }
}

static int accepted_at_the_end(rd_server *server, int wanted) {
    if (wanted == RD_STOP_NOW || server->stop.leaves_queues) return 0;
    return (int)server->settings.backlog;
}

void rd_stop_carry_out(rd_server *server) {
    int wanted = stop_due(server);
    if (server->stop.state >= wanted) return;
    bool first = server->stop.state == RD_STOP_NOT;
    server->stop.state = wanted;
    if (first) {
        rd_accept_end(server, accepted_at_the_end(server, wanted));
        server->conns.stopping = true;
    }
    rd_tasks_drain(&server->tasks);
    rd_outgoings_stop(&server->outgoings);
    if (wanted == RD_STOP_NOW) {
        rd_tasks_end(&server->tasks);
        server->conns.moving = false;
        rd_parting_end(&server->conns);
        rd_conn_set_each(&server->conns, end_now);
    } else if (first) {
        rd_departure_begin(server);
        uint64_t due = server->loop.now_ms + (uint64_t)server->settings.drain_timeout_ms;
        rd_timer_set(&server->loop.timers, &server->stop.timer, due);
    }
}

void rd_server_stop(rd_server *server, int how) {
    int before = atomic_load(&server->stop.wanted);
    while (before < how && !atomic_compare_exchange_weak(&server->stop.wanted, &before, how)) {
    }
    rd_loop_wakeup(&server->loop);
}

void rd_server_leave_queues(rd_server *server) {
    server->stop.leaves_queues = true;
    /* The turn that learns of the stop accepts before that. */
    RD_EACH_LISTENER(server, listener, node) rd_listener_pause(listener, true);
}

void rd_server_end_in_one_go(rd_server *server) {
    server->stop.in_one_go = true;
}

static bool is_in_use(const rd_conn *conn) {
    return conn->state == RD_CONN_OPEN || conn->state == RD_CONN_FINISHING;
}

bool rd_server_is_done(const rd_server *server) {
    if (server->stop.state == RD_STOP_NOT || server->http.requests.live > 0) return false;
    if (rd_siblings_expect(server) || rd_events_live(server)) return false;
    if (rd_tasks_live(&server->tasks) || rd_parting_is_in_use(&server->conns)) return false;
    for (rd_list *node = server->conns.conns.next; node != &server->conns.conns;
         node = node->next) {
        if (is_in_use(RD_CONTAINER(node, rd_conn, in_set))) return false;
    }
    return true;
}

bool rd_stop_is_due(rd_server *server) {
    return stop_due(server) > server->stop.state;
}

static void on_drain_over(rd_timer *timer) {
    rd_server *server = RD_CONTAINER(timer, rd_server, stop.timer);
    rd_server_stop(server, RD_STOP_NOW);
}

void rd_stop_init(rd_server *server) {
    rd_timer_init(&server->stop.timer, on_drain_over);
    atomic_init(&server->stop.wanted, RD_STOP_NOT);
}

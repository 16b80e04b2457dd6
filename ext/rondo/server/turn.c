/* SPDX-License-Identifier: MIT
 *
 * One turn: sends what is ready, asks the poller, reads and queues what the poller found. Also what
 * a thread that takes the lock between two turns does before it releases it. server.h has the
 * picture. Under the loop lock, except for the wait in the middle.
 */
#include "base/apart.h"
#include "base/error.h"
#include "system/clock.h"
#include "loop/disk.h"
#include "server/server.h"
#include "transport/stalled.h"

#define LEAVE_ASK_US      5000 /* interval at which a stopping server checks its siblings */
#define BRIEF_WAIT_MAX_US 5000
#define CROWDED_NS        1000000    /* a slower return means that other threads compute */
#define CROWDED_FOR_NS    2000000000 /* after this time it is measured again */

/* ---- the turn ---- */

/* Whether the next turn has work that needs neither the application nor the poller. */
static bool has_own_work(const rd_server *server) {
    return rd_pubsub_waits(&server->pubsub) || rd_files_wait(server) ||
           rd_conn_set_has_long(&server->conns) || rd_conn_set_has_layers(&server->conns) ||
           (server->conns.moving && rd_departure_is_busy(&server->departure));
}

static bool must_not_sleep(rd_server *server, bool takes_requests) {
    if (rd_stop_is_due(server)) return true;
    if (rd_server_is_done(server) || has_own_work(server) || server->lead.expected) return true;
    return takes_requests && (rd_queue_has_requests(server) || server->events.ready_count > 0);
}

static void enter_phase(rd_server *server, rd_phase phase) {
    atomic_store_explicit(&server->lead.phase, (int)phase, memory_order_relaxed);
}

/* Takes the lock again after a wait without it. The watch thread may have run turns meanwhile: then
 * what the wait found is out of date, and the poller will report it again. */
static void come_back(rd_server *server) {
    rd_loop_lock(&server->loop);
    if (server->lead.watch_owns) rd_loop_drop(&server->loop, &server->lead.found);
    server->lead.watch_owns = false;
}

/* Whether other threads compute, as far as is known. Only releasing the GVL shows it. */
static bool is_crowded(const rd_server *server, uint64_t now) {
    return server->lead.return_ns >= CROWDED_NS && now - server->lead.returned_ns < CROWDED_FOR_NS;
}

/* The longer the last return took, the longer it pays to keep the GVL: a twentieth of that time. If
 * no other thread computes, it does not pay: a wait with a timer costs more than a release. */
static int64_t brief_wait_us(const rd_server *server) {
    int64_t usual = server->settings.brief_wait_us,
            longer = (int64_t)(server->lead.return_ns / 20000);
    uint64_t now = rd_clock_ns();
    bool busy = server->lead.may_hold && now < server->lead.busy_until_ns;
    if (usual == 0 || !busy || !is_crowded(server, now)) return 0;
    if (longer <= usual) return usual;
    return longer < BRIEF_WAIT_MAX_US ? longer : BRIEF_WAIT_MAX_US;
}

/* Requests come in bursts, and the next one is often microseconds away. For that long the loop
 * waits without releasing the GVL: if other threads of the process run, it can take a hundred
 * milliseconds to get it back. They get their share at the end of each time slice anyway. */
static bool find_ready(rd_server *server) {
    rd_loop *loop = &server->loop;
    int64_t brief_us = brief_wait_us(server);
    if (brief_us == 0) return rd_loop_wait(loop, &server->lead.found, 0) > 0;
    rd_loop_unlock(loop);
    rd_loop_wait(loop, &server->lead.found, brief_us);
    come_back(server);
    return server->lead.found.count > 0;
}

static int64_t sooner(int64_t a, int64_t b) {
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static bool asks_siblings(const rd_server *server) {
    return rd_siblings_expect(server) || (server->conns.moving && server->departure.blocked);
}

static int64_t timeout_of(rd_server *server) {
    int64_t timeout = rd_loop_timeout(&server->loop);
    const uint64_t due_ns = server->lead.call_due_ns = rd_queue_due_ns(server);
    if (server->stop.state != RD_STOP_NOT && asks_siblings(server)) {
        timeout = sooner(timeout, LEAVE_ASK_US);
    }
    if (due_ns == UINT64_MAX) return timeout;
    const uint64_t now_ns = rd_clock_ns();
    return sooner(timeout, due_ns > now_ns ? (int64_t)((due_ns - now_ns) / 1000) + 1 : 0);
}

static void wait_for_work(rd_server *server, rd_server_wait wait, bool takes_requests) {
    rd_loop *loop = &server->loop;
    server->lead.slept = false;
    if (must_not_sleep(server, takes_requests)) {
        rd_loop_wait(loop, &server->lead.found, 0);
        return;
    }
    rd_server_write_scores(server); /* what siblings see during the sleep */
    if (find_ready(server)) return;
    atomic_store(&loop->sleeping, true);
    /* A thread that queued work before this line saw no sleeper, and woke none: check again. */
    int64_t timeout = must_not_sleep(server, takes_requests) ? 0 : timeout_of(server);
    server->lead.slept = true;
    server->lead.way.was_called = false;
    enter_phase(server, RD_PHASE_SLEEP);
    server->lead.awake_ns = 0;
    rd_loop_unlock(loop);
    wait(server, timeout);
    server->lead.returned_ns = rd_clock_ns();
    server->lead.return_ns =
        server->lead.awake_ns != 0 ? server->lead.returned_ns - server->lead.awake_ns : 0;
    come_back(server);
    server->lead.way.since_ns = server->lead.returned_ns;
    enter_phase(server, RD_PHASE_TURN);
    atomic_store(&loop->sleeping, false);
}

static void sort_guests(rd_server *server) {
    if (!rd_list_is_empty(&server->queue.guests)) rd_queue_sort_guests(server);
}

/* begin_turn() and process() are the halves of every turn, before and after its poll; server.h has
 * the picture. In both, connections that ended make room for new ones. */
static void begin_turn(rd_server *server) {
    rd_pubsub_run(&server->pubsub);
    rd_conn_set_flush(&server->conns);
    rd_conn_set_send_long(&server->conns);
    if (server->conns.moving) rd_departure_continue(server);
    rd_stalled_relieve(&server->conns);
    rd_accept_limit(server);
    rd_queue_end_quantum(server);
    sort_guests(server);
}

static void check_disk(rd_server *server) {
    if (rd_disk_take_failure(&server->loop)) {
        rd_incidents_add(server, NULL, RD_ERR_NO_DISK_THREAD);
    }
}

static void process(rd_server *server, rd_ready_set *found, bool was_idle) {
    rd_loop_process(&server->loop, found);
    if (rd_conn_set_has_layers(&server->conns)) rd_conn_set_serve_layers(&server->conns, was_idle);
    sort_guests(server);
    rd_stop_carry_out(server);
    if (server->stop.state != RD_STOP_NOT) rd_siblings_leave(server);
    rd_accept_limit(server);
    rd_files_answer(server); /* may let in one request too many */
    rd_queue_shed(server);
    if (!rd_list_is_empty(&server->queue.full)) rd_queue_lose_patience(server);
    rd_calls_check(server);
    if (server->loop.disk != NULL) check_disk(server);
    rd_server_write_scores(server);
}

/* The watch thread may still be in a poll that began before this turn, and nothing would wake it.
 * If one of the next calls blocks, the requests behind it would wait for the end of that poll. */
static void call_watch_back(rd_server *server) {
    if (!server->lead.watch_waits) return;
    if (rd_server_has_calls(server) || rd_files_wait(server)) rd_loop_interrupt(&server->loop);
}

void rd_server_turn(rd_server *server, rd_server_wait wait, bool takes_requests) {
    if (server->lead.watch_owns) server->lead.way.since_ns = rd_clock_ns();
    server->lead.watch_owns = false;
    enter_phase(server, RD_PHASE_TURN);
    atomic_store_explicit(&server->score->ruby_turn_ms, server->loop.now_ms, memory_order_relaxed);
    atomic_fetch_add_explicit(&server->lead.turns, 1, memory_order_relaxed);
    begin_turn(server);
    server->queue.batch_count = 0;
    wait_for_work(server, wait, takes_requests);
    process(server, &server->lead.found, server->lead.slept);
    if (takes_requests) call_watch_back(server);
    server->lead.seen_ns = server->loop.now_ns;
    atomic_store_explicit(&server->score->ruby_turn_ms, server->loop.now_ms, memory_order_relaxed);
    enter_phase(server, RD_PHASE_APPLICATION);
}

bool rd_server_turn_apart(rd_server *server, rd_ready_set *found) {
    if (!server->lead.watch_owns) return false;
    begin_turn(server);
    int64_t timeout = timeout_of(server);
    if (rd_stop_is_due(server)) timeout = 0;
    if (has_own_work(server)) timeout = 0;
    /* The first turns are short, so that siblings learn of it soon; so are all while requests wait,
     * because each turn asks the siblings again. */
    const bool has_full = !rd_list_is_empty(&server->queue.full);
    bool is_new = rd_clock_ns() - server->lead.watch_since_ns < RD_HANDOVER_AWAY_NS;
    bool asks = server->siblings.board != NULL && (rd_queue_has_work(server) || has_full || is_new);
    int64_t most = asks ? RD_WATCH_ASK_US : server->lead.way.wait_us;
    if (timeout < 0 || timeout > most) timeout = most;
    server->lead.watch_waits = true;
    rd_loop_unlock(&server->loop);
    rd_loop_wait(&server->loop, found, timeout);
    rd_loop_lock(&server->loop);
    server->lead.watch_waits = false;
    if (!server->lead.watch_owns) {
        rd_loop_drop(&server->loop, found);
        return false;
    }
    process(server, found, true);
    rd_conn_set_flush(&server->conns);
    rd_handover_queued(server);
    return true;
}

/* ---- threads that take the lock between turns ---- */

void rd_server_lock(rd_server *server) {
    rd_loop_lock(&server->loop);
    if (atomic_load_explicit(&server->loop.sleeping, memory_order_relaxed)) {
        rd_loop_refresh(&server->loop);
    }
}

/* Whether a timer was set that is due before the poll ends. */
static bool has_early_timer(const rd_server *server) {
    const uint64_t next_ms = rd_timer_next(&server->loop.timers);
    return next_ms < server->loop.sleep_until_ms && next_ms <= server->lead.call_due_ns / 1000000;
}

RD_APART static void leave_tidy(rd_server *server) {
    rd_loop *loop = &server->loop;
    rd_pubsub_run(&server->pubsub);
    rd_conn_set_flush(&server->conns);
    if (has_own_work(server) || rd_server_has_calls(server) || has_early_timer(server) ||
        !loop->ops->is_live || rd_has_incidents(&server->incidents) ||
        rd_server_is_stopping(server)) {
        rd_loop_wakeup(loop);
    }
}

/* Whether something can be taken that the watch thread has called no thread for: a seat may have
 * become free. True once a poll, since one call is enough. */
static bool needs_call(rd_server *server) {
    if (server->lead.watch_called || !rd_server_has_calls(server)) return false;
    server->lead.watch_called = true;
    return true;
}

/* The leader is away and the watch thread is in its poll: what was just queued would wait for the
 * end of that poll. */
RD_APART static void leave_to_watch(rd_server *server) {
    rd_pubsub_run(&server->pubsub);
    rd_conn_set_flush(&server->conns);
    if (has_own_work(server) || server->conns.moving || !server->loop.ops->is_live ||
        has_early_timer(server) || needs_call(server)) {
        rd_loop_interrupt(&server->loop);
    }
}

void rd_server_unlock(rd_server *server) {
    if (atomic_load_explicit(&server->loop.sleeping, memory_order_relaxed)) {
        leave_tidy(server);
    } else if (server->lead.watch_owns && server->lead.watch_waits) {
        leave_to_watch(server);
    }
    rd_loop_unlock(&server->loop);
}

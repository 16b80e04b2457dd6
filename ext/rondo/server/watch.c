/* SPDX-License-Identifier: MIT
 *
 * When the watch thread sleeps, ticks and turns; see watch.h. turn.c has its turns.
 */
#include "server/watch.h"

#include "system/clock.h"
#include "system/thread_start.h"
#include "server/server.h"

#define TICK_NS     1000000
#define RARE_NS     4000000 /* between ticks while the leader is in a long turn */
#define QUIET_TICKS 20      /* ticks without work; then the thread sleeps until it is needed */

static void sleep_until_needed(rd_server *server) {
    rd_watch *watch = &server->watch;
    atomic_store(&watch->asleep, true);
    /* A leader that woke before this line saw the thread ticking, and did not post: check again. */
    bool needed = atomic_load(&server->lead.phase) != RD_PHASE_SLEEP || atomic_load(&watch->over);
    if (needed && atomic_exchange(&watch->asleep, false)) return;
    while (!rd_semaphore_wait(&watch->wake, -1)) {
    }
}

static void call_for_thread(rd_server *server) {
    if (server->hooks.need_thread != NULL) server->hooks.need_thread(server);
}

/* Before each turn: what can be taken, or a stop, needs a thread of the application. */
static void call_if_needed(rd_server *server) {
    server->lead.watch_called = rd_server_has_calls(server) || rd_server_is_stopping(server);
    if (server->lead.watch_called) call_for_thread(server);
}

/* How long the leader had the GVL before it was away. */
static uint64_t leader_share_ns(const rd_server *server) {
    const rd_lead *lead = &server->lead;
    const uint64_t had_ns =
        lead->seen_ns > lead->returned_ns ? lead->seen_ns - lead->returned_ns : 0;
    return had_ns > RD_GIVE_WAY_NS ? had_ns : RD_GIVE_WAY_NS;
}

/* Requests wait for a thread that waits for the GVL. */
static void call_for_way(rd_server *server) {
    rd_lead *lead = &server->lead;
    lead->calls_for_way = lead->watch_called && server->hooks.need_gvl != NULL;
    const uint64_t now = rd_clock_ns();
    if (!lead->calls_for_way || now < lead->give_way_ns) return;
    lead->give_way_ns = now + RD_GIVE_WAY_NS;
    lead->calls_for_way = server->hooks.need_gvl(server);
}

/* Runs turns until the leader is back. */
static void turn_for_leader(rd_server *server) {
    rd_watch *watch = &server->watch;
    rd_loop_lock(&server->loop);
    /* The leader may have held the lock and be active, or sleep in a poll that sees everything. */
    bool goes_on = atomic_load(&server->lead.phase) != RD_PHASE_SLEEP &&
                   rd_clock_ns() - server->lead.seen_ns >= TICK_NS;
    server->lead.watch_owns = goes_on;
    if (goes_on) {
        server->lead.watch_since_ns = rd_clock_ns();
        server->lead.cpu_ns = rd_thread_cpu_ns(&server->lead.thread);
        server->lead.give_way_ns = server->lead.seen_ns + leader_share_ns(server);
    }
    while (goes_on && !atomic_load(&watch->over)) {
        call_if_needed(server);
        call_for_way(server);
        rd_score_row *score = server->score;
        uint64_t turns = atomic_load_explicit(&score->watch_turns, memory_order_relaxed);
        atomic_store_explicit(&score->watch_turns, turns + 1, memory_order_relaxed);
        goes_on = rd_server_turn_apart(server, &watch->found);
    }
    rd_loop_unlock(&server->loop);
}

static void watch_over(rd_server *server) {
    unsigned turns = atomic_load(&server->lead.turns);
    bool in_turn = false;
    for (unsigned quiet = 0; quiet < QUIET_TICKS;) {
        /* While the thread ticks, only rd_watch_stop() posts. */
        rd_semaphore_wait(&server->watch.wake, in_turn ? RARE_NS : TICK_NS);
        if (atomic_load(&server->watch.over)) return;
        unsigned now = atomic_load_explicit(&server->lead.turns, memory_order_relaxed);
        const int phase = atomic_load(&server->lead.phase);
        const bool sleeps = phase == RD_PHASE_SLEEP;
        /* A leader in a turn has the lock, and does the work itself. */
        in_turn = phase == RD_PHASE_TURN && (in_turn || now == turns);
        if (now == turns && !sleeps && phase != RD_PHASE_TURN) {
            call_for_thread(server);
            turn_for_leader(server);
        }
        quiet = now == turns && sleeps ? quiet + 1 : 0;
        turns = now;
    }
}

static void *run_watch(void *argument) {
    rd_server *server = argument;
    while (!atomic_load(&server->watch.over)) {
        watch_over(server);
        if (!atomic_load(&server->watch.over)) sleep_until_needed(server);
    }
    return NULL;
}

int rd_watch_start(rd_server *server) {
    rd_watch *watch = &server->watch;
    rd_semaphore_init(&watch->wake);
    atomic_store(&watch->over, false);
    atomic_store(&watch->asleep, false);
    int code = rd_thread_start(&watch->thread, run_watch, server);
    watch->is_running = code == 0;
    return code;
}

void rd_watch_stop(rd_server *server) {
    rd_watch *watch = &server->watch;
    if (!watch->is_running) return;
    atomic_store(&watch->over, true);
    atomic_store(&watch->asleep, false);
    rd_semaphore_post(&watch->wake);
    rd_loop_interrupt(&server->loop);
    pthread_join(watch->thread, NULL);
    watch->is_running = false;
}

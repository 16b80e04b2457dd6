/* SPDX-License-Identifier: MIT
 *
 * When the watch thread sleeps, ticks and turns; see watch.h. turn.c has its turns.
 */
#include "server/watch.h"

#include "system/clock.h"
#include "system/thread_start.h"
#include "server/server.h"

#define TICK_NS     1000000
#define RARE_NS     4000000   /* between ticks while the leader is in a long turn */
#define QUIET_TICKS 20        /* ticks without work; then the thread sleeps until it is needed */
#define LOOK_NS     250000000 /* between two looks for onlookers, while calls are inside */
#define LONG_AGO_NS 20000000  /* what the process did since then says nothing of now */

/* ---- a thread that computes gives way ---- */

/* How long the leader had the GVL before it was away, within bounds. */
static uint64_t share_of_others_ns(const rd_lead *lead) {
    const uint64_t had_ns =
        lead->seen_ns > lead->way.since_ns ? lead->seen_ns - lead->way.since_ns : 0;
    if (had_ns < RD_SHARE_MIN_NS) return RD_SHARE_MIN_NS;
    return had_ns < RD_SHARE_MAX_NS ? had_ns : RD_SHARE_MAX_NS;
}

static uint64_t busy(const rd_server *server) {
    return atomic_load_explicit(&server->score->busy, memory_order_relaxed);
}

/* Whether a thread is known to need the GVL that another one may have: one that was called for what
 * waits, or the leader itself, which has come back from its poll. If all are inside the
 * application, none of them would take what waits. */
static bool is_needed(const rd_server *server) {
    const rd_settings *settings = &server->settings;
    const bool are_threads = settings->fibers == 0; /* not fibers, which may wait */
    const int64_t most = settings->max_threads + settings->max_io_threads;
    if (are_threads && busy(server) >= (uint64_t)most) return false;
    return server->lead.watch_called || atomic_load(&server->lead.phase) == RD_PHASE_AWAKE;
}

/* Whether threads of this process had a CPU for a good part of the time since this was asked last.
 * Other processes may have it for the rest. */
static bool had_cpu(rd_way *way, uint64_t now_ns) {
    const uint64_t cpu_ns = rd_process_cpu_ns();
    const bool much = (cpu_ns - way->cpu_ns) * 4 > now_ns - way->asked_ns;
    way->cpu_ns = cpu_ns;
    way->asked_ns = now_ns;
    return much;
}

/* Nobody is known to need the GVL. But if calls are inside and one of them computes, another one
 * may need it: its sleep or its query is over, or its time slice was. Asks again after the longest
 * share. Returns whether one computes, or may do so: it was asked too long ago. */
static bool call_in_case(rd_server *server, uint64_t now_ns) {
    rd_way *way = &server->lead.way;
    if (server->hooks.need_gvl == NULL || busy(server) == 0) return false;
    const uint64_t passed_ns = now_ns - way->asked_ns;
    if (passed_ns < RD_SHARE_MAX_NS) return way->computes;
    way->computes = had_cpu(way, now_ns);
    if (passed_ns > LONG_AGO_NS) return way->computes = true;
    if (way->computes && busy(server) > 1) server->hooks.need_gvl(server);
    return way->computes;
}

/* Before each turn. A leader that was seen meanwhile had the GVL: another share begins. */
static void call_for_way(rd_server *server) {
    rd_way *way = &server->lead.way;
    const uint64_t now_ns = rd_clock_ns();
    way->wait_us = RD_WATCH_WAIT_US;
    if (server->hooks.need_gvl == NULL) return;
    if (!is_needed(server)) {
        if (call_in_case(server, now_ns)) way->wait_us = RD_SHARE_MAX_NS / 1000;
        return;
    }
    way->wait_us = RD_WATCH_ASK_US;
    if (now_ns < server->lead.seen_ns + way->share_ns) return;
    if (now_ns < way->called_ns + RD_SHARE_MIN_NS) return;
    way->called_ns = now_ns;
    way->was_called = true;
    server->hooks.need_gvl(server);
}

/* While the leader sleeps. How long the watch thread may do so, too; -1: until it is needed. */
static int64_t rest_ns(rd_server *server) {
    if (busy(server) == 0) return -1;
    rd_loop_lock(&server->loop);
    const bool computes = call_in_case(server, rd_clock_ns());
    rd_loop_unlock(&server->loop);
    if (computes) return RD_SHARE_MAX_NS;
    return atomic_load_explicit(&server->score->watched_ms, memory_order_relaxed) != 0 ? LOOK_NS
                                                                                       : -1;
}

/* ---- sleeping, ticking and turning ---- */

static void sleep_until_needed(rd_server *server) {
    rd_watch *watch = &server->watch;
    atomic_store(&watch->asleep, true);
    /* A leader that woke before this line saw the thread ticking, and did not post: check again. */
    bool needed = atomic_load(&server->lead.phase) != RD_PHASE_SLEEP || atomic_load(&watch->over);
    if (needed && atomic_exchange(&watch->asleep, false)) return;
    while (!rd_semaphore_wait(&watch->wake, rest_ns(server))) {
        /* Calls are inside, and the loop has nothing to do: its turn begins the view. */
        if (rd_onlook_is_missed(&server->onlook, server->score)) rd_loop_wakeup(&server->loop);
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
        server->lead.way.share_ns = share_of_others_ns(&server->lead);
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
        if (sleeps) rest_ns(server);
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

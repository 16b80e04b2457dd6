/* SPDX-License-Identifier: MIT
 *
 * server/watch.c and server/turn.c: when a thread that computes gives way to the leader. The watch
 * thread runs, and the clock stands still.
 */
#include "serving.h"

#include <stdatomic.h>
#include <time.h>

static atomic_uint asked; /* for the GVL */

static void note_need(rd_server *one) {
    (void)one;
    atomic_fetch_add(&asked, 1);
}

/* The watch thread would wait for ever for a clock that stands still. */
static void tick(void) {
    rd_semaphore_post(&server->watch.wake);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* How a leader returns from its poll. */
static void wake_up(rd_server *sleeper, int64_t timeout_us) {
    (void)timeout_us;
    rd_loop_wait(&sleeper->loop, &sleeper->lead.found, 0);
}

static void take_turn(void) {
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wake_up, true);
    for (rd_request *request = NULL; (request = rd_server_next_request(server, request)) != NULL;) {
        app(request);
    }
    rd_loop_unlock(&server->loop);
}

/* Turns without a sleep in between, for this long. */
static void be_busy(int fd, uint64_t ns) {
    const uint64_t until = hand_clock_ns + ns;
    while (hand_clock_ns < until) {
        say(fd, GET("/a"));
        hand_clock_ns += ns / 4;
        take_turn();
        CHECK(!server->lead.slept);
    }
}

/* Whether the watch thread asks, while a request waits and the leader has been away for so long. */
static bool is_asked_after(int fd, uint64_t away_ns) {
    atomic_store(&asked, 0);
    say(fd, GET("/b"));
    hand_clock_ns += away_ns;
    CHECK_INT(rd_watch_start(server), 0);
    const uint64_t from = atomic_load(&server->score->watch_turns);
    rd_watch_begin(&server->watch);
    for (int tries = 0; tries < 20000 && atomic_load(&asked) == 0; tries++) {
        /* The request was read in the first turn; another turn after that is enough. */
        if (atomic_load(&server->score->watch_turns) >= from + 4) break;
        tick();
    }
    rd_watch_stop(server);
    return atomic_load(&asked) > 0;
}

static const struct {
    uint64_t busy_ns, away_ns;
    bool is_asked;
} shares[] = {
    {0, 1900000, false},          {0, 2000000, true},          /* nobody keeps it for less */
    {4000000, 3900000, false},    {4000000, 4000000, true},    /* as long as the leader had it */
    {3000000000, 4900000, false}, {3000000000, 5000000, true}, /* but no longer than this */
};

static void test_shares(void) {
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        start(answer_path);
        server->hooks.need_gvl = note_need;
        int fd = join();
        take_turn();
        take_turn();
        CHECK(server->lead.slept);
        be_busy(fd, shares[i].busy_ns);
        CHECK_INT(is_asked_after(fd, shares[i].away_ns), shares[i].is_asked);
        turns(2);
        close(fd);
        end();
    }
}

/* The time in which the watch thread stood in was not the leader's. */
static void test_a_leader_that_was_away(void) {
    start(answer_path);
    server->hooks.need_gvl = note_need;
    int fd = join();
    take_turn();
    be_busy(fd, 4000000);
    CHECK(!is_asked_after(fd, 2500000));
    take_turn(); /* answers what waits, and does not sleep */
    CHECK(is_asked_after(fd, 2500000));
    turns(2);
    close(fd);
    end();
}

int main(void) {
    rd_settings_init(&settings);
    test_shares();
    test_a_leader_that_was_away();
    return check_summary();
}

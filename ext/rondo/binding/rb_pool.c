/* SPDX-License-Identifier: MIT
 *
 * Places in the application, and which thread is woken for the loop; see rb_pool.h.
 */
#include "binding/rb_pool.h"

#include "base/alloc.h"
#include "base/apart.h"
#include "system/clock.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "binding/rb_binding.h"
#include "binding/rb_strand.h"

#define BLOCKING_MAX    65536
#define BLOCKING_ENOUGH 1024 /* about one call in sixty-four */
#define BUSY_TURNS      4

/* How often a visit that waits for a place checks whether a place can still become free. Only the
 * first of a line checks; the others check whether they have become the first. After MOST_LOOKS
 * checks as the first, a body that stands aside comes back in without a place. A signal for its
 * thread counts as a check. */
#define FIRST_LOOKS_MS 50
#define OTHERS_LOOK_MS 1000
#define MOST_LOOKS     5

#define PATIENCE_MS   2000 /* with each client, however many calls wait for others */
#define SILENT_MS     1000 /* without a byte from or to a client: it is given up first */
#define PLACE_LOOK_MS 50   /* between two attempts to leave the place */
#define LOOKED_AT     16   /* clients, in search of one that can be given up */

uint32_t rd_pool_max_threads(const rd_binding *binding) {
    return (uint32_t)binding->server->settings.max_threads;
}

static void write_busy(const rd_binding *binding) {
    rd_score_row *score = binding->server->score;
    atomic_store_explicit(&score->busy, binding->pool.active, memory_order_relaxed);
}

void rd_pool_write_scores(const rd_binding *binding) {
    rd_score_row *score = binding->server->score;
    write_busy(binding);
    atomic_store_explicit(&score->threads, binding->pool.threads, memory_order_relaxed);
}

/* ---- waking other threads ---- */

/* Those whose fibers wait are woken last. */
void rd_pool_begin_standby(rd_runner *runner) {
    rd_pool *pool = &runner->binding->pool;
    rd_list *all = &pool->standby_list;
    pthread_mutex_lock(&pool->standby_lock);
    rd_list_insert_before(runner->inside == 0 ? all->next : all, &runner->as_standby);
    atomic_fetch_add(&pool->standbys, 1);
    pthread_mutex_unlock(&pool->standby_lock);
}

/* Under its lock. */
static void leave_standbys(rd_pool *pool, rd_list *as_standby) {
    rd_list_unlink(as_standby);
    atomic_fetch_sub(&pool->standbys, 1);
}

void rd_pool_end_standby(rd_runner *runner) {
    rd_pool *pool = &runner->binding->pool;
    pthread_mutex_lock(&pool->standby_lock);
    if (rd_list_is_linked(&runner->as_standby)) leave_standbys(pool, &runner->as_standby);
    pthread_mutex_unlock(&pool->standby_lock);
    atomic_store(&pool->armed, false);
}

static bool wake_standby(rd_pool *pool) {
    rd_list *first = pool->standby_list.next;
    if (first == &pool->standby_list) return false;
    leave_standbys(pool, first);
    rd_semaphore_post(&RD_CONTAINER(first, rd_runner, as_standby)->woken);
    return true;
}

bool rd_pool_arm(rd_pool *pool) {
    if (atomic_load(&pool->standbys) == 0) return false;
    if (atomic_exchange(&pool->armed, true)) return true;
    pthread_mutex_lock(&pool->standby_lock);
    const bool wakes = wake_standby(pool);
    pthread_mutex_unlock(&pool->standby_lock);
    if (!wakes) atomic_store(&pool->armed, false);
    return wakes;
}

void rd_pool_want_thread(rd_pool *pool) {
    if (!atomic_exchange(&pool->thread_wanted, true)) rd_semaphore_post(&pool->supervisor);
}

bool rd_pool_has_fibers(const rd_binding *binding) {
    return binding->server->settings.fibers > 0;
}

/* A visit that waits for its client has a thread of its own, unless it is a fiber. */
uint32_t rd_pool_useful_threads(const rd_binding *binding) {
    const rd_pool *pool = &binding->pool;
    return rd_pool_has_fibers(binding) ? pool->threads : pool->threads - pool->waiting;
}

bool rd_pool_may_grow(const rd_binding *binding) {
    const rd_pool *pool = &binding->pool;
    if (rd_pool_has_fibers(binding)) return pool->threads < rd_pool_max_threads(binding);
    return pool->threads - pool->waiting < pool->places;
}

/* hooks.need_thread: called by the watch thread, without the GVL. */
static void need_thread(rd_server *server) {
    rd_binding *binding = server->hooks.owner;
    if (!rd_pool_arm(&binding->pool)) rd_pool_want_thread(&binding->pool);
}

/* hooks.need_gvl: as above. */
static void need_gvl(rd_server *server) {
    (void)server;
    rd_gvl_call_for_way();
}

/* hooks.is_exhausted: called by the watch thread, with fibers. */
static bool is_exhausted(const rd_server *server) {
    const rd_binding *binding = server->hooks.owner;
    const uint64_t threads = atomic_load_explicit(&server->score->threads, memory_order_relaxed);
    return atomic_load(&binding->pool.standbys) == 0 && threads >= rd_pool_max_threads(binding);
}

/* The visit sleeps soon, and its thread may lead. A fiber leaves the thread to its hub. Otherwise
 * another thread must take the loop. If there is none, the watch thread runs the turns. */
static void leave_loop(const rd_visit *visit) {
    rd_binding *binding = visit->runner->binding;
    if (binding->pool.leader != visit->runner || visit->fiber != Qfalse) return;
    binding->pool.leader = NULL;
    if (!rd_pool_arm(&binding->pool) && rd_pool_may_grow(binding))
        rd_pool_want_thread(&binding->pool);
}

/* Before a call. If the call is likely to block, wakes a standby now, which then queues for the GVL
 * and takes the loop. If not, the watch thread wakes the standby a millisecond after the call
 * blocks. */
static void provide_standby(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    if (atomic_load_explicit(&pool->standbys, memory_order_relaxed) == 0) {
        if (rd_pool_may_grow(binding)) rd_pool_want_thread(pool);
    } else if (pool->blocking > BLOCKING_ENOUGH || pool->busy_turns > BUSY_TURNS) {
        rd_pool_arm(pool);
    }
}

/* ---- places in the application ---- */

typedef struct rd_resuming {
    rd_list node;
    rd_visit *visit;
    rd_sleep sleep; /* woken when a place is granted */
    bool has_place;
} rd_resuming;

bool rd_pool_has_place(const rd_binding *binding) {
    return binding->pool.active < binding->pool.places;
}

RD_APART static void grant_place(rd_pool *pool, rd_list *line) {
    rd_resuming *first = RD_CONTAINER(rd_list_shift(line), rd_resuming, node);
    first->has_place = true;
    first->visit->stepped_out = first->visit->is_needed = false;
    pool->active++;
    first->sleep.ops->wake(&first->sleep);
}

static void grant_places(rd_binding *binding, rd_list *line) {
    while (rd_pool_has_place(binding) && !rd_list_is_empty(line)) {
        grant_place(&binding->pool, line);
    }
}

void rd_pool_let_back_in(rd_binding *binding) {
    grant_places(binding, &binding->pool.aside);
    binding->pool.begun = false;
}

void rd_pool_end(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    pool->over = true;
    while (!rd_list_is_empty(&pool->aside)) grant_place(pool, &pool->aside);
    for (rd_list *node = pool->runners.next; node != &pool->runners; node = node->next) {
        rd_semaphore_post(&RD_CONTAINER(node, rd_runner, node)->woken);
    }
    rd_semaphore_post(&pool->supervisor);
}

static void take_place(rd_binding *binding) {
    binding->pool.active++;
    write_busy(binding);
}

static void leave_place(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    pool->active--;
    grant_places(binding, &pool->resuming); /* before new requests */
    write_busy(binding);
    /* The leader may sleep because no place was left: it checks again. */
    if (pool->active + 1 == pool->places) rd_loop_wakeup(&binding->server->loop);
}

static uint64_t entered; /* visits of all servers of this process so far; under the GVL */

void rd_pool_enter(rd_visit *visit, rd_request *request) {
    rd_binding *binding = visit->runner->binding;
    visit->request = request;
    visit->serial = ++entered;
    visit->logged_slow = visit->logged_hung = visit->is_needed = false;
    visit->to_undo = 0;
    visit->is_inside = visit->runner->away = true;
    visit->runner->inside++;
    binding->pool.begun = true;
    take_place(binding);
    provide_standby(binding);
}

/* Drops a timeout that was raised after the call had ended. */
static void drop_timeout(void) {
    if (rd_gvl_protected_interrupts() == 0) return;
    VALUE error = rb_errinfo();
    if (rb_obj_is_kind_of(error, rd_eRequestTimeout)) rb_set_errinfo(Qnil);
}

static bool has_more_marked(const rd_binding *binding) {
    return binding->pool.marked > (uint32_t)binding->server->settings.max_io_threads;
}

/* The place of another one that is marked is still there. */
static void end_mark(rd_binding *binding) {
    if (!has_more_marked(binding)) binding->pool.places--;
    binding->pool.marked--;
}

RD_APART static void undo(rd_visit *visit) {
    if (visit->to_undo & RD_UNDO_MARK) end_mark(visit->runner->binding);
    if (!(visit->to_undo & RD_UNDO_TIMEOUT)) return;
    rd_visit_end_limit(visit);
    drop_timeout();
}

void rd_pool_leave(rd_visit *visit) {
    rd_runner *runner = visit->runner;
    rd_pool *pool = &runner->binding->pool;
    if (visit->to_undo != 0) undo(visit);
    visit->is_inside = runner->away = false;
    runner->inside--;
    leave_place(runner->binding);
    if (pool->leader == runner) {
        pool->blocking -= pool->blocking >> 8;
    } else {
        pool->blocking += (BLOCKING_MAX - pool->blocking) >> 3;
    }
}

/* ---- waiting for clients ---- */

/* Chooses the first wait whose client is silent, else the first wait. NULL: none has lasted long
 * enough. Under the loop lock. */
static rd_client_wait *choose(rd_binding *binding) {
    const rd_list *all = &binding->pool.for_clients;
    const uint64_t now = rd_clock_ns();
    rd_client_wait *first = NULL;
    rd_list *node = all->next;
    for (int left = LOOKED_AT; left > 0 && node != all; left--) {
        rd_client_wait *wait = RD_CONTAINER(node, rd_client_wait, node);
        node = node->next;
        if (now - wait->since_ns < PATIENCE_MS * UINT64_C(1000000)) break;
        if (!rd_list_is_linked(&wait->waiter.node)) continue; /* over: its thread returns anyway */
        if (rd_calls_is_silent(binding->server, wait->request, SILENT_MS)) return wait;
        if (first == NULL) first = wait;
    }
    return first;
}

/* The waits before the chosen one are not examined again soon: their clients are active. */
static void let_pass(rd_pool *pool, const rd_client_wait *chosen) {
    const uint64_t now = rd_clock_ns();
    while (pool->for_clients.next != &chosen->node) {
        rd_client_wait *wait =
            RD_CONTAINER(rd_list_shift(&pool->for_clients), rd_client_wait, node);
        wait->since_ns = now;
        rd_list_append(&pool->for_clients, &wait->node);
    }
}

/* Gives up the client that was waited for longest. True: its call had stepped out and comes back.
 * If the call had kept its place, false: that place will soon be free. */
static bool give_up_longest(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    rd_lock(binding);
    rd_client_wait *chosen = choose(binding);
    if (chosen != NULL) {
        let_pass(pool, chosen);
        rd_list_unlink(&chosen->node);
        rd_calls_give_up(binding->server, chosen->request);
    }
    rd_unlock(binding);
    if (chosen == NULL || !chosen->stepped_out) return false;
    chosen->given_up = true;
    pool->returning++;
    return true;
}

/* Whether one more call may leave its place. Calls that come back are still out for a moment. To
 * bound their number, one of them must be ready to take the place. */
static bool has_room_outside(rd_binding *binding) {
    const rd_pool *pool = &binding->pool;
    const uint32_t most = (uint32_t)binding->server->settings.max_parked_bodies;
    if (pool->waiting - pool->returning < most) return true;
    if (most == 0) return false;
    if (pool->returning >= rd_pool_max_threads(binding) && rd_list_is_empty(&pool->resuming)) {
        return false;
    }
    return give_up_longest(binding);
}

/* A call without a place holds up no other request of its connection. */
static void leave_seat(const rd_visit *visit) {
    if (visit->request == NULL) return;
    rd_lock(visit->runner->binding);
    rd_queue_step_out(visit->runner->binding->server, visit->request);
    rd_unlock(visit->runner->binding);
}

static void take_seat(const rd_visit *visit) {
    if (visit->request == NULL) return;
    rd_lock(visit->runner->binding);
    rd_queue_step_in(visit->runner->binding->server, visit->request);
    rd_unlock(visit->runner->binding);
}

static bool step_out(rd_visit *visit) {
    rd_binding *binding = visit->runner->binding;
    rd_pool *pool = &binding->pool;
    if (visit->stepped_out || !has_room_outside(binding)) return false;
    visit->stepped_out = true;
    pool->waiting++;
    leave_place(binding);
    leave_seat(visit);
    return true;
}

int64_t rd_pool_wait_for_client(rd_visit *visit, rd_client_wait *wait) {
    rd_binding *binding = visit->runner->binding;
    rd_pool *pool = &binding->pool;
    if (!rd_list_is_linked(&wait->node)) {
        wait->since_ns = rd_clock_ns();
        rd_list_append(&pool->for_clients, &wait->node);
    }
    if (!wait->stepped_out) wait->stepped_out = step_out(visit);
    leave_loop(visit);
    const bool looks = !wait->stepped_out && binding->server->settings.max_parked_bodies > 0;
    return looks ? PLACE_LOOK_MS : -1;
}

static VALUE is_locked_out(VALUE argument) {
    const rd_visit *visit = (const rd_visit *)argument;
    return visit->strand->is_locked_out(visit) ? Qtrue : Qfalse;
}

/* Whether all calls with a place sleep for ever. A call that waits for a place may hold the Mutex
 * that they need. */
static bool is_deadlocked(const rd_binding *binding) {
    RD_EACH_VISIT(&binding->pool, visit, node) {
        if (visit->stepped_out) continue;
        int state = 0;
        VALUE locked_out = rb_protect(is_locked_out, (VALUE)visit, &state);
        if (state != 0) rb_set_errinfo(Qnil);
        if (state != 0 || !RTEST(locked_out)) return false;
    }
    return true;
}

/* Makes the leader let bodies that stand aside back in. */
static void call_leader(const rd_visit *visit) {
    rd_binding *binding = visit->runner->binding;
    rd_pool *pool = &binding->pool;
    rd_loop_wakeup(&binding->server->loop);
    if (pool->leader != NULL && !pool->leader->away) return;
    if (pool->leader == visit->runner && visit->fiber != Qfalse) return; /* it leads soon */
    if (!rd_pool_arm(pool) && rd_pool_may_grow(binding)) rd_pool_want_thread(pool);
}

static int wait_in(rd_visit *visit, rd_list *line, bool at_once) {
    rd_binding *binding = visit->runner->binding;
    rd_pool *pool = &binding->pool;
    rd_resuming self = {.visit = visit};
    unsigned looks = 0;
    int state = 0;
    rd_sleep_begin(&self.sleep, binding);
    rd_list_append(line, &self.node);
    if (line == &pool->resuming) {
        grant_places(binding, line);
    } else {
        call_leader(visit);
    }
    while (!self.has_place && !at_once && state == 0) {
        const bool is_first = line->next == &self.node;
        const rd_strand_ops *ops = self.sleep.ops;
        const bool granted = ops->sleep(&self.sleep, is_first ? FIRST_LOOKS_MS : OTHERS_LOOK_MS);
        state = ops->raised(&self.sleep);
        if (granted || line->next != &self.node) continue;
        const bool is_late = line == &pool->aside && ++looks >= MOST_LOOKS;
        if (rd_pool_has_place(binding) || is_deadlocked(binding) ||
            (is_late && rd_pool_max_threads(binding) > 1)) {
            break;
        }
    }
    if (!self.has_place) {
        rd_list_unlink(&self.node);
        visit->stepped_out = false;
        visit->is_needed = !rd_pool_has_place(binding);
        pool->active++;
    }
    pool->waiting--;
    write_busy(binding);
    take_seat(visit);
    return state;
}

int rd_pool_client_came(rd_visit *visit, rd_client_wait *wait, bool at_once) {
    if (rd_list_is_linked(&wait->node)) rd_list_unlink(&wait->node);
    if (!wait->stepped_out) return 0;
    rd_pool *pool = &visit->runner->binding->pool;
    if (!wait->given_up) pool->returning++;
    const int state = wait_in(visit, &pool->resuming, at_once);
    pool->returning--;
    return state;
}

/* A request may wait for the place, and then for a thread. */
void rd_pool_mark(rd_visit *visit) {
    rd_binding *binding = visit->runner->binding;
    if (rd_pool_has_fibers(binding) || (visit->to_undo & RD_UNDO_MARK) != 0) return;
    visit->to_undo |= RD_UNDO_MARK;
    binding->pool.marked++;
    if (has_more_marked(binding)) return;
    binding->pool.places++;
    grant_places(binding, &binding->pool.resuming);
    call_leader(visit);
}

int rd_pool_step_aside(rd_visit *visit) {
    rd_binding *binding = visit->runner->binding;
    const bool leaves = step_out(visit);
    leave_loop(visit);
    return leaves ? wait_in(visit, &binding->pool.aside, binding->pool.over) : 0;
}

rd_visit *rd_visit_current(rd_binding *binding) {
    rd_runner *runner = rd_runner_current(binding);
    if (runner == NULL) return NULL;
    rd_visit *visit = runner->fibers != NULL ? runner->fibers->context : &runner->visit;
    return visit != NULL && visit->is_inside ? visit : NULL;
}

/* ---- beginning and end ---- */

void rd_pool_init(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    rd_list_init(&pool->runners);
    rd_list_init(&pool->visits);
    rd_list_init(&pool->standby_list);
    pthread_mutex_init(&pool->standby_lock, NULL);
    rd_list_init(&pool->resuming);
    rd_list_init(&pool->aside);
    rd_list_init(&pool->for_clients);
    rd_semaphore_init(&pool->supervisor);
    atomic_init(&pool->standbys, 0);
    atomic_init(&pool->armed, false);
    atomic_init(&pool->thread_wanted, false);
    atomic_init(&pool->attention_wanted, false);
    binding->server->hooks.owner = binding;
    binding->server->hooks.need_thread = need_thread;
    if (rd_gvl_can_call_for_way()) binding->server->hooks.need_gvl = need_gvl;
    if (rd_pool_has_fibers(binding)) {
        binding->server->hooks.is_exhausted = is_exhausted;
        rd_waiters_init(&binding->waiters, &binding->server->loop, RD_FIBERS_MOST_WAITERS);
    }
    pool->places = rd_settings_places(&binding->server->settings);
    atomic_store(&binding->server->score->max_threads, pool->places);
}

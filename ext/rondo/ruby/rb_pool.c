/* SPDX-License-Identifier: MIT
 *
 * Places in the application, and who is woken for the loop; see rb_pool.h.
 */
#include "ruby/rb_pool.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "ruby/rb_call.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_names.h"

#define BLOCKING_MAX    65536
#define BLOCKING_ENOUGH 1024 /* about one call of sixty-four */
#define BUSY_TURNS      4

/* How often whoever waits for a place looks whether nobody will leave one: the first of a line, and
 * those behind it, who only look whether they are the first by now. After so many looks as the
 * first, a body that stands aside comes in past all places; a signal for its thread is a look, too.
 */
#define FIRST_LOOKS_MS 50
#define OTHERS_LOOK_MS 1000
#define MOST_LOOKS     5

uint32_t rd_pool_max_threads(const rd_binding *binding) {
    return (uint32_t)binding->server->settings.max_threads;
}

void rd_pool_publish(const rd_binding *binding) {
    rd_score_slot *score = binding->server->score;
    atomic_store_explicit(&score->busy, binding->pool.active, memory_order_relaxed);
    atomic_store_explicit(&score->threads, binding->pool.threads, memory_order_relaxed);
}

/* ---- calling for others ---- */

bool rd_pool_arm(rd_pool *pool) {
    if (atomic_load(&pool->standbys) == 0) return false;
    if (!atomic_exchange(&pool->armed, true)) sem_post(&pool->standby);
    return true;
}

void rd_pool_want_thread(rd_pool *pool) {
    if (!atomic_exchange(&pool->thread_wanted, true)) sem_post(&pool->supervisor);
}

bool rd_pool_may_grow(const rd_binding *binding) {
    const rd_pool *pool = &binding->pool;
    return pool->threads - pool->waiting < rd_pool_max_threads(binding);
}

/* rd_server.need_thread: from the watch thread, without the GVL. */
static void need_thread(rd_server *server) {
    rd_binding *binding = server->owner;
    if (!rd_pool_arm(&binding->pool)) rd_pool_want_thread(&binding->pool);
}

/* Somebody has to go on with the loop; where nobody is left, the watch thread does what it can. */
static void give_loop_away(rd_binding *binding) {
    binding->pool.leader = NULL;
    if (!rd_pool_arm(&binding->pool) && rd_pool_may_grow(binding))
        rd_pool_want_thread(&binding->pool);
}

/* Before a call: whoever goes on with the loop if it blocks is woken beforehand, when that is
 * likely, and queues for the GVL. Else the watch thread wakes it, a millisecond later. */
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
    rd_runner *runner;
    sem_t granted;
    bool has_place;
} rd_resuming;

bool rd_pool_has_place(const rd_binding *binding) {
    return binding->pool.active < rd_pool_max_threads(binding);
}

static void grant_place(rd_pool *pool, rd_list *line) {
    rd_resuming *first = RD_CONTAINER(rd_list_shift(line), rd_resuming, node);
    first->has_place = true;
    first->runner->stepped_out = first->runner->needed = false;
    pool->active++;
    sem_post(&first->granted);
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
    for (uint32_t i = 0; i < pool->threads; i++) sem_post(&pool->standby);
    sem_post(&pool->supervisor);
}

static void take_place(rd_binding *binding) {
    binding->pool.active++;
    rd_pool_publish(binding);
}

static void leave_place(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    pool->active--;
    grant_places(binding, &pool->resuming); /* who waited for a client comes before new requests */
    rd_pool_publish(binding);
    /* A leader that slept because there was no place left looks again. */
    if (pool->active + 1 == rd_pool_max_threads(binding)) rd_loop_wakeup(&binding->server->loop);
}

void rd_pool_enter(rd_runner *runner, rd_request *request) {
    rd_binding *binding = runner->binding;
    runner->request = request;
    runner->told_slow = runner->told_timeout = runner->needed = false;
    runner->in_application = runner->away = true;
    binding->pool.begun = true;
    take_place(binding);
    provide_standby(binding);
}

/* A timeout that came when the call was over anyway. */
static void drop_timeout(void) {
    if (rd_gvl_protected_interrupts() == 0) return;
    VALUE error = rb_errinfo();
    if (rb_obj_is_kind_of(error, rd_eRequestTimeout)) rb_set_errinfo(Qnil);
}

void rd_pool_leave(rd_runner *runner) {
    rd_pool *pool = &runner->binding->pool;
    if (runner->told_timeout) drop_timeout();
    runner->in_application = runner->away = false;
    leave_place(runner->binding);
    if (pool->leader == runner) {
        pool->blocking -= pool->blocking >> 8;
    } else {
        pool->blocking += (BLOCKING_MAX - pool->blocking) >> 3;
    }
}

bool rd_pool_step_out(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    bool leaves = !runner->stepped_out &&
                  pool->waiting < (uint32_t)binding->server->settings.max_parked_bodies;
    if (leaves) {
        runner->stepped_out = true;
        pool->waiting++;
        leave_place(binding);
    }
    if (pool->leader == runner) give_loop_away(binding);
    return leaves;
}

/* Whether the thread stands still until another one wakes it, at a Mutex for one. */
static VALUE is_locked_out(VALUE thread) {
    VALUE text = rb_funcall(thread, rb_intern("inspect"), 0);
    return strstr(StringValueCStr(text), " sleep_forever>") != NULL ? Qtrue : Qfalse;
}

/* All places are with calls that nothing wakes, and who waits for one may hold what they need. */
static bool is_deadlocked(const rd_binding *binding) {
    const rd_list *all = &binding->pool.runners;
    for (const rd_list *node = all->next; node != all; node = node->next) {
        const rd_runner *runner = RD_CONTAINER(node, rd_runner, node);
        if (!runner->in_application || runner->stepped_out) continue;
        int state = 0;
        VALUE locked_out = rb_protect(is_locked_out, runner->thread, &state);
        if (state != 0) rb_set_errinfo(Qnil);
        if (state != 0 || !RTEST(locked_out)) return false;
    }
    return true;
}

/* Whoever leads lets those who stand aside back in. */
static void call_leader(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    rd_loop_wakeup(&binding->server->loop);
    if (pool->leader != NULL && !pool->leader->away) return;
    if (!rd_pool_arm(pool) && rd_pool_may_grow(binding)) rd_pool_want_thread(pool);
}

static int wait_in(rd_runner *runner, rd_list *line, bool at_once) {
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    rd_resuming self = {.runner = runner};
    unsigned looks = 0;
    int state = 0;
    sem_init(&self.granted, 0, 0);
    rd_list_append(line, &self.node);
    if (line == &pool->resuming) {
        grant_places(binding, line);
    } else {
        call_leader(binding);
    }
    while (!self.has_place && !at_once && state == 0) {
        const bool is_first = line->next == &self.node;
        const bool granted =
            rd_gvl_wait_semaphore(&self.granted, is_first ? FIRST_LOOKS_MS : OTHERS_LOOK_MS);
        state = rd_gvl_protected_interrupts();
        if (granted || line->next != &self.node) continue;
        const bool is_late = line == &pool->aside && ++looks >= MOST_LOOKS;
        if (rd_pool_has_place(binding) || is_deadlocked(binding) ||
            (is_late && rd_pool_max_threads(binding) > 1)) {
            break;
        }
    }
    if (!self.has_place) {
        rd_list_unlink(&self.node);
        runner->stepped_out = false;
        runner->needed = !rd_pool_has_place(binding);
        pool->active++;
    }
    pool->waiting--;
    sem_destroy(&self.granted);
    rd_pool_publish(binding);
    return state;
}

int rd_pool_step_in(rd_runner *runner, bool at_once) {
    return wait_in(runner, &runner->binding->pool.resuming, at_once);
}

int rd_pool_step_aside(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    if (!rd_pool_step_out(runner)) return 0;
    return wait_in(runner, &binding->pool.aside, binding->pool.over);
}

rd_runner *rd_pool_current(rd_binding *binding) {
    VALUE thread = rb_thread_current();
    rd_list *all = &binding->pool.runners;
    for (rd_list *node = all->next; node != all; node = node->next) {
        rd_runner *runner = RD_CONTAINER(node, rd_runner, node);
        if (runner->thread == thread) return runner->in_application ? runner : NULL;
    }
    return NULL;
}

/* ---- beginning and end ---- */

void rd_pool_init(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    rd_list_init(&pool->runners);
    rd_list_init(&pool->resuming);
    rd_list_init(&pool->aside);
    sem_init(&pool->standby, 0, 0);
    sem_init(&pool->supervisor, 0, 0);
    atomic_init(&pool->standbys, 0);
    atomic_init(&pool->armed, false);
    atomic_init(&pool->thread_wanted, false);
    atomic_init(&pool->attention_wanted, false);
    binding->server->need_attention = rd_pool_need_attention;
    binding->server->unheard = rd_pool_unheard;
    binding->server->owner = binding;
    binding->server->need_thread = need_thread;
    atomic_store(&binding->server->score->max_threads, rd_pool_max_threads(binding));
}

void rd_pool_clear(rd_binding *binding) {
    sem_destroy(&binding->pool.standby);
    sem_destroy(&binding->pool.supervisor);
}

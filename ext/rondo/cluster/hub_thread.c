/* SPDX-License-Identifier: MIT
 *
 * The hub's thread, and the calls from other threads; see hub_thread.h. Everything but start and
 * stop happens under the lock of the thread's own loop.
 */
#include "cluster/hub_thread.h"

#include <errno.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "system/thread_start.h"
#include "cluster/hub_link.h"

#define EXPIRE_MS 5000

/* ---- the thread ---- */

static void on_expire(rd_timer *timer) {
    rd_hub_thread *thread = RD_CONTAINER(timer, rd_hub_thread, expire_timer);
    rd_history_expire(&thread->hub.history, thread->loop.now_ms);
}

static void set_expire_timer(rd_hub_thread *thread) {
    if (thread->hub.history.count == 0 || rd_timer_is_armed(&thread->expire_timer)) return;
    rd_timer_set(&thread->loop.timers, &thread->expire_timer, thread->loop.now_ms + EXPIRE_MS);
}

static void turn(rd_hub_thread *thread) {
    rd_loop *loop = &thread->loop;
    const bool goes_on = rd_hub_links_serve(thread);
    set_expire_timer(thread);
    atomic_store(&loop->sleeping, true);
    /* A thread that set `over` before this saw no sleeper to wake: look again. */
    const bool is_over = atomic_load(&thread->over);
    const int64_t timeout = is_over || goes_on ? 0 : rd_loop_timeout(loop);
    rd_loop_unlock(loop);
    rd_loop_wait(loop, &thread->found, timeout);
    rd_loop_lock(loop);
    atomic_store(&loop->sleeping, false);
    rd_loop_process(loop, &thread->found);
}

static void *run(void *argument) {
    rd_hub_thread *thread = argument;
    rd_loop_lock(&thread->loop);
    while (!atomic_load(&thread->over)) turn(thread);
    rd_conn_set_flush(&thread->conns);
    rd_loop_unlock(&thread->loop);
    return NULL;
}

int rd_hub_thread_start(rd_hub_thread *thread) {
    atomic_store(&thread->over, false);
    const int code = rd_thread_start(&thread->thread, run, thread);
    thread->is_running = code == 0;
    return -code;
}

void rd_hub_thread_stop(rd_hub_thread *thread) {
    if (!thread->is_running) return;
    atomic_store(&thread->over, true);
    rd_loop_wakeup(&thread->loop);
    pthread_join(thread->thread, NULL);
    thread->is_running = false;
}

rd_hub_thread *rd_hub_thread_new(rd_history_limits limits, size_t queue_bytes) {
    rd_hub_thread *thread = rd_alloc_zero(sizeof(*thread));
    if (rd_loop_init(&thread->loop, false) != 0) {
        rd_free(thread);
        return NULL;
    }
    rd_timer_init(&thread->expire_timer, on_expire);
    rd_hub_links_init(thread, limits, queue_bytes);
    return thread;
}

void rd_hub_thread_free(rd_hub_thread *thread) {
    rd_hub_thread_stop(thread);
    rd_loop_lock(&thread->loop);
    rd_hub_links_clear(thread);
    if (rd_timer_is_armed(&thread->expire_timer)) rd_timer_cancel(&thread->expire_timer);
    rd_loop_unlock(&thread->loop);
    rd_loop_clear(&thread->loop);
    rd_conn_set_clear(&thread->conns);
    rd_free(thread);
}

/* ---- calls from other threads ---- */

static void enter(rd_hub_thread *thread) {
    rd_loop_lock(&thread->loop);
    rd_loop_refresh(&thread->loop);
    rd_hub_links_take_time(thread);
}

static void leave(rd_hub_thread *thread) {
    rd_loop_wakeup(&thread->loop);
    rd_loop_unlock(&thread->loop);
}

void rd_hub_thread_expect_streams(rd_hub_thread *thread) {
    enter(thread);
    rd_hub_expect_streams(&thread->hub);
    leave(thread);
}

void rd_hub_thread_expect_no_engine(rd_hub_thread *thread) {
    enter(thread);
    rd_hub_expect_no_engine(&thread->hub);
    leave(thread);
}

int64_t rd_hub_thread_add(rd_hub_thread *thread, int fd, rd_hub_kind kind, rd_score_row *score) {
    int64_t number = -1;
    enter(thread);
    const bool is_taken = rd_hub_is_engine(kind) && thread->hub.engine != NULL;
    rd_conn *conn = is_taken ? NULL : rd_hub_link_open(thread, fd, kind);
    const int error = is_taken ? EEXIST : errno;
    if (conn != NULL) {
        number = rd_hub_conn_of(conn)->number = ++thread->last_number;
        rd_hub_conn_of(conn)->score = score;
    }
    leave(thread);
    errno = error;
    return number;
}

static rd_conn *find(rd_hub_thread *thread, int64_t number) {
    RD_EACH_HUB_CONN(thread, conn, node) {
        if (rd_hub_conn_of(conn)->number == number) return conn;
    }
    return NULL;
}

void rd_hub_thread_remove(rd_hub_thread *thread, int64_t number) {
    enter(thread);
    rd_conn *conn = find(thread, number);
    if (conn != NULL) rd_hub_link_end(thread, conn);
    leave(thread);
}

int rd_hub_thread_publish(rd_hub_thread *thread, rd_slice channel, rd_slice payload,
                          unsigned flags) {
    const rd_relay_frame frame = {
        .type = RD_RELAY_PUBLISH, .flags = (uint8_t)flags, .channel = channel, .payload = payload};
    char head[RD_RELAY_HEAD_BYTES];
    const int code = rd_relay_head(&frame, RD_RELAY_PAYLOAD_MAX, head);
    if (code < 0) return code;
    enter(thread);
    const bool is_queued = rd_hub_publish(&thread->hub, &frame);
    leave(thread);
    return is_queued ? 1 : 0;
}

bool rd_hub_thread_give_back(rd_hub_thread *thread, rd_slice channel, rd_slice payload,
                             unsigned flags) {
    const rd_relay_frame frame = {.flags = (uint8_t)flags, .channel = channel, .payload = payload};
    enter(thread);
    const bool is_taken = rd_hub_give_back(&thread->hub, &frame);
    leave(thread);
    return is_taken;
}

int rd_hub_thread_keep(rd_hub_thread *thread, rd_slice name, bool is_pattern,
                       rd_relay_terms terms) {
    enter(thread);
    const int code = rd_hub_keep(&thread->hub, name, is_pattern, terms);
    leave(thread);
    return code;
}

void rd_hub_thread_stats(rd_hub_thread *thread, rd_hub_stats *stats) {
    rd_loop_lock(&thread->loop);
    *stats = (rd_hub_stats){.links = thread->conns.count,
                            .published = thread->hub.published,
                            .sent = thread->sent,
                            .dropped = thread->dropped,
                            .kept = thread->hub.history.count,
                            .unclaimed_lost = thread->hub.unclaimed_lost};
    RD_EACH_HUB_CONN(thread, conn, node) {
        stats->sent += rd_hub_conn_of(conn)->link.sent;
        stats->dropped += rd_hub_conn_of(conn)->link.dropped;
        stats->queue_bytes += conn->out.bytes;
    }
    rd_loop_unlock(&thread->loop);
}

int64_t rd_hub_thread_outage(rd_hub_thread *thread) {
    int64_t number = 0;
    rd_loop_lock(&thread->loop);
    RD_EACH_HUB_CONN(thread, conn, node) {
        rd_hub_conn *state = rd_hub_conn_of(conn);
        if (number != 0 || state->named_outages == state->link.outages) continue;
        state->named_outages = state->link.outages;
        number = state->number;
    }
    rd_loop_unlock(&thread->loop);
    return number;
}

void rd_hub_thread_each(rd_hub_thread *thread, rd_hub_link_visit *run, void *with) {
    rd_loop_lock(&thread->loop);
    RD_EACH_HUB_CONN(thread, conn, node) {
        const rd_hub_conn *state = rd_hub_conn_of(conn);
        if (state->link.kind == RD_HUB_WORKER) run(with, state->number, conn->source.fd);
    }
    rd_loop_unlock(&thread->loop);
}

/* ---- forks ---- */

void rd_hub_thread_hold(rd_hub_thread *thread) {
    rd_loop_lock(&thread->loop);
}

void rd_hub_thread_release(rd_hub_thread *thread) {
    rd_loop_unlock(&thread->loop);
}

/* Only closes, like rd_server_abandon(): the poller belongs to the parent as well. */
void rd_hub_thread_abandon(rd_hub_thread *thread) {
    rd_conn_set_abandon(&thread->conns);
    thread->is_running = false;
    rd_hub_thread_release(thread);
}

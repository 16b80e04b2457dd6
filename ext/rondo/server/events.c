/* SPDX-License-Identifier: MIT
 *
 * In and out of the queue of events; see events.h.
 */
#include "server/events.h"

#include "server/server.h"
#include "system/clock.h"

/* A source may keep the server from ending; it does so from its first event on. */
static void count(rd_server *server, rd_event_source *source) {
    if (!source->holds || source->is_counted) return;
    source->is_counted = true;
    server->events.holders[source->ops->family]++;
}

void rd_events_add(rd_server *server, rd_event_source *source) {
    if (rd_list_is_linked(&source->in_queue)) return;
    count(server, source);
    source->refs++;
    rd_list_append(&server->events.waiting, &source->in_queue);
    server->events.ready_count++;
}

static rd_list *shift(rd_server *server) {
    rd_list *node = rd_list_shift(&server->events.waiting);
    if (node != NULL) server->events.ready_count--;
    return node;
}

void rd_events_withdraw(rd_server *server, rd_event_source *source) {
    if (!rd_list_is_linked(&source->in_queue)) return;
    rd_list_unlink(&source->in_queue);
    server->events.ready_count--;
    if (source->is_counted) server->events.holders[source->ops->family]--;
    source->is_counted = false;
    source->ops->release(source, NULL);
}

static void give_back(rd_server *server, const rd_event *event) {
    rd_event_source *source = event->source;
    source->is_handling = false;
    const bool is_over = source->ops->handled(source, event);
    if (is_over && source->is_counted) server->events.holders[source->ops->family]--;
    if (source->ops->next(source) != 0) rd_events_add(server, source);
    source->ops->release(source, event->message);
}

bool rd_server_next_event(rd_server *server, rd_event *event, bool goes_on) {
    if (event->source != NULL) give_back(server, event);
    *event = (rd_event){.source = NULL};
    rd_list *node = goes_on ? shift(server) : NULL;
    if (node == NULL) return false;
    event->source = RD_CONTAINER(node, rd_event_source, in_queue);
    event->source->ops->take(event->source, event);
    event->source->is_handling = true;
    return true;
}

/* In a turn without requests, when no other thread left something to do. */
static bool is_idle(const rd_server *server) {
    return server->queue.batch_count == 0 && !rd_queue_has_work(server) &&
           rd_list_is_empty(&server->events.waiting);
}

rd_task *rd_server_next_task(rd_server *server, uint64_t now_ns) {
    rd_tasks *tasks = &server->tasks;
    const unsigned turn = atomic_load_explicit(&server->lead.turns, memory_order_relaxed);
    server->lead.seen_ns = now_ns;
    if (tasks->turn != turn) {
        tasks->turn = turn;
        tasks->until_ns = now_ns + (uint64_t)server->settings.batch_us * 1000;
    } else if (now_ns >= tasks->until_ns) {
        return NULL;
    }
    return rd_tasks_take(tasks, is_idle(server), now_ns);
}

bool rd_events_live(const rd_server *server) {
    for (unsigned family = 0; family < RD_EVENT_FAMILY_COUNT; family++) {
        if (server->events.holders[family] > 0) return true;
    }
    return !rd_list_is_empty(&server->events.waiting);
}

void rd_events_clear(rd_server *server) {
    for (rd_list *node; (node = shift(server)) != NULL;) {
        rd_event_source *source = RD_CONTAINER(node, rd_event_source, in_queue);
        source->ops->release(source, NULL);
    }
}

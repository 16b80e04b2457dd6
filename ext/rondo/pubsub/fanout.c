/* SPDX-License-Identifier: MIT
 *
 * Delivers messages to subscribers; see fanout.h. After a callback has returned, nothing that it
 * may have freed is touched, unless `visited` and `served` say that it still exists.
 */
#include "pubsub/fanout.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/prefetch.h"

#define NEAR_BYTES 192 /* of a subscriber and the struct around it */

struct rd_fanout_entry {
    rd_fanout_entry *next;
    rd_message *message;
    uint64_t number;
};

void rd_fanout_init(rd_fanout *fanout) {
    *fanout = (rd_fanout){0};
    rd_list_init(&fanout->ready);
}

void rd_fanout_line_init(rd_fanout_line *line) {
    *line = (rd_fanout_line){0};
    rd_list_init(&line->subscriptions);
    rd_list_init(&line->in_ready);
}

static rd_subscription *subscription_at(rd_list *node) {
    return RD_CONTAINER(node, rd_subscription, in_line);
}

/* Counts the whole message, even if other entries share it. */
static size_t memory_of(const rd_fanout_entry *entry) {
    const rd_message *message = entry->message;
    return sizeof(*entry) + sizeof(*message) + message->channel_len + message->payload_len;
}

static void shift(rd_fanout *fanout, rd_fanout_line *line) {
    rd_fanout_entry *entry = line->first;
    line->first = entry->next;
    if (line->first == NULL) line->last = NULL;
    fanout->waiting--;
    fanout->waiting_bytes -= memory_of(entry);
    rd_message_unref(entry->message);
    rd_free(entry);
}

static void drop_messages(rd_fanout *fanout, rd_fanout_line *line) {
    while (line->first != NULL) shift(fanout, line);
    line->pass_last = NULL;
    line->cursor = NULL;
    rd_list_unlink(&line->in_ready);
    if (fanout->visited == line) fanout->visited = NULL;
}

void rd_fanout_line_clear(rd_fanout *fanout, rd_fanout_line *line) {
    assert(line->count == 0);
    drop_messages(fanout, line);
}

void rd_fanout_join(rd_fanout *fanout, rd_fanout_line *line, rd_subscription *subscription) {
    subscription->line = line;
    subscription->since = fanout->sequence;
    rd_list_append(&line->subscriptions, &subscription->in_line);
    line->count++;
}

void rd_fanout_leave(rd_fanout *fanout, rd_subscription *subscription) {
    rd_fanout_line *line = subscription->line;
    if (line->cursor == &subscription->in_line) line->cursor = subscription->in_line.next;
    if (fanout->served == subscription) fanout->served = NULL;
    rd_list_unlink(&subscription->in_line);
    if (--line->count == 0) drop_messages(fanout, line);
}

void rd_fanout_rejoin(rd_fanout *fanout, rd_subscription *subscription) {
    rd_fanout_line *line = subscription->line;
    rd_fanout_leave(fanout, subscription);
    rd_fanout_join(fanout, line, subscription);
}

void rd_fanout_add(rd_fanout *fanout, rd_fanout_line *line, rd_message *message) {
    if (line->count == 0) return;
    rd_fanout_entry *entry = rd_alloc(sizeof(*entry));
    *entry = (rd_fanout_entry){.message = rd_message_ref(message), .number = ++fanout->sequence};
    if (line->last != NULL) {
        line->last->next = entry;
    } else {
        line->first = entry;
    }
    line->last = entry;
    fanout->waiting++;
    fanout->waiting_bytes += memory_of(entry);
    if (!rd_list_is_linked(&line->in_ready)) rd_list_append(&fanout->ready, &line->in_ready);
}

uint64_t rd_fanout_pass_number(const rd_fanout_line *line) {
    return line->pass_last->number;
}

bool rd_subscriber_is_behind(const rd_subscriber *subscriber, uint64_t number) {
    const rd_list *ring = subscriber->subscriptions;
    for (const rd_list *node = ring; node != NULL; node = rd_ring_next(ring, node)) {
        const rd_subscription *each = RD_CONTAINER(node, const rd_subscription, in_subscriber);
        const rd_fanout_line *line = each->line;
        if (line->first == NULL || line->first->number > number) continue;
        if (line->last->number > each->since) return true;
    }
    return false;
}

static void begin_pass(rd_fanout_line *line) {
    line->pass_last = line->first;
    for (int i = 1; i < RD_FANOUT_GATHER_MAX && line->pass_last->next != NULL; i++) {
        line->pass_last = line->pass_last->next;
    }
    line->cursor = line->subscriptions.next;
}

static void end_pass(rd_fanout *fanout, rd_fanout_line *line) {
    const rd_fanout_entry *next = line->pass_last->next;
    while (line->first != next) shift(fanout, line);
    line->pass_last = NULL;
    line->cursor = NULL;
}

/* Whether all subscriptions of the pass are served. Those that came after its last message are at
 * the end of the list. */
static bool is_pass_over(const rd_fanout_line *line) {
    return line->cursor == &line->subscriptions ||
           subscription_at(line->cursor)->since >= line->pass_last->number;
}

/* The subscribers of a crowd are far apart in memory and long out of the cache. Looks three steps
 * ahead, because each step gives the address of the next. */
static void look_ahead(const rd_fanout_line *line) {
    const rd_list *const end = &line->subscriptions;
    rd_list *const first = line->cursor;
    if (first == end) return;
    const rd_subscriber *subscriber = subscription_at(first)->subscriber;
    if (subscriber->kind->on_near != NULL) subscriber->kind->on_near(subscriber);
    rd_list *const second = first->next;
    if (second == end) return;
    rd_prefetch(subscription_at(second)->subscriber, NEAR_BYTES);
    rd_prefetch(second->next, sizeof(rd_subscription));
}

/* Delivers all messages of the pass to the subscription at the cursor. Returns false when the line
 * has gone. */
static bool serve(rd_fanout *fanout, rd_fanout_line *line, bool is_crowd) {
    rd_subscription *subscription = subscription_at(line->cursor);
    const rd_fanout_entry *entry = line->first;
    const rd_fanout_entry *const last = line->pass_last;
    line->cursor = line->cursor->next;
    while (entry->number <= subscription->since) entry = entry->next;
    fanout->served = subscription;
    for (;;) {
        rd_message *message = rd_message_ref(entry->message);
        subscription->subscriber->kind->on_message(subscription->subscriber, subscription, message);
        rd_message_unref(message);
        if (fanout->visited != line) return false;
        if (fanout->served != subscription || entry == last) break;
        entry = entry->next;
    }
    if (is_crowd && fanout->served == subscription) {
        rd_subscriber *subscriber = subscription->subscriber;
        if (subscriber->kind->on_served != NULL) {
            look_ahead(line);
            subscriber->kind->on_served(subscriber);
        }
        if (fanout->visited != line) return false;
    }
    fanout->served = NULL;
    return true;
}

/* Goes on with the line's pass, or begins one. Returns how many subscribers it served. */
static uint32_t visit(rd_fanout *fanout, rd_fanout_line *line, uint32_t subscribers) {
    const bool is_crowd = rd_fanout_is_crowd(fanout);
    uint32_t served = 0;
    fanout->visited = line;
    if (line->pass_last == NULL) begin_pass(line);
    while (!is_pass_over(line) && served < subscribers) {
        served++;
        if (!serve(fanout, line, is_crowd)) return served;
    }
    fanout->visited = NULL;
    if (is_pass_over(line)) end_pass(fanout, line);
    rd_list_unlink(&line->in_ready);
    if (line->first != NULL) rd_list_append(&fanout->ready, &line->in_ready);
    return served;
}

bool rd_fanout_run(rd_fanout *fanout, uint32_t subscribers) {
    if (fanout->is_running) return true;
    fanout->is_running = true;
    while (subscribers > 0 && !rd_list_is_empty(&fanout->ready)) {
        rd_fanout_line *line = RD_CONTAINER(fanout->ready.next, rd_fanout_line, in_ready);
        const uint32_t served = visit(fanout, line, subscribers);
        subscribers -= served > 0 ? served : 1;
    }
    fanout->is_running = false;
    return !rd_list_is_empty(&fanout->ready);
}

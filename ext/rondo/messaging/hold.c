/* SPDX-License-Identifier: MIT
 *
 * Holding back, and giving all at once; see hold.h. The queues of channels deliver a part at a
 * time, so a message that was published before the last answer came may still be on its way to this
 * endpoint. It has a lower id than some of what is held, so the hold waits for it.
 */
#include "messaging/hold.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/ledger.h"
#include "request/handler.h"

enum {
    RUN_COST = 4096,    /* of one turn: holds, subscriptions that are looked at, messages that are
                         * given */
    LIVE_WAIT_MS = 1000 /* for queues that do not get empty */
};

typedef struct held {
    rd_message *message; /* a reference; NULL: it was dropped */
    uint64_t order;      /* its id, or that of the live message before it; 0: what is missing */
    uint64_t owner;
    uintptr_t block;
    uint32_t arrival; /* in the order in which they came */
    rd_receive_as as;
    bool is_live;
} held;

struct rd_hold {
    rd_endpoint_hold of_endpoint;
    rd_holds *holds;
    rd_endpoint *endpoint; /* a reference */
    rd_subscriber_kind kind;
    const rd_subscriber_kind *kind_before;
    rd_list *waits;
    held *items;
    size_t count, capacity;
    size_t memory;     /* of the items */
    size_t counted;    /* of it, by the ledger */
    uint64_t last_id;  /* of the live message that came last */
    uint64_t sequence; /* of the queues of channels: what came before is waited for */
    rd_list in_due;
    rd_timer deadline; /* of the callback, then of the hold */
    uint64_t end_ms;   /* of the hold */
    uint64_t more_ms;  /* of the holds, when it was set */
    bool is_full;
    bool is_over; /* does not wait for the callback that runs */
};

void rd_holds_init(rd_holds *holds, rd_channels *channels, rd_loop *loop) {
    *holds = (rd_holds){.channels = channels, .loop = loop};
    rd_list_init(&holds->due);
}

rd_list *rd_hold_waits(const rd_hold *hold) {
    return hold->waits;
}

bool rd_hold_is_full(const rd_hold *hold) {
    return hold->is_full;
}

/* ---- room ---- */

static size_t length_of(const rd_message *message) {
    return message->channel_len + message->payload_len;
}

static size_t memory_of(const rd_message *message) {
    return sizeof(held) + sizeof(*message) + length_of(message);
}

/* What a message for a block takes once it is given. The room for a name is allocated in steps. */
static size_t block_memory_of(const rd_message *message) {
    return sizeof(rd_endpoint_message) +
           (message->is_gap ? RD_CHANNEL_NAME_MAX : message->payload_len);
}

/* The hub counts the bytes of an answer by their length. */
static size_t bytes_of(const rd_message *message, bool is_live, uintptr_t block) {
    if (block != 0) return block_memory_of(message);
    return is_live ? memory_of(message) : length_of(message);
}

static bool count_memory(rd_hold *hold, size_t memory) {
    rd_ledger *ledger = hold->endpoint->shared->ledger;
    return ledger == NULL || rd_ledger_resize(ledger, RD_LEDGER_OUTPUT, &hold->counted, memory);
}

/* A single message may be longer than the limit. What is given up is given soon: until then there
 * is as much room again. */
static bool has_room(const rd_hold *hold, size_t bytes, uintptr_t block) {
    const size_t most = (size_t)hold->endpoint->shared->settings->max_pending_bytes;
    if (hold->is_full) return hold->of_endpoint.bytes + bytes <= 2 * most;
    return hold->of_endpoint.bytes == 0 || bytes <= rd_endpoint_room(hold->endpoint, block);
}

static bool make_room(rd_hold *hold, const rd_message *message, bool is_live, uintptr_t block) {
    const size_t memory = hold->memory + memory_of(message);
    if (!has_room(hold, bytes_of(message, is_live, block), block)) return false;
    if (count_memory(hold, memory)) return true;
    if (!hold->is_full) return false;
    rd_ledger_recount(hold->endpoint->shared->ledger, RD_LEDGER_OUTPUT, &hold->counted, memory);
    return true;
}

/* Its row of the table stays. */
static void drop(rd_hold *hold, held *item) {
    rd_message *message = item->message;
    if (message == NULL) return;
    item->message = NULL;
    hold->of_endpoint.bytes -= bytes_of(message, item->is_live, item->block);
    hold->memory -= memory_of(message) - sizeof(held);
    (void)count_memory(hold, hold->memory);
    rd_message_unref(message);
}

static void append(rd_hold *hold, const held *item) {
    if (hold->count == hold->capacity) {
        hold->capacity = hold->capacity ? hold->capacity * 2 : 16;
        hold->items = rd_realloc(hold->items, hold->capacity * sizeof(held));
    }
    held *added = &hold->items[hold->count];
    *added = *item;
    added->arrival = (uint32_t)hold->count++;
    rd_message_ref(added->message);
    hold->of_endpoint.bytes += bytes_of(added->message, added->is_live, added->block);
    hold->memory += memory_of(added->message);
}

/* ---- what comes ---- */

/* Drops the oldest message of this answer. */
static bool drop_oldest(rd_hold *hold, rd_hold_part *part) {
    for (; part->first < hold->count; part->first++) {
        held *item = &hold->items[part->first];
        if (item->message == NULL || item->is_live || item->owner != part->owner) continue;
        drop(hold, item);
        return true;
    }
    return false;
}

void rd_hold_add(rd_hold *hold, rd_hold_part *part, rd_message *message) {
    while (!make_room(hold, message, false, part->block)) {
        part->is_cut = true;
        if (!drop_oldest(hold, part)) return;
    }
    append(hold, &(held){.message = message,
                         .order = message->id,
                         .owner = part->owner,
                         .block = part->block,
                         .as = part->as});
}

/* Few and short: one for each subscription, which has counted its name already. A block gets it as
 * a message, which would leave too little room for those behind it. */
void rd_hold_tell(rd_hold *hold, rd_hold_part *part, rd_message *message) {
    while (part->block != 0 && !make_room(hold, message, true, part->block)) {
        if (!drop_oldest(hold, part)) break;
    }
    append(hold, &(held){.message = message,
                         .owner = part->owner,
                         .block = part->block,
                         .as = part->as,
                         .is_live = true});
}

void rd_hold_forget(rd_hold *hold, uint64_t owner) {
    for (size_t i = 0; i < hold->count; i++) {
        if (hold->items[i].owner == owner) drop(hold, &hold->items[i]);
    }
}

/* Each of them ends by its own on_end. */
static void give_up(rd_hold *hold, bool is_late) {
    rd_endpoint *endpoint = hold->endpoint;
    rd_endpoint_ref(endpoint);
    while (rd_hold_of(endpoint) == hold && hold->waits != NULL) {
        rd_hold_wait *wait = RD_CONTAINER(hold->waits, rd_hold_wait, in_hold);
        rd_link_replay_give_up(&wait->replay, is_late);
    }
    rd_endpoint_unref(endpoint);
}

static void refuse(rd_hold *hold) {
    rd_endpoint *endpoint = hold->endpoint;
    rd_endpoint_ops_of(endpoint)->overflow(endpoint);
}

/* Messages without an id wait only for those that came before them. Those of the server's own
 * channels never do: the beat of Action Cable is one of them. */
static bool passes(const rd_hold *hold, const rd_message *message) {
    if (message->id != 0) return false;
    return hold->last_id == 0 || rd_channel_is_private(rd_message_channel(message));
}

static void on_message(rd_subscriber *subscriber, rd_subscription *subscription,
                       rd_message *message) {
    rd_endpoint *endpoint = RD_CONTAINER(subscriber, rd_endpoint, subscriber);
    rd_hold *hold = rd_hold_of(endpoint);
    const uintptr_t block = (uintptr_t)subscription->with;
    const rd_receive_as as = subscription->as;
    if (endpoint->is_closing) return;
    if (passes(hold, message)) {
        rd_endpoint_deliver(endpoint, message, as, block);
        return;
    }
    const uint64_t owner = rd_subscription_hash(subscription);
    if (!hold->is_full && !make_room(hold, message, true, block)) {
        hold->is_full = hold->is_over = true;
        give_up(hold, false);
        rd_hold_settle(hold); /* later: the queues run */
    }
    if (hold->is_full && !make_room(hold, message, true, block)) {
        refuse(hold);
        return;
    }
    if (message->id != 0) {
        const uint64_t sequence = rd_fanout_pass_number(subscription->line);
        hold->last_id = message->id;
        if (hold->sequence < sequence) hold->sequence = sequence;
    }
    append(hold, &(held){.message = message,
                         .order = hold->last_id,
                         .owner = owner,
                         .block = block,
                         .as = as,
                         .is_live = true});
}

/* ---- the end ---- */

static int by_order(const void *left, const void *right) {
    const held *a = left, *b = right;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    return a->arrival < b->arrival ? -1 : 1;
}

/* From here on the endpoint has no hold. */
static void detach(rd_hold *hold) {
    rd_endpoint *endpoint = hold->endpoint;
    endpoint->hold = NULL;
    endpoint->subscriber.kind = hold->kind_before;
    if (rd_timer_is_armed(&hold->deadline)) rd_timer_cancel(&hold->deadline);
    rd_list_unlink(&hold->in_due);
    hold->memory = 0;
    (void)count_memory(hold, 0);
}

/* Giving may close the connection. */
static void release(rd_hold *hold, bool gives) {
    rd_endpoint *endpoint = hold->endpoint;
    detach(hold);
    if (gives && hold->count > 1) qsort(hold->items, hold->count, sizeof(held), by_order);
    for (size_t i = 0; i < hold->count; i++) {
        const held *item = &hold->items[i];
        if (item->message == NULL) continue;
        if (gives) rd_endpoint_deliver(endpoint, item->message, item->as, item->block);
        rd_message_unref(item->message);
    }
    rd_free(hold->items);
    rd_free(hold);
    rd_endpoint_unref(endpoint);
}

static bool waits_for_callback(const rd_hold *hold) {
    const rd_endpoint *endpoint = hold->endpoint;
    return !hold->is_over && rd_endpoint_ops_of(endpoint)->has_ids && endpoint->source.is_handling;
}

static void wait_for_queues(rd_hold *hold) {
    const uint64_t end_ms = hold->holds->loop->now_ms + LIVE_WAIT_MS;
    if (hold->end_ms > end_ms) hold->end_ms = end_ms;
    rd_list_append(&hold->holds->due, &hold->in_due);
}

void rd_hold_settle(rd_hold *hold) {
    const rd_fanout *fanout = &hold->holds->channels->fanout;
    if (hold->waits != NULL || rd_list_is_linked(&hold->in_due)) return;
    if (waits_for_callback(hold)) return;
    hold->sequence = fanout->sequence;
    if (!fanout->is_running &&
        !rd_subscriber_is_behind(&hold->endpoint->subscriber, hold->sequence)) {
        release(hold, true);
    } else {
        wait_for_queues(hold);
    }
}

/* Messages that come faster than they are delivered would be waited for without end. */
static bool has_to_wait(const rd_hold *hold) {
    if (hold->is_full || hold->holds->loop->now_ms >= hold->end_ms) return false;
    return rd_subscriber_is_behind(&hold->endpoint->subscriber, hold->sequence);
}

/* Clients choose how many holds there are, and how much is in them. The rest waits for the next
 * turn, those that are behind last. */
void rd_holds_run(rd_holds *holds) {
    rd_list behind;
    size_t cost = 0;
    rd_list_init(&behind);
    for (rd_list *node; cost < RUN_COST && (node = rd_list_shift(&holds->due)) != NULL;) {
        rd_hold *hold = RD_CONTAINER(node, rd_hold, in_due);
        cost += 1 + hold->endpoint->subscriber.count;
        if (has_to_wait(hold)) {
            rd_list_append(&behind, node);
        } else {
            cost += hold->count;
            release(hold, true);
        }
    }
    for (rd_list *node; (node = rd_list_shift(&behind)) != NULL;) rd_list_append(&holds->due, node);
}

static void on_deadline(rd_timer *timer) {
    rd_hold *hold = RD_CONTAINER(timer, rd_hold, deadline);
    rd_endpoint *endpoint = hold->endpoint;
    const uint64_t end_ms = hold->end_ms + hold->holds->more_ms - hold->more_ms;
    hold->is_over = true;
    rd_endpoint_ref(endpoint);
    if (end_ms > hold->holds->loop->now_ms) {
        rd_timer_set(&hold->holds->loop->timers, timer, end_ms);
    } else {
        give_up(hold, true);
    }
    if (rd_hold_of(endpoint) == hold) rd_hold_settle(hold);
    rd_endpoint_unref(endpoint);
}

/* ---- for the endpoint ---- */

static void settle(rd_endpoint_hold *of_endpoint, bool is_over) {
    rd_hold *hold = RD_CONTAINER(of_endpoint, rd_hold, of_endpoint);
    hold->is_over |= is_over;
    rd_hold_settle(hold);
}

static void end(rd_endpoint_hold *of_endpoint) {
    rd_hold *hold = RD_CONTAINER(of_endpoint, rd_hold, of_endpoint);
    while (hold->waits != NULL) {
        rd_hold_wait *wait = RD_CONTAINER(hold->waits, rd_hold_wait, in_hold);
        wait->cancel(wait);
    }
    release(hold, false);
}

/* ---- the beginning ---- */

static void set_deadline(rd_hold *hold, uint64_t wait_ms) {
    rd_loop *loop = hold->holds->loop;
    const uint64_t first_ms = wait_ms < RD_REPLAY_WAIT_MS ? wait_ms : RD_REPLAY_WAIT_MS;
    hold->end_ms = loop->now_ms + wait_ms;
    hold->more_ms = hold->holds->more_ms;
    rd_timer_set(&loop->timers, &hold->deadline, loop->now_ms + first_ms);
}

rd_hold *rd_hold_begin(rd_holds *holds, rd_endpoint *endpoint, uint64_t wait_ms) {
    if (endpoint->hold != NULL) {
        rd_hold *present = rd_hold_of(endpoint);
        if (rd_list_is_linked(&present->in_due)) { /* it waits for answers again */
            rd_list_unlink(&present->in_due);
            set_deadline(present, wait_ms);
        }
        return present;
    }
    rd_hold *hold = rd_alloc_zero(sizeof(*hold));
    hold->of_endpoint = (rd_endpoint_hold){.settle = settle, .end = end};
    hold->holds = holds;
    hold->endpoint = endpoint;
    hold->kind_before = endpoint->subscriber.kind;
    hold->kind = *hold->kind_before;
    hold->kind.on_message = on_message;
    rd_list_init(&hold->in_due);
    rd_timer_init(&hold->deadline, on_deadline);
    set_deadline(hold, wait_ms);
    rd_endpoint_ref(endpoint);
    endpoint->hold = &hold->of_endpoint;
    endpoint->subscriber.kind = &hold->kind;
    return hold;
}

void rd_hold_join(rd_hold *hold, rd_hold_wait *wait) {
    wait->part.first = hold->count;
    rd_ring_append(&hold->waits, &wait->in_hold);
}

void rd_hold_leave(rd_hold *hold, rd_hold_wait *wait) {
    rd_ring_remove(&hold->waits, &wait->in_hold);
}

/* ---- the order of what is live ---- */

/* The queue that is served now is one of those that are ready. The others may have messages that
 * were published before this one, for this endpoint, too. */
static void on_ordered(rd_subscriber *subscriber, rd_subscription *subscription,
                       rd_message *message) {
    rd_endpoint *endpoint = RD_CONTAINER(subscriber, rd_endpoint, subscriber);
    rd_holds *holds = RD_CONTAINER(subscriber->kind, rd_holds, ordered);
    const rd_fanout *fanout = &holds->channels->fanout;
    const bool is_alone = fanout->ready.next->next == &fanout->ready;
    if (endpoint->is_closing) return;
    if (is_alone || message->id == 0) {
        rd_endpoint_deliver(endpoint, message, subscription->as, (uintptr_t)subscription->with);
        return;
    }
    wait_for_queues(rd_hold_begin(holds, endpoint, LIVE_WAIT_MS));
    on_message(subscriber, subscription, message);
}

void rd_hold_order(rd_holds *holds, rd_endpoint *endpoint) {
    rd_hold *hold = rd_hold_of(endpoint);
    const rd_subscriber_kind **kind =
        hold != NULL ? &hold->kind_before : &endpoint->subscriber.kind;
    if (*kind == &holds->ordered) return;
    holds->ordered = **kind;
    holds->ordered.on_message = on_ordered;
    *kind = &holds->ordered;
}

/* SPDX-License-Identifier: MIT
 *
 * The replays of a link; see link.h. A ticket stands for a replay that waits, or whose answer has
 * not come yet. The hub answers in the order of the requests, but for those that it sets aside;
 * fair_lines.h decides which replay is requested next, aside.h has those that wait for the
 * engine.
 */
#include <string.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "cluster/link_parts.h"
#include "pubsub/hub.h"

enum {
    NOTE_BYTES = RD_RELAY_WAITS_NOTE,
    NUMBER_BYTES = 8, /* of a note; then comes how much the client can take */
    ASKED_MAX = 8,    /* replays requested from the hub at once, but for those that are set aside */
    ASIDE_MAX = 4096, /* set aside for clients */
    ASIDE_MOST = 8 * 4096, /* for clients and those that have gone */
    MOVED_AT_ONCE = 256,
    REPLAY_BYTES_PER_MS = 32 * 1024,
    REPLAY_BURST = 8 * 1024 * 1024,
    ASKED_COST = 4096, /* charged for a replay before its answer is known */
    LATE_AT_ONCE = 256,
    AGE_NEVER = 255, /* of a client that has not seen anything yet */
};

_Static_assert(ASIDE_MOST + ASKED_MAX <= RD_HUB_REPLAYS_MAX, "the hub closes a link with more");

typedef enum ticket_state {
    IN_LINE,
    ASKED,
    ASIDE,
    FOLLOWS, /* those of its channel that are set aside, or returns to its line */
} ticket_state;

typedef struct rd_link_ticket {
    rd_link *link;
    rd_list in_link;        /* in a line, in the tickets, or set aside */
    rd_list in_deadlines;   /* unless its client has gone */
    rd_link_replay *replay; /* NULL: its client has gone */
    rd_fair_line *line;
    uint64_t due_ms;
    uint64_t number;
    uint64_t since;
    size_t bytes_max;
    ticket_state state;
    bool is_pattern;
    rd_aside_channel *aside; /* where it is set aside */
    size_t name_len;
    char name[];
} ticket;

static rd_slice name_of(const ticket *ticket) {
    return rd_slice_of(ticket->name, ticket->name_len);
}

static ticket *first_ticket(const rd_link *link) {
    if (rd_list_is_empty(&link->tickets)) return NULL;
    return RD_CONTAINER(link->tickets.next, ticket, in_link);
}

/* The hub has the request, and will answer it even if the client goes. */
static bool is_at_hub(const ticket *ticket) {
    return ticket->state == ASKED || ticket->state == ASIDE;
}

bool rd_link_has_ticket(const rd_link *link, rd_slice name, bool is_pattern) {
    if (!is_pattern && rd_aside_find(&link->aside, name) != NULL) return true;
    for (rd_list *node = link->tickets.next; node != &link->tickets; node = node->next) {
        const ticket *due = RD_CONTAINER(node, ticket, in_link);
        if (due->is_pattern != is_pattern) continue;
        if (rd_slice_equal(name_of(due), name)) return true;
    }
    return false;
}

/* ---- requests ---- */

static bool send_replay(rd_link *link, const ticket *asking) {
    char note[NOTE_BYTES];
    rd_relay_put_number(note, NUMBER_BYTES, asking->number);
    rd_relay_put_number(note + NUMBER_BYTES, NUMBER_BYTES, asking->bytes_max);
    note[NOTE_BYTES - 1] = 0;
    const rd_relay_frame frame = {.type = RD_RELAY_REPLAY,
                                  .flags = rd_link_pattern_flag(asking->is_pattern),
                                  .id = asking->since,
                                  .channel = name_of(asking),
                                  .payload = rd_slice_of(note, sizeof(note))};
    return rd_link_send(link, &frame) == 1;
}

static void take_credit(rd_link *link) {
    const uint64_t now_ms = link->conns.loop->now_ms, passed = now_ms - link->credited_ms;
    const uint64_t least = REPLAY_BURST / REPLAY_BYTES_PER_MS;
    link->credited_ms = now_ms;
    link->credit += (int64_t)(passed < least ? passed : least) * REPLAY_BYTES_PER_MS;
    if (link->credit > REPLAY_BURST) link->credit = REPLAY_BURST;
}

static bool has_credit(rd_link *link) {
    if (link->credit > 0) return true;
    take_credit(link);
    if (link->credit > 0) return true;
    if (!rd_timer_is_armed(&link->pause)) {
        const uint64_t pause_ms = (uint64_t)(-link->credit) / REPLAY_BYTES_PER_MS + 1;
        rd_timer_set(&link->conns.loop->timers, &link->pause, link->credited_ms + pause_ms);
    }
    return false;
}

static void leave(rd_link *link, ticket *ticket) {
    if (ticket->state == ASIDE) {
        link->aside.gone -= ticket->replay == NULL;
        rd_aside_remove(&link->aside, ticket->aside, &ticket->in_link);
        return;
    }
    rd_list_unlink(&ticket->in_link);
    link->waiting -= ticket->state == IN_LINE;
    link->asked -= ticket->state == ASKED;
}

static void ask_soon(rd_link *link) {
    if (rd_timer_is_armed(&link->pause)) return;
    rd_timer_set(&link->conns.loop->timers, &link->pause, link->conns.loop->now_ms);
}

static void enter_line(rd_link *link, ticket *added);

/* A ticket that follows has a client. */
static void take_back(rd_link *link) {
    rd_list *returning = &link->aside.returning;
    for (int count = 0; !rd_list_is_empty(returning); count++) {
        if (count == MOVED_AT_ONCE) {
            ask_soon(link);
            return;
        }
        enter_line(link, RD_CONTAINER(rd_list_shift(returning), ticket, in_link));
    }
}

static void follow(rd_aside_channel *channel, ticket *ticket) {
    ticket->state = FOLLOWS;
    rd_list_append(&channel->followers, &ticket->in_link);
}

static rd_aside_channel *aside_channel_of(const rd_link *link, const ticket *ticket) {
    return ticket->is_pattern ? NULL : rd_aside_find(&link->aside, name_of(ticket));
}

/* A replay subscribes, so a waiting change of the same name is obsolete. */
static bool send_ticket(rd_link *link, ticket *next) {
    if (!has_credit(link) || !send_replay(link, next)) return false;
    rd_changes_forget(&link->changes, name_of(next), next->is_pattern);
    leave(link, next);
    rd_list_append(&link->tickets, &next->in_link);
    rd_fair_line_charge(next->line, ASKED_COST);
    next->state = ASKED;
    link->asked++;
    return true;
}

static bool may_ask(const rd_link *link) {
    return link->conn != NULL && link->waiting > 0 && link->asked < ASKED_MAX &&
           link->aside.count - link->aside.gone < ASIDE_MAX && link->aside.count < ASIDE_MOST;
}

static void ask(rd_link *link) {
    take_back(link);
    for (int moved = 0; may_ask(link);) {
        ticket *next = RD_CONTAINER(rd_fair_lines_next(link->lines)->waiting.next, ticket, in_link);
        rd_aside_channel *channel = aside_channel_of(link, next);
        if (channel == NULL) {
            if (!send_ticket(link, next)) return;
        } else if (moved++ < MOVED_AT_ONCE) {
            leave(link, next);
            follow(channel, next);
        } else {
            ask_soon(link);
            return;
        }
    }
}

void rd_link_ask(rd_link *link) {
    ask(link);
    rd_conn_set_flush(&link->conns);
}

static void on_pause_over(rd_timer *timer) {
    rd_link_ask(RD_CONTAINER(timer, rd_link, pause));
}

/* How long the client was away, in powers of two of a second: ids are times in microseconds. */
static unsigned char age_of(uint64_t since) {
    const uint64_t now_us = (uint64_t)rd_clock_wall_us();
    unsigned char age = 0;
    if (since == 0) return AGE_NEVER;
    for (uint64_t s = since < now_us ? (now_us - since) / 1000000 : 0; s > 0; s /= 2) age++;
    return age;
}

/* Hashes the client's address and how long it was away. One client may have a whole /64 of IPv6.
 * Behind a proxy all clients have one address: there clients that were away for long do not hold up
 * the others, and a client that lies about this gets a small answer. */
static void enter_line(rd_link *link, ticket *added) {
    const rd_address *from = &added->replay->from;
    unsigned char who[2 + sizeof(from->bytes)] = {from->kind, age_of(added->since)};
    memcpy(who + 2, from->bytes, from->kind == RD_ADDRESS_V6 ? 8 : sizeof(from->bytes));
    const rd_slice key = rd_slice_of((const char *)who, sizeof(who));
    added->line = rd_fair_lines_add(link->lines, key, &added->in_link);
    added->state = IN_LINE;
    link->waiting++;
}

static void expect_deadline(rd_link *link, ticket *added) {
    added->due_ms = link->conns.loop->now_ms + link->wait_ms;
    rd_list_append(&link->deadlines, &added->in_deadlines);
    if (rd_timer_is_armed(&link->deadline)) return;
    rd_timer_set(&link->conns.loop->timers, &link->deadline, added->due_ms);
}

/* The timer finds the new times. */
uint64_t rd_link_set_wait(rd_link *link, uint64_t wait_ms) {
    const uint64_t more_ms = wait_ms > link->wait_ms ? wait_ms - link->wait_ms : 0;
    link->wait_ms = wait_ms;
    if (more_ms == 0) return 0;
    for (rd_list *node = link->deadlines.next; node != &link->deadlines; node = node->next) {
        RD_CONTAINER(node, ticket, in_deadlines)->due_ms += more_ms;
    }
    return more_ms;
}

bool rd_link_replay_begin(rd_link *link, rd_link_replay *replay, rd_slice name, bool is_pattern,
                          uint64_t since) {
    if (link->conn == NULL) return false;
    ticket *added = rd_alloc(sizeof(*added) + name.len);
    *added = (ticket){
        .link = link, .replay = replay, .number = ++link->last_number, .is_pattern = is_pattern};
    added->since = since;
    added->bytes_max = replay->bytes_max;
    added->name_len = name.len;
    memcpy(added->name, name.ptr, name.len);
    replay->ticket = added;
    rd_aside_channel *channel = aside_channel_of(link, added);
    if (channel != NULL)
        follow(channel, added);
    else
        enter_line(link, added);
    expect_deadline(link, added);
    ask(link);
    return true;
}

/* Another client may wait for the place of one that was set aside. */
static void forget_client(ticket *ticket) {
    ticket->replay = NULL;
    rd_list_unlink(&ticket->in_deadlines);
    if (ticket->state != ASIDE) return;
    ticket->link->aside.gone++;
    if (ticket->link->waiting > 0) ask_soon(ticket->link);
}

void rd_link_replay_cancel(rd_link_replay *replay) {
    ticket *due = replay->ticket;
    replay->ticket = NULL;
    if (due == NULL) return;
    forget_client(due);
    if (is_at_hub(due)) return;
    leave(due->link, due);
    rd_free(due);
}

/* ---- replays that have no answer in time ---- */

/* The client is subscribed now. The hub must know it in any case: the request may not have left,
 * and hubs of older versions subscribe this process only when they answer. */
static void give_up(rd_link *link, ticket *late, bool is_late) {
    rd_link_replay *replay = late->replay;
    const rd_slice name = name_of(late);
    replay->ticket = NULL;
    replay->is_late = is_late;
    forget_client(late);
    if (!is_at_hub(late)) leave(link, late);
    replay->on_end(replay, RD_REPLAY_GAP);
    if (link->ops->is_wanted(link, name, late->is_pattern)) {
        rd_link_note_interest(link, name, late->is_pattern, true);
    }
    if (!is_at_hub(late)) rd_free(late);
}

void rd_link_replay_give_up(rd_link_replay *replay, bool is_late) {
    give_up(replay->ticket->link, replay->ticket, is_late);
}

static void on_deadline(rd_timer *timer) {
    rd_link *link = RD_CONTAINER(timer, rd_link, deadline);
    const uint64_t now_ms = link->conns.loop->now_ms;
    for (int count = 0; !rd_list_is_empty(&link->deadlines); count++) {
        ticket *oldest = RD_CONTAINER(link->deadlines.next, ticket, in_deadlines);
        if (oldest->due_ms > now_ms || count == LATE_AT_ONCE) {
            const uint64_t due_ms = oldest->due_ms > now_ms ? oldest->due_ms : now_ms + 1;
            rd_timer_set(&link->conns.loop->timers, timer, due_ms);
            break;
        }
        give_up(link, oldest, true);
    }
    rd_conn_set_flush(&link->conns);
}

/* ---- answers ---- */

/* Subscribes the client that asked. If it has gone and no other client wants the channel, the hub
 * need not send its messages. */
static void end_ticket(rd_link *link, ticket *due, rd_replay kind) {
    const rd_slice name = name_of(due);
    if (due->replay != NULL) {
        due->replay->ticket = NULL;
        due->replay->on_end(due->replay, kind);
    }
    leave(link, due);
    rd_list_unlink(&due->in_deadlines);
    if (!link->ops->is_wanted(link, name, due->is_pattern) &&
        !rd_link_has_ticket(link, name, due->is_pattern)) {
        rd_link_note_interest(link, name, due->is_pattern, false);
    }
    rd_free(due);
}

static bool is_for(const rd_relay_frame *frame, const ticket *ticket) {
    return frame->payload.len == NOTE_BYTES &&
           rd_relay_get_number(frame->payload.ptr, NUMBER_BYTES) == ticket->number;
}

static ticket *find(const rd_list *tickets, const rd_relay_frame *frame) {
    for (rd_list *node = tickets->next; node != tickets; node = node->next) {
        ticket *found = RD_CONTAINER(node, ticket, in_link);
        if (is_for(frame, found)) return found;
    }
    return NULL;
}

static ticket *find_aside(const rd_link *link, const rd_relay_frame *frame) {
    const rd_aside_channel *channel = rd_aside_find(&link->aside, frame->channel);
    return channel == NULL ? NULL : find(&channel->aside, frame);
}

bool rd_link_answer_waits(rd_link *link, const rd_relay_frame *frame) {
    ticket *waits = find(&link->tickets, frame);
    if (link->answering != NULL) return false;
    if (waits == NULL) return find_aside(link, frame) != NULL; /* another hub says it again */
    if (waits->is_pattern) return false;
    leave(link, waits);
    waits->state = ASIDE;
    waits->aside = rd_aside_add(&link->aside, name_of(waits), &waits->in_link);
    link->aside.gone += waits->replay == NULL;
    ask(link);
    return true;
}

bool rd_link_answer_begin(rd_link *link, const rd_relay_frame *frame) {
    ticket *first = first_ticket(link);
    if (link->answering != NULL) return false;
    link->answering = first != NULL && is_for(frame, first) ? first : find_aside(link, frame);
    link->is_answered |= link->answering != NULL;
    return link->answering != NULL;
}

void rd_link_answer_take(rd_link *link, const rd_relay_frame *frame) {
    const size_t bytes = RD_RELAY_HEAD_BYTES + frame->channel.len + frame->payload.len;
    const ticket *due = link->answering;
    rd_link_replay *replay = due->replay;
    link->credit -= (int64_t)bytes;
    rd_fair_line_charge(due->line, bytes);
    if (replay != NULL) replay->on_message(replay, frame);
}

bool rd_link_answer_end(rd_link *link, const rd_relay_frame *frame) {
    ticket *due = link->answering;
    if (due == NULL || !is_for(frame, due) || frame->id > RD_REPLAY_NONE) return false;
    link->answering = NULL;
    end_ticket(link, due, (rd_replay)frame->id);
    ask(link);
    return true;
}

/* ---- beginning and end ---- */

void rd_link_replays_init(rd_link *link) {
    rd_list_init(&link->tickets);
    rd_list_init(&link->deadlines);
    rd_aside_init(&link->aside);
    rd_timer_init(&link->deadline, on_deadline);
    link->wait_ms = RD_REPLAY_WAIT_MS;
    link->lines = rd_alloc(sizeof(*link->lines));
    rd_fair_lines_init(link->lines);
    rd_timer_init(&link->pause, on_pause_over);
    link->credit = REPLAY_BURST;
    link->credited_ms = link->conns.loop->now_ms;
}

static ticket *any_aside(const rd_link *link) {
    const rd_list *all = &link->aside.all;
    if (rd_list_is_empty(all)) return NULL;
    const rd_aside_channel *channel = RD_CONTAINER(all->next, rd_aside_channel, in_all);
    return RD_CONTAINER(channel->aside.next, ticket, in_link);
}

void rd_link_replays_end(rd_link *link) {
    link->answering = NULL;
    if (rd_timer_is_armed(&link->pause)) rd_timer_cancel(&link->pause);
    if (rd_timer_is_armed(&link->deadline)) rd_timer_cancel(&link->deadline);
    while (!rd_list_is_empty(&link->deadlines)) {
        end_ticket(link, RD_CONTAINER(link->deadlines.next, ticket, in_deadlines), RD_REPLAY_GAP);
    }
    for (ticket *due; (due = first_ticket(link)) != NULL;) end_ticket(link, due, RD_REPLAY_GAP);
    for (ticket *due; (due = any_aside(link)) != NULL;) end_ticket(link, due, RD_REPLAY_GAP);
}

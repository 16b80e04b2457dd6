/* SPDX-License-Identifier: MIT
 *
 * server/events: sources of other families than connections stand in the same queue. The source
 * here has nothing but a number of ticks, as a timer would.
 */
#include "serving.h"

typedef struct ticker {
    rd_event_source source;
    unsigned due, told, released;
} ticker;

enum { TICK = 1 };

static ticker *ticker_of(const rd_event_source *source) {
    return RD_CONTAINER((rd_event_source *)(uintptr_t)source, ticker, source);
}

static unsigned next(const rd_event_source *source) {
    return ticker_of(source)->due > 0 ? TICK : 0;
}

static void take(rd_event_source *source, rd_event *event) {
    event->kind = TICK;
    event->message = &ticker_of(source)->due;
    ticker_of(source)->due--;
}

/* The last tick is the last one for ever. */
static bool on_told(rd_event_source *source, const rd_event *event) {
    CHECK_INT(event->kind, TICK);
    ticker_of(source)->told++;
    return ticker_of(source)->due == 0;
}

static void release(rd_event_source *source, void *message) {
    if (message != NULL) ticker_of(source)->released++;
    source->refs--;
}

static const rd_event_ops ticker_ops = {.family = RD_EVENTS_OF_SUBSCRIBER,
                                        .next = next,
                                        .take = take,
                                        .handled = on_told,
                                        .release = release};

static ticker new_ticker(unsigned due, bool holds) {
    ticker made = {.due = due};
    rd_event_source_init(&made.source, &ticker_ops, holds);
    return made;
}

/* A list links to itself, so it is initialised at its final address. */
static void add(ticker *one) {
    rd_list_init(&one->source.in_queue);
    rd_events_add(server, &one->source);
}

static void begin(void) {
    start(NULL);
    rd_loop_lock(&server->loop);
}

static void finish(void) {
    rd_loop_unlock(&server->loop);
    end();
}

static void test_sources_take_turns(void) {
    rd_event event = {.source = NULL};
    ticker one = new_ticker(2, false), other = new_ticker(1, false);
    begin();
    add(&one);
    add(&other);
    rd_events_add(server, &other.source); /* it is in the queue already */
    CHECK_INT(other.source.refs, 2);
    CHECK(rd_server_next_event(server, &event, true));
    CHECK(event.source == &one.source && event.message == &one.due);
    CHECK(one.source.is_handling);
    CHECK(rd_server_next_event(server, &event, true)); /* its second event goes to the end */
    CHECK(event.source == &other.source);
    CHECK(!one.source.is_handling);
    CHECK_INT(one.told, 1);
    CHECK(rd_server_next_event(server, &event, true));
    CHECK(event.source == &one.source);
    CHECK(!rd_server_next_event(server, &event, true));
    CHECK_INT(one.told, 2);
    CHECK_INT(one.source.refs, 1);
    CHECK_INT(one.released, 2);
    finish();
}

static void test_who_holds_the_server_does_until_the_last_event(void) {
    rd_event event = {.source = NULL};
    ticker one = new_ticker(1, true);
    begin();
    CHECK(!rd_events_live(server));
    add(&one);
    CHECK(rd_server_next_event(server, &event, true));
    CHECK(rd_events_live(server));
    one.due = 1; /* while the first one is handled */
    CHECK(rd_server_next_event(server, &event, true));
    CHECK(rd_events_live(server));
    CHECK(!rd_server_next_event(server, &event, false));
    CHECK(!rd_events_live(server));
    finish();
}

static void test_what_nobody_takes_is_released(void) {
    ticker one = new_ticker(3, false);
    begin();
    add(&one);
    rd_events_clear(server);
    CHECK_INT(one.source.refs, 1);
    CHECK_INT(one.told, 0);
    finish();
}

/* The number by which the loop knows whether it may sleep. */
static void test_the_ready_are_counted(void) {
    rd_event event = {.source = NULL};
    ticker one = new_ticker(1, true), other = new_ticker(1, false);
    begin();
    add(&one);
    add(&other);
    CHECK_INT(server->events.ready_count, 2);
    rd_events_withdraw(server, &one.source);
    rd_events_withdraw(server, &one.source);
    CHECK_INT(server->events.ready_count, 1);
    CHECK(rd_server_has_calls(server));
    CHECK(rd_server_next_event(server, &event, true));
    CHECK_INT(server->events.ready_count, 0);
    CHECK(!rd_server_next_event(server, &event, true));
    CHECK(!rd_server_has_calls(server));
    finish();
}

int main(void) {
    rd_settings_init(&settings);
    test_sources_take_turns();
    test_who_holds_the_server_does_until_the_last_event();
    test_what_nobody_takes_is_released();
    test_the_ready_are_counted();
    return check_summary();
}

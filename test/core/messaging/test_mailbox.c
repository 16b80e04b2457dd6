/* SPDX-License-Identifier: MIT
 *
 * Mailboxes: messages wait until they are taken, one byte says that there are some, no event is
 * made, and what waits is bounded.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "messaging/pubsub.h"

static rd_settings settings;
static rd_loop loop;
static rd_conn_set conns;
static rd_http_shared shared;
static rd_pubsub pubsub;
static unsigned told;
static int bell[2];

static void on_event(rd_handler *handler, rd_event_source *source) {
    (void)handler, (void)source;
    told++;
}

static rd_handler handler = {.on_event = on_event};

static void begin(void) {
    rd_settings_init(&settings);
    CHECK_INT(rd_loop_init(&loop, false), 0);
    rd_conn_set_init(&conns, &loop, &settings);
    shared = (rd_http_shared){.handler = &handler, .settings = &settings};
    pubsub = (rd_pubsub){0};
    rd_pubsub_init(&pubsub, &conns, &shared);
    told = 0;
    CHECK_INT(pipe(bell), 0);
    CHECK_INT(fcntl(bell[0], F_SETFL, O_NONBLOCK), 0);
    CHECK_INT(fcntl(bell[1], F_SETFL, O_NONBLOCK), 0);
}

static void end(void) {
    rd_pubsub_clear(&pubsub);
    rd_conn_set_clear(&conns);
    rd_loop_clear(&loop);
    (void)close(bell[0]);
    (void)close(bell[1]);
}

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

static void publish(const char *name, rd_slice payload) {
    CHECK_INT(rd_pubsub_publish(&pubsub, text(name), payload, true, RD_REACH_PROCESS), 1);
    while (rd_pubsub_waits(&pubsub)) rd_pubsub_run(&pubsub);
}

static rd_endpoint *mailbox_at(const char *name) {
    rd_endpoint *mailbox = rd_pubsub_mailbox(&pubsub, bell[1]);
    CHECK_INT(rd_pubsub_subscribe(&pubsub, mailbox, text(name), false, &(rd_pubsub_terms){0}), 1);
    return mailbox;
}

/* Bytes that came through the pipe since. */
static long rings(void) {
    char bytes[64];
    const ssize_t count = read(bell[0], bytes, sizeof(bytes));
    return count < 0 ? 0 : (long)count;
}

static void check_next(rd_endpoint *mailbox, const char *name, const char *payload) {
    rd_message *message = rd_mailbox_take(mailbox);
    CHECK(message != NULL);
    if (message == NULL) return;
    CHECK(rd_slice_equal(rd_message_channel(message), text(name)));
    CHECK(rd_slice_equal(rd_message_payload(message), text(payload)));
    rd_message_unref(message);
}

static void test_messages_wait_in_their_order(void) {
    begin();
    rd_endpoint *mailbox = mailbox_at("a");
    CHECK_INT(rd_pubsub_subscribe(&pubsub, mailbox, text("b"), false, &(rd_pubsub_terms){0}), 1);
    CHECK(rd_mailbox_take(mailbox) == NULL);
    publish("a", text("1"));
    publish("b", text("2"));
    publish("c", text("3"));
    CHECK_INT(rings(), 1);
    check_next(mailbox, "a", "1");
    check_next(mailbox, "b", "2");
    CHECK(rd_mailbox_take(mailbox) == NULL);
    CHECK_INT(rings(), 0);
    CHECK(rd_pubsub_unsubscribe(&pubsub, mailbox, text("b"), false));
    publish("b", text("4"));
    publish("a", text("5"));
    CHECK_INT(rings(), 1);
    check_next(mailbox, "a", "5");
    CHECK_INT(told, 0);
    rd_pubsub_release(&pubsub, mailbox);
    end();
}

static void test_what_waits_is_bounded(void) {
    begin();
    enum { SIZE = 1 << 20 };
    char *large = calloc(1, SIZE);
    rd_endpoint *mailbox = mailbox_at("a");
    CHECK(large != NULL);
    for (int i = 0; i < 20; i++) publish("a", rd_slice_of(large, SIZE - 200));
    CHECK_INT(shared.messages_dropped, 4);
    int count = 0;
    for (rd_message *message; (message = rd_mailbox_take(mailbox)) != NULL; count++) {
        rd_message_unref(message);
    }
    CHECK_INT(count, 16);
    publish("a", text("x"));
    check_next(mailbox, "a", "x");
    rd_pubsub_release(&pubsub, mailbox);
    free(large);
    end();
}

/* Nobody reads the pipe. */
static void test_a_full_pipe_holds_up_nobody(void) {
    begin();
    rd_endpoint *mailbox = mailbox_at("a");
    while (write(bell[1], ".", 1) == 1) {
    }
    publish("a", text("x"));
    check_next(mailbox, "a", "x");
    rd_pubsub_release(&pubsub, mailbox);
    end();
}

/* What is left is freed with it. */
static void test_the_end_of_a_mailbox(void) {
    begin();
    rd_endpoint *mailbox = mailbox_at("a");
    publish("a", text("x"));
    rd_pubsub_release(&pubsub, mailbox);
    publish("a", text("y"));
    end();
}

int main(void) {
    test_messages_wait_in_their_order();
    test_what_waits_is_bounded();
    test_a_full_pipe_holds_up_nobody();
    test_the_end_of_a_mailbox();
    return check_summary();
}

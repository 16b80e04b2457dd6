/* SPDX-License-Identifier: MIT
 *
 * protocol/outgoing: from a wish to the first event of a raw connection, or to CLOSE alone; the
 * limits, the end of the server.
 */
#include "serving.h"

#include "endpoint/raw.h"

static rd_endpoint *endpoint; /* the application's reference */
static char told[16];         /* a letter for each event that the application got */
static int listener, accepted;

static bool tell_one(rd_event *event, bool goes_on) {
    static const char letters[] = {
        [RD_ENDPOINT_OPEN] = 'o',
        [RD_ENDPOINT_MESSAGE] = 'm',
        [RD_ENDPOINT_SHUTDOWN] = 's',
        [RD_ENDPOINT_CLOSE] = 'c',
    };
    if (!rd_server_next_event(server, event, goes_on)) return false;
    CHECK(rd_endpoint_of_source(event->source) == endpoint);
    told[strlen(told)] = letters[event->kind];
    return true;
}

static void work(void) {
    rd_event event = {.source = NULL};
    for (int i = 0; i < 3; i++) {
        turn();
        rd_loop_lock(&server->loop);
        while (tell_one(&event, true)) continue;
        rd_loop_unlock(&server->loop);
    }
}

static void begin(void) {
    memset(told, 0, sizeof(told));
    endpoint = NULL;
    listener = accepted = -1;
    start(answer_path);
}

static rd_targets *listen_somewhere(void) {
    rd_targets *to = rd_alloc_zero(sizeof(*to));
    CHECK(rd_targets_of_path(to, "@rondo-test-outgoing"));
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(bind(listener, &to->list[0].address.any, to->list[0].len), 0);
    CHECK_INT(listen(listener, 0), 0);
    return to;
}

static void wish(rd_targets *to) {
    const rd_destination where = {.targets = to, .timeout_ms = 1000};
    rd_loop_lock(&server->loop);
    endpoint = rd_raw_dialing(&server->http);
    rd_endpoint_ref(endpoint);
    CHECK(endpoint->is_dialing);
    rd_outgoing_begin(&server->outgoings, endpoint, &where);
    rd_loop_unlock(&server->loop);
}

static void finish(void) {
    rd_loop_lock(&server->loop);
    if (endpoint != NULL) rd_endpoint_unref(endpoint);
    rd_loop_unlock(&server->loop);
    if (accepted >= 0) close(accepted);
    if (listener >= 0) close(listener);
    work();
    CHECK_INT(server->outgoings.count, 0);
    end();
}

static void test_a_connection(void) {
    begin();
    wish(listen_somewhere());
    accepted = accept(listener, NULL, NULL);
    CHECK_INT(server->outgoings.count, 0);
    CHECK_INT(server->conns.count, 1);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held, 1);
    CHECK(!endpoint->is_dialing);
    CHECK_INT(write(accepted, "word", 4), 4);
    work();
    CHECK_STR(told, "om");
    shutdown(accepted, SHUT_WR);
    work();
    CHECK_STR(told, "omc");
    CHECK_INT(endpoint->close_code, RD_ENDPOINT_NO_CODE);
    finish();
}

static void check_end(const char *why) {
    const rd_slice reason = rd_endpoint_reason_of(endpoint);
    CHECK_STR(told, "c");
    CHECK(endpoint->is_dialing);
    CHECK_INT(endpoint->close_code, RD_ENDPOINT_ABNORMAL);
    CHECK_BYTES(reason.ptr, reason.len, why);
    CHECK_INT(server->conns.count, 0);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held, 0);
}

static void test_nobody_there(void) {
    begin();
    rd_targets *to = rd_alloc_zero(sizeof(*to));
    CHECK(rd_targets_of_path(to, "@rondo-test-nobody"));
    wish(to);
    work();
    check_end("Connection refused");
    finish();
}

/* Somebody else waits in the only place of the queue. */
static int fill(const rd_targets *to) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(connect(fd, &to->list[0].address.any, to->list[0].len), 0);
    return fd;
}

static void test_deadline(void) {
    begin();
    rd_targets *to = listen_somewhere();
    const int other = fill(to);
    wish(to);
    CHECK_INT(server->outgoings.count, 1);
    later(999);
    work();
    CHECK_STR(told, "");
    later(2);
    work();
    check_end("no answer in time");
    close(other);
    finish();
}

static void test_limit_of_dials(void) {
    settings.max_dials = 1;
    begin();
    rd_targets *to = listen_somewhere();
    const int other = fill(to);
    CHECK(!rd_outgoings_are_full(&server->outgoings));
    wish(to);
    CHECK(rd_outgoings_are_full(&server->outgoings));
    later(1001);
    work();
    CHECK(!rd_outgoings_are_full(&server->outgoings));
    close(other);
    finish();
}

static void test_no_room(void) {
    begin();
    server->accepting.limit = 0;
    wish(listen_somewhere());
    work();
    check_end("there is no room for another connection");
    finish();
}

static void test_stop(int how) {
    begin();
    rd_targets *to = listen_somewhere();
    const int other = fill(to);
    wish(to);
    rd_server_stop(server, how);
    work();
    check_end("the server stops");
    CHECK(rd_server_is_done(server));
    rd_loop_lock(&server->loop);
    rd_endpoint_unref(endpoint);
    rd_loop_unlock(&server->loop);
    told[0] = '\0';
    wish(rd_alloc_zero(sizeof(rd_targets))); /* too late */
    work();
    check_end("the server stops");
    close(other);
    finish();
}

/* A server that was never stopped. */
static void test_freed(void) {
    begin();
    rd_targets *to = listen_somewhere();
    const int other = fill(to);
    wish(to);
    rd_loop_lock(&server->loop);
    rd_endpoint_unref(endpoint);
    rd_loop_unlock(&server->loop);
    rd_server_free(server);
    close(other);
    close(listener);
}

int main(void) {
    rd_settings_init(&settings);
    test_a_connection();
    test_nobody_there();
    test_deadline();
    test_limit_of_dials();
    test_no_room();
    test_stop(RD_STOP_DRAIN);
    test_stop(RD_STOP_NOW);
    test_freed();
    return check_summary();
}

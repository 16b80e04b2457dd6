/* SPDX-License-Identifier: MIT
 *
 * Request bodies on their way to a disk that does not answer: the client pauses, its deadlines do
 * not run, others are served, and whatever ends meanwhile ends at once. Framing and deadlines of
 * bodies that are stored at once are in test_http1.c.
 */
#include "full_disk.h"
#include "protocol/http1_state.h"
#include "serving.h"

#define POST(fields) "POST /p HTTP/1.1\r\nHost: a\r\n" fields "\r\n"
#define BODY         "0123456789012345678901234567890123456789"
#define PIECE        65536
#define LARGE        (16 * PIECE)

static int client;
static rd_conn *client_conn;
static unsigned answers;
static uint64_t size_seen;

static void answer_size(rd_request *request) {
    char text[32];
    answers++;
    size_seen = request->body.size;
    CHECK(request->body_complete && rd_body_is_stored(&request->body));
    answer_with(request, text, (size_t)sprintf(text, "%u bytes", (unsigned)size_seen));
}

static void begin(void (*application)(rd_request *)) {
    settings.body_memory_bytes = 0;
    start(application);
    client = join();
    client_conn = joined;
    hold_jobs(&server->loop);
}

static void finish(void) {
    close(client);
    end();
}

static void check_bystander(void) {
    int other = join();
    CHECK(!ask(other, POST("Content-Length: 0\r\n")));
    CHECK_SAYS(ends(got, "\r\n\r\n0 bytes"), "%s", got);
    close(other);
    turns(2);
}

/* The client's deadlines pass, but it has sent everything. */
static void test_the_request_waits_for_its_last_write(void) {
    begin(answer_size);
    say(client, POST("Content-Length: 40\r\n") BODY POST("Content-Length: 0\r\n"));
    turns(3);
    later(10 * 60 * 1000);
    CHECK(!hear(client) && got_len == 0);
    check_bystander();
    release_jobs(&server->loop);
    turns(4);
    CHECK(!hear(client) && strstr(got, "\r\n\r\n40 bytesHTTP/1.1 200 OK\r\n") != NULL);
    CHECK(ends(got, "\r\n\r\n0 bytes"));
    finish();
}

static size_t send_some(size_t left) {
    static const char zeros[PIECE];
    const ssize_t sent = send(client, zeros, left < PIECE ? left : PIECE, MSG_NOSIGNAL);
    return sent > 0 ? (size_t)sent : 0;
}

/* Reading stops at the limit of the queue, however long that lasts, and continues afterwards. */
static void test_a_client_that_is_faster_than_the_disk(void) {
    char head[128];
    size_t left = LARGE;
    begin(answer_size);
    rd_conn *conn = client_conn;
    snprintf(head, sizeof(head), POST("Content-Length: %d\r\n"), LARGE);
    say(client, head);
    turns(2);
    for (int i = 0; i < 40; i++) {
        left -= send_some(left);
        turns(1);
    }
    CHECK(conn->read_paused && left > 0);
    const rd_request *request = rd_http1_of(conn)->request;
    const uint64_t taken = request->body.size;
    CHECK(taken >= RD_BODY_QUEUE_BYTES && taken <= RD_BODY_QUEUE_BYTES + 2 * PIECE);
    later(10 * 60 * 1000);
    CHECK(!hear(client) && got_len == 0);
    check_bystander();
    CHECK_INT(request->body.size, taken);
    release_jobs(&server->loop);
    turns(2);
    CHECK(!conn->read_paused);
    for (int i = 0; i < 400 && left > 0; i++) {
        left -= send_some(left);
        turns(1);
    }
    turns(20);
    CHECK(!hear(client) && ends(got, "\r\n\r\n1048576 bytes"));
    finish();
}

/* The time of the pause does not count. The client's own time does. */
static void test_deadlines_go_on_behind_a_pause(void) {
    char head[128];
    size_t left = LARGE;
    begin(answer_size);
    rd_conn *conn = client_conn;
    snprintf(head, sizeof(head), POST("Content-Length: %d\r\n"), LARGE);
    say(client, head);
    for (int i = 0; i < 40 && !conn->read_paused; i++) {
        turns(1);
        left -= send_some(left);
    }
    later(10 * 60 * 1000);
    release_jobs(&server->loop);
    turns(20);
    CHECK(!conn->read_paused && !hear(client));
    later((uint64_t)settings.body_timeout_ms + 1000);
    CHECK(hear(client) && begins(got, "HTTP/1.1 408 "));
    finish();
}

/* Bytes that were read ahead count like bytes from the socket: the pause continues. */
static void test_a_pause_for_a_body_that_was_read_ahead(void) {
    static char ahead[RD_BODY_QUEUE_BYTES + 4 * PIECE];
    settings.max_pipeline_bytes = 2 * sizeof(ahead);
    begin(hold);
    rd_conn *conn = client_conn;
    say(client, GET("/first"));
    turns(2);
    say(client, POST("Transfer-Encoding: chunked\r\n"));
    for (size_t at = 0; at < sizeof(ahead); at += PIECE) {
        say(client, "10000\r\n");
        CHECK_INT(send_some(PIECE), PIECE);
        turns(2);
        say(client, "\r\n");
        turns(2);
    }
    app = answer_size;
    rd_loop_lock(&server->loop);
    answer_path(held);
    rd_loop_unlock(&server->loop);
    let_go();
    turns(2);
    CHECK(!hear(client) && ends(got, "\r\n\r\n/first"));
    CHECK(rd_http1_of(conn)->disk_behind && conn->read_paused);
    later(10 * 60 * 1000);
    say(client, "1\r\nx\r\n0\r\n\r\n");
    turns(2);
    CHECK(!hear(client) && got_len == 0);
    release_jobs(&server->loop);
    turns(20);
    snprintf(ahead, sizeof(ahead), "\r\n\r\n%zu bytes", sizeof(ahead) + 1);
    CHECK_SAYS(!hear(client) && ends(got, ahead), "%s", got);
    finish();
}

static void test_a_client_that_leaves(void) {
    begin(answer_size);
    answers = 0;
    say(client, POST("Content-Length: 40\r\n") BODY);
    turns(2);
    CHECK_INT(server->conns.count, 1);
    rd_loop_lock(&server->loop);
    rd_conn_reset(client_conn);
    rd_loop_unlock(&server->loop);
    turns(2);
    CHECK_INT(server->conns.count, 0);
    CHECK_INT(server->http.requests.live, 0);
    check_bystander();
    release_jobs(&server->loop);
    turns(4);
    CHECK_INT(answers, 1);
    finish();
}

/* With Expect the answer may end before the body is stored. The connection continues. */
static void test_an_answer_before_the_last_write(void) {
    begin(hold);
    say(client, POST("Content-Length: 40\r\nExpect: 100-continue\r\n"));
    turns(2);
    rd_loop_lock(&server->loop);
    held->responder->want_body(held);
    rd_loop_unlock(&server->loop);
    say(client, BODY POST("Content-Length: 0\r\n"));
    turns(2);
    CHECK(held != NULL && !held->body_complete);
    app = answer_size;
    rd_loop_lock(&server->loop);
    answer_path(held);
    rd_request_unref(held);
    held = NULL;
    rd_loop_unlock(&server->loop);
    turns(3);
    CHECK(!hear(client) && strstr(got, "\r\n\r\n/pHTTP/1.1 200 OK\r\n") != NULL);
    CHECK(ends(got, "\r\n\r\n0 bytes"));
    release_jobs(&server->loop);
    finish();
}

/* The failure is found when the whole body has come. It is still refused before the application
 * gets it. */
static void test_a_disk_that_is_full_in_the_end(void) {
    begin(answer_size);
    answers = 0;
    fill_disk(20);
    say(client, POST("Content-Length: 40\r\n") BODY POST("Content-Length: 0\r\n"));
    turns(3);
    CHECK(!hear(client) && got_len == 0);
    release_jobs(&server->loop);
    turns(4);
    CHECK(hear(client) && begins(got, "HTTP/1.1 507 "));
    CHECK_INT(answers, 0);
    empty_disk();
    finish();
}

static void test_a_stop_meanwhile(void) {
    begin(answer_size);
    say(client, POST("Content-Length: 40\r\n") BODY);
    turns(2);
    rd_server_stop(server, RD_STOP_NOW);
    turns(2);
    CHECK(rd_server_is_done(server));
    CHECK_INT(server->conns.count, 0);
    release_jobs(&server->loop);
    finish();
}

static void test_all(void) {
    test_the_request_waits_for_its_last_write();
    test_a_client_that_is_faster_than_the_disk();
    test_deadlines_go_on_behind_a_pause();
    test_a_pause_for_a_body_that_was_read_ahead();
    test_a_client_that_leaves();
    test_an_answer_before_the_last_write();
    test_a_disk_that_is_full_in_the_end();
    test_a_stop_meanwhile();
}

int main(void) {
    return test_both_pollers(test_all);
}

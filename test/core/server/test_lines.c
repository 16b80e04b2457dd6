/* SPDX-License-Identifier: MIT
 *
 * Lines (request/line.c, server/queue.c): connections that one descriptor carries share its turns
 * and its seats, and are otherwise connections like all others. By the protocol of numbered.h, on
 * both pollers.
 */
#include "serving.h"

#include <stdlib.h>

#include "client_frames.h"
#include "folder.h"
#include "endpoint/websocket.h"
#include "numbered.h"
#include "server/files.h"

#define NUMBERS 64

/* ---- a client with numbers ---- */

typedef struct heard {
    char text[4 * NUMBERED_WINDOW]; /* a string: the end of the text */
    size_t len;                     /* of the text */
    size_t total;
    char end; /* kind of the message that ended it */
} heard;

static heard numbers[NUMBERS];
static char raw[1 << 20]; /* the beginning of a message */
static size_t raw_len;

static rd_conn *carrier;

static int join_carrier(void) {
    const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    int pair[2];
    memset(numbers, 0, sizeof(numbers));
    raw_len = 0;
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    rd_loop_lock(&server->loop);
    carrier = rd_conn_open(&server->conns, pair[0], &rd_transport_tcp, &numbered_protocol, &nobody);
    rd_conn_read_now(carrier);
    rd_loop_unlock(&server->loop);
    return pair[1];
}

static void send_message(int fd, char kind, unsigned number, const char *bytes, size_t len) {
    char message[NUMBERED_HEADER + 1024];
    CHECK(len <= 1024);
    numbered_put_header(message, kind, number, len);
    if (len > 0) memcpy(message + NUMBERED_HEADER, bytes, len);
    CHECK_INT(send(fd, message, NUMBERED_HEADER + len, MSG_NOSIGNAL), NUMBERED_HEADER + len);
}

static void say_to(int fd, unsigned number, const char *text) {
    send_message(fd, 'd', number, text, strlen(text));
}

static void open_window(int fd, unsigned number, uint32_t more) {
    const char bytes[] = {(char)(more >> 24), (char)(more >> 16), (char)(more >> 8), (char)more};
    send_message(fd, 'w', number, bytes, sizeof(bytes));
}

static void take_message(char kind, unsigned number, const char *bytes, size_t len) {
    if (!CHECK(number < NUMBERS)) return;
    heard *to = &numbers[number];
    if (kind != 'd') {
        to->end = kind;
    } else {
        if (to->len + len >= sizeof(to->text)) to->len = 0;
        to->total += len;
        memcpy(to->text + to->len, bytes, len);
        to->text[to->len += len] = '\0';
    }
}

/* Sorts the bytes that came by their numbers; returns whether the end has come. */
static bool hear_numbers(int fd) {
    ssize_t part = 1;
    while (part > 0) {
        part = recv(fd, raw + raw_len, sizeof(raw) - raw_len, 0);
        if (part > 0) raw_len += (size_t)part;
    }
    size_t at = 0;
    while (raw_len - at >= NUMBERED_HEADER) {
        const size_t len = numbered_u16(raw + at + 3);
        if (raw_len - at < NUMBERED_HEADER + len) break;
        take_message(raw[at], numbered_u16(raw + at + 1), raw + at + NUMBERED_HEADER, len);
        at += NUMBERED_HEADER + len;
    }
    memmove(raw, raw + at, raw_len -= at);
    return part == 0;
}

static bool ask_numbers(int fd) {
    turns(4);
    return hear_numbers(fd);
}

static void say_path(int fd, unsigned number) {
    char text[64];
    snprintf(text, sizeof(text), "GET /%u HTTP/1.1\r\nHost: a\r\n\r\n", number);
    say_to(fd, number, text);
}

static unsigned count_answered(void) {
    unsigned count = 0;
    for (unsigned i = 0; i < NUMBERS; i++) count += begins(numbers[i].text, "HTTP/1.1 200 OK\r\n");
    return count;
}

/* ---- an application with several threads ---- */

static rd_request *inside[NUMBERS];
static unsigned inside_count;

/* Takes all requests that the queue gives, like as many threads that do not return. */
static void take_all(void) {
    rd_loop_lock(&server->loop);
    for (rd_request *request; (request = rd_server_next_request(server, NULL)) != NULL;) {
        inside[inside_count++] = request;
    }
    rd_loop_unlock(&server->loop);
}

static void turn_and_take_all(void) {
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    rd_loop_unlock(&server->loop);
    take_all();
}

static unsigned number_of(const rd_request *request) {
    const rd_slice path = rd_request_slice(request, request->head.path);
    return (unsigned)strtoul(path.ptr + 1, NULL, 10);
}

/* Answers the call at `place` in the order of the running calls. */
static void end_call(unsigned place) {
    rd_request *request = inside[place];
    rd_loop_lock(&server->loop);
    if (request->conn != NULL) answer_path(request);
    rd_server_let_go(server, request);
    rd_loop_unlock(&server->loop);
    inside_count--;
    memmove(inside + place, inside + place + 1, (inside_count - place) * sizeof(inside[0]));
}

static void end_all_calls(void) {
    while (inside_count > 0) end_call(0);
}

/* ---- several at once ---- */

static void test_answers_in_any_order(void) {
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 1; i <= 4; i++) say_path(fd, i);
    turn_and_take_all();
    CHECK_INT(inside_count, 4);
    CHECK_INT(number_of(inside[3]), 4);
    end_call(3);
    turn();
    hear_numbers(fd);
    CHECK(ends(numbers[4].text, "\r\n\r\n/4"));
    CHECK_INT(count_answered(), 1);
    end_call(1);
    turn();
    hear_numbers(fd);
    CHECK(ends(numbers[2].text, "\r\n\r\n/2"));
    CHECK_INT(count_answered(), 2);
    end_all_calls();
    ask_numbers(fd);
    CHECK_INT(count_answered(), 4);
    close(fd);
    end();
}

static void test_each_number_goes_on(void) {
    start(answer_path);
    int fd = join_carrier();
    say_to(fd, 1, GET("/a") GET("/b"));
    say_to(fd, 2, GET("/c") "GET /half HTTP/1.1\r\n");
    ask_numbers(fd);
    CHECK(strstr(numbers[1].text, "/a") != NULL && ends(numbers[1].text, "/b"));
    CHECK(ends(numbers[2].text, "/c"));
    say_to(fd, 2, "Host: a\r\n\r\n");
    say_to(fd, 1, LAST("/d"));
    ask_numbers(fd);
    CHECK(ends(numbers[2].text, "/half") && numbers[2].end == '\0');
    CHECK(ends(numbers[1].text, "/d") && numbers[1].end == 'e');
    close(fd);
    end();
}

/* More bytes than are read ahead: reading pauses, and continues with the bytes that the carrier
 * kept. */
static void test_a_number_that_pipelines(void) {
    settings.max_pipeline_bytes = 1024;
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 0; i < 200; i++) say_to(fd, 1, GET("/a"));
    say_to(fd, 1, GET("/last"));
    for (int i = 0; i < 50; i++) ask_numbers(fd);
    CHECK_INT(server->counts.requests, 201);
    CHECK(ends(numbers[1].text, "/last"));
    close(fd);
    end();
}

static void test_what_is_carried_is_no_connection(void) {
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 1; i <= 20; i++) say_path(fd, i);
    ask_numbers(fd);
    CHECK_INT(count_answered(), 20);
    CHECK_INT(server->conns.count, 1);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held, 1);
    CHECK_INT(server->counts.requests, 20);
    close(fd);
    end();
}

/* ---- rounds and seats ---- */

static char order[256];
static unsigned order_len;

/* 'c': a request of the carrier, 'p': one of a plain connection. */
static void note_order(rd_request *request) {
    if (order_len < sizeof(order)) {
        order[order_len++] = rd_conn_carrier(request->conn) != NULL ? 'c' : 'p';
    }
    answer_path(request);
}

static unsigned count_of_carrier(unsigned from, unsigned to) {
    unsigned count = 0;
    for (unsigned i = from; i < to; i++) count += order[i] == 'c';
    return count;
}

/* In every round each of the ten plain clients gets one request, and the carrier gets one for each
 * of its six seats, wherever batches and turns end. */
static void check_shares(int64_t batch_requests) {
    int plain[10];
    settings.quantum_us = 0;
    settings.batch_requests = batch_requests;
    start(note_order);
    order_len = 0;
    int fd = join_carrier();
    for (unsigned i = 0; i < 48; i++) say_path(fd, i);
    for (unsigned i = 0; i < 10; i++) {
        plain[i] = join();
        for (unsigned k = 0; k < 8; k++) say(plain[i], GET("/p"));
    }
    turns(200);
    CHECK_INT(order_len, 48 + 80);
    for (unsigned round = 0; round < 8; round++) {
        CHECK_INT(count_of_carrier(16 * round, 16 * round + 16), 6);
    }
    for (unsigned i = 0; i < 10; i++) close(plain[i]);
    close(fd);
    end();
}

static void test_shares_of_a_round(void) {
    static const int64_t batches[] = {32, 1, 5, 16};
    for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) check_shares(batches[i]);
}

/* If nobody else asks, a round lasts at least a quantum, as it does for a client that pipelines. */
static void test_cheap_requests_share_a_quantum(void) {
    settings.quantum_us = 1000000;
    settings.batch_us = 1000000;
    start(note_order);
    order_len = 0;
    int fd = join_carrier(), plain = join();
    for (unsigned i = 0; i < 20; i++) say_path(fd, i);
    turns(3);
    CHECK_INT(order_len, 20);
    CHECK(!server->queue.is_contested);
    close(fd);
    close(plain);
    end();
}

/* Ten clients with one request at a time send the next one when they have the answer, so they never
 * wait when the batch ends. Beside them the carrier gets a request for each seat in a batch, and
 * the one that ends it. */
static void test_clients_that_ask_again(void) {
    int plain[10];
    settings.quantum_us = 1000000;
    settings.batch_us = 1000000;
    start(note_order);
    int fd = join_carrier();
    for (unsigned i = 0; i < 10; i++) plain[i] = join();
    for (unsigned i = 0; i < 120; i++) say_path(fd, i);
    for (unsigned turn = 0; turn < 8; turn++) {
        for (unsigned i = 0; i < 10; i++) say(plain[i], GET("/p"));
        order_len = 0;
        for (unsigned more = 0; more < 20 && order_len - count_of_carrier(0, order_len) < 10;
             more++)
            turns(1);
        CHECK_INT(order_len - count_of_carrier(0, order_len), 10);
        CHECK(count_of_carrier(0, order_len) >= 6);
        CHECK(count_of_carrier(0, order_len) <= 14);
    }
    for (unsigned i = 0; i < 10; i++) close(plain[i]);
    close(fd);
    end();
}

static void test_seats(void) {
    start(answer_path);
    int fd = join_carrier(), plain = join();
    for (unsigned i = 0; i < 50; i++) say_path(fd, i);
    turn_and_take_all();
    CHECK_INT(inside_count, 6);
    CHECK_INT(server->queue.len, 44);
    CHECK(!rd_queue_is_ready(&server->queue)); /* no thread wakes up for them */
    say(plain, GET("/p"));
    turn_and_take_all();
    CHECK_INT(inside_count, 7);
    CHECK(rd_conn_carrier(inside[6]->conn) == NULL);
    end_call(6);
    end_call(2);
    CHECK(rd_queue_is_ready(&server->queue));
    take_all();
    CHECK_INT(inside_count, 6);
    CHECK_INT(number_of(inside[5]), 6);
    for (int i = 0; i < 50; i++) {
        end_all_calls();
        turn_and_take_all();
    }
    ask_numbers(fd);
    CHECK_INT(count_answered(), 50);
    CHECK_INT(server->queue.len, 0);
    close(fd);
    close(plain);
    end();
}

static void set_threads(uint64_t most, uint64_t busy) {
    server->score->max_threads = most;
    server->score->busy = busy;
}

static bool has_requests(void) {
    rd_loop_lock(&server->loop);
    const bool has = rd_queue_has_requests(server);
    rd_loop_unlock(&server->loop);
    return has;
}

/* Nobody else waits: the line goes on while a fourth of the threads stays free. */
static void test_beyond_the_seats(void) {
    start(answer_path);
    int fd = join_carrier(), plain = join();
    for (unsigned i = 0; i < 50; i++) say_path(fd, i);
    turn_and_take_all();
    CHECK_INT(inside_count, 6);
    set_threads(16, 6);
    CHECK(has_requests());
    for (uint64_t busy = 6; busy < 12; busy++) {
        set_threads(16, busy);
        rd_loop_lock(&server->loop);
        rd_request *request = rd_server_next_request(server, NULL);
        rd_loop_unlock(&server->loop);
        if (CHECK(request != NULL)) inside[inside_count++] = request;
    }
    set_threads(16, 12);
    CHECK(!has_requests());
    take_all();
    CHECK_INT(inside_count, 12);
    CHECK_INT(number_of(inside[11]), 11);
    say(plain, GET("/p"));
    turn_and_take_all(); /* who comes next finds a thread */
    CHECK_INT(inside_count, 13);
    end_call(12);
    end_call(11); /* a seat beyond the others is no free seat */
    set_threads(16, 12);
    CHECK(!has_requests());
    set_threads(0, 0);
    for (int i = 0; i < 50; i++) {
        end_all_calls();
        turn_and_take_all();
    }
    ask_numbers(fd);
    CHECK_INT(count_answered(), 50);
    close(fd);
    close(plain);
    end();
}

/* A call that waits for its client holds up no other one of its connection. */
static void test_calls_without_a_place_have_no_seat(void) {
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 0; i < 20; i++) say_path(fd, i);
    turn_and_take_all();
    CHECK_INT(inside_count, 6);
    rd_loop_lock(&server->loop);
    for (unsigned i = 0; i < 6; i++) rd_queue_step_out(server, inside[i]);
    rd_queue_step_out(server, inside[0]); /* once is enough */
    rd_loop_unlock(&server->loop);
    take_all();
    CHECK_INT(inside_count, 12);
    rd_loop_lock(&server->loop);
    rd_queue_step_in(server, inside[0]);
    rd_queue_step_in(server, inside[0]);
    rd_loop_unlock(&server->loop);
    end_call(11);
    take_all(); /* the one that came back has the seat */
    CHECK_INT(inside_count, 11);
    send_message(fd, 'e', 1, NULL, 0); /* a client that goes while its call is out */
    turn();
    for (int i = 0; i < 20; i++) {
        end_all_calls();
        turn_and_take_all();
    }
    ask_numbers(fd);
    CHECK_INT(server->queue.len, 0);
    CHECK(count_answered() >= 19);
    close(fd);
    end();
}

/* With fibers a call that lasts does not keep its seat. */
static void test_patience(void) {
    settings.fibers = 100;
    settings.seat_patience_ms = 100;
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 0; i < 10; i++) say_path(fd, i);
    turn_and_take_all();
    CHECK_INT(inside_count, 6);
    turn_and_take_all();
    CHECK_INT(inside_count, 6);
    CHECK(rd_queue_due_ns(server) != UINT64_MAX);
    for (unsigned i = 0; i < inside_count; i++) inside[i]->times.taken_ns -= UINT64_C(101000000);
    turn_and_take_all();
    CHECK_INT(inside_count, 10);
    end_all_calls();
    ask_numbers(fd);
    CHECK_INT(count_answered(), 10);
    close(fd);
    end();
}

/* Within a line the most urgent requests go first, and equal ones in the order in which they came.
 */
static void test_urgency(void) {
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 0; i < 12; i++) say_path(fd, i);
    turn_and_take_all();
    CHECK_INT(inside_count, 6);
    rd_loop_lock(&server->loop);
    rd_line *line = inside[0]->queued.line;
    rd_request *last = RD_CONTAINER(line->waiting.prev, rd_request, in_queue);
    rd_request *first = RD_CONTAINER(line->waiting.next, rd_request, in_queue);
    rd_request_set_urgency(last, 0);
    rd_request_set_urgency(first, 5);
    rd_loop_unlock(&server->loop);
    end_all_calls();
    take_all();
    CHECK_INT(inside_count, 6);
    const unsigned expected[] = {11, 7, 8, 9, 10, 6};
    for (unsigned i = 0; i < 6; i++) CHECK_INT(number_of(inside[i]), expected[i]);
    last->queued.urgency = first->queued.urgency = RD_URGENCY_DEFAULT;
    end_all_calls();
    close(fd);
    end();
}

/* A seat is only for an answer: a call that continues after its answer needs none. */
static void test_an_answer_frees_the_seat(void) {
    numbered_seats = 1;
    start(answer_path);
    int fd = join_carrier();
    say_path(fd, 1);
    say_path(fd, 2);
    turn_and_take_all();
    CHECK_INT(inside_count, 1);
    rd_loop_lock(&server->loop);
    answer_path(inside[0]);
    rd_loop_unlock(&server->loop);
    take_all();
    CHECK_INT(inside_count, 2);
    CHECK_INT(number_of(inside[1]), 2);
    end_all_calls();
    numbered_seats = 6;
    close(fd);
    end();
}

/* ---- clients that go ---- */

static void test_a_cancelled_request_leaves_the_queue_at_once(void) {
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 0; i < 20; i++) say_path(fd, i);
    turn_and_take_all();
    CHECK_INT(server->queue.len, 14);
    const uint32_t live = server->http.requests.live;
    for (unsigned i = 8; i < 16; i++) send_message(fd, 'e', i, NULL, 0);
    turn_and_take_all();
    CHECK_INT(server->queue.len, 6);
    CHECK_INT(server->http.requests.live, live - 8);
    CHECK_INT(inside_count, 6);
    for (int i = 0; i < 20; i++) {
        end_all_calls();
        turn_and_take_all();
    }
    CHECK_INT(server->counts.requests, 12);
    CHECK_INT(server->counts.dropped, 0);
    ask_numbers(fd);
    CHECK_INT(count_answered(), 12);
    close(fd);
    end();
}

/* Whether rd_server_unlock() has ended a poll of the watch thread. */
static bool unlock_beside_watch(void) {
    server->lead.watch_owns = server->lead.watch_waits = true;
    rd_server_unlock(server);
    struct pollfd woken = {.fd = server->loop.wakeup.fd, .events = POLLIN};
    const bool is_woken = poll(&woken, 1, 0) == 1;
    server->lead.watch_owns = server->lead.watch_waits = false;
    return is_woken;
}

/* The leader is away: the watch thread need not call a thread for a request without a seat, but for
 * the seat that becomes free. */
static void test_a_free_seat_ends_the_poll_of_the_watch_thread(void) {
    numbered_seats = 1;
    start(answer_path);
    int fd = join_carrier();
    say_path(fd, 1);
    say_path(fd, 2);
    turn_and_take_all();
    turn_and_take_all();
    CHECK_INT(inside_count, 1);
    rd_server_lock(server);
    CHECK_INT(unlock_beside_watch(), settings.poll_only);
    rd_server_lock(server);
    rd_server_let_go(server, inside[--inside_count]);
    CHECK(unlock_beside_watch());
    turn_and_take_all();
    rd_server_lock(server);
    rd_server_let_go(server, inside[--inside_count]);
    rd_server_unlock(server);
    numbered_seats = 6;
    close(fd);
    end();
}

/* Otherwise a client could have any number of running calls. */
static void test_a_cancelled_call_keeps_its_seat(void) {
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 0; i < 12; i++) say_path(fd, i);
    turn_and_take_all();
    for (unsigned i = 0; i < 6; i++) send_message(fd, 'e', i, NULL, 0);
    turn_and_take_all();
    CHECK_INT(inside_count, 6);
    CHECK(inside[0]->gone && inside[0]->conn == NULL);
    end_call(0);
    take_all();
    CHECK_INT(inside_count, 6);
    CHECK_INT(number_of(inside[5]), 6);
    for (int i = 0; i < 12; i++) {
        end_all_calls();
        turn_and_take_all();
    }
    ask_numbers(fd);
    CHECK_INT(count_answered(), 6);
    close(fd);
    end();
}

/* The same for calls that take too long. */
static void test_a_call_that_takes_too_long_keeps_its_seat(void) {
    const int64_t usual = settings.request_timeout_ms;
    numbered_seats = 1;
    settings.request_timeout_ms = 1000;
    start(answer_path);
    int fd = join_carrier();
    say_path(fd, 1);
    turn_and_take_all();
    pass_ms(1100);
    turn_and_take_all();
    turn_and_take_all();
    hear_numbers(fd);
    CHECK(begins(numbers[1].text, "HTTP/1.1 503 "));
    say_path(fd, 2);
    turn_and_take_all();
    CHECK_INT(inside_count, 1);
    end_call(0);
    take_all();
    CHECK_INT(inside_count, 1);
    end_all_calls();
    ask_numbers(fd);
    CHECK(ends(numbers[2].text, "/2"));
    numbered_seats = 6;
    settings.request_timeout_ms = usual;
    close(fd);
    end();
}

static void test_a_plain_client_that_goes_leaves_the_queue(void) {
    start(answer_path);
    int one = join(), two = join();
    say(one, GET("/a"));
    say(two, GET("/b"));
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    CHECK_INT(server->queue.len, 2);
    rd_conn_close(joined);
    CHECK_INT(server->queue.len, 1);
    rd_loop_unlock(&server->loop);
    turns(2);
    CHECK_INT(server->counts.requests, 1);
    close(one);
    close(two);
    end();
}

static void test_a_carrier_that_ends_in_the_middle(void) {
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 0; i < 20; i++) say_path(fd, i);
    turn_and_take_all();
    rd_loop_lock(&server->loop);
    rd_conn_close(carrier);
    CHECK_INT(server->queue.len, 0);
    rd_loop_unlock(&server->loop);
    turn();
    CHECK(rd_list_is_empty(&server->conns.carried));
    CHECK_INT(inside_count, 6);
    for (unsigned i = 0; i < 6; i++) CHECK(inside[i]->gone && inside[i]->conn == NULL);
    end_all_calls();
    CHECK_INT(server->http.requests.live, 0);
    CHECK(hear_numbers(fd));
    close(fd);
    end();
}

static void test_a_server_that_ends_with_lines(void) {
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 0; i < 20; i++) say_path(fd, i);
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    CHECK_INT(server->queue.len, 20);
    rd_loop_unlock(&server->loop);
    rd_server_free(server);
    close(fd);
}

static void test_a_drain_waits_for_what_is_carried(void) {
    start(answer_path);
    int fd = join_carrier();
    say_path(fd, 1);
    say_to(fd, 2, "GET /2 HTTP/1.1\r\n");
    turn_and_take_all();
    rd_server_stop(server, RD_STOP_DRAIN);
    turn_and_take_all();
    CHECK(!rd_server_is_done(server));
    end_all_calls();
    say_to(fd, 2, "Host: a\r\n\r\n");
    ask_numbers(fd);
    CHECK(strstr(numbers[1].text, "connection: close\r\n") != NULL && ends(numbers[1].text, "/1"));
    CHECK(strstr(numbers[2].text, "connection: close\r\n") != NULL && ends(numbers[2].text, "/2"));
    turns(3);
    CHECK(hear_numbers(fd));
    CHECK(rd_server_is_done(server));
    close(fd);
    end();
}

/* ---- limits of the queue ---- */

static void test_max_queue_counts_requests(void) {
    settings.max_queue = 5;
    start(answer_path);
    int fd = join_carrier();
    for (unsigned i = 0; i < 8; i++) say_path(fd, i);
    turn_and_take_all();
    turn_and_take_all();
    hear_numbers(fd);
    CHECK_INT(server->counts.dropped, 3);
    for (unsigned i = 5; i < 8; i++) CHECK(begins(numbers[i].text, "HTTP/1.1 503 "));
    end_all_calls();
    ask_numbers(fd);
    CHECK_INT(count_answered(), 5);
    close(fd);
    end();
}

/* A carrier counts as so many requests as it has seats. So it cannot fill the queue for the others;
 * its own line has the same limit. */
static void test_a_carrier_does_not_fill_the_queue(void) {
    settings.max_queue = 20;
    start(answer_path);
    int fd = join_carrier(), plain = join();
    for (unsigned i = 0; i < 30; i++) say_path(fd, i);
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    CHECK_INT(server->counts.dropped, 10);
    CHECK_INT(atomic_load(&server->score->queue), 6);
    rd_loop_unlock(&server->loop);
    say(plain, GET("/p"));
    turn_and_take_all();
    CHECK_INT(server->counts.dropped, 10);
    CHECK_INT(inside_count, 7);
    CHECK_INT(server->queue.len, 14);
    for (int i = 0; i < 12; i++) {
        end_all_calls();
        turn_and_take_all();
    }
    ask_numbers(fd);
    CHECK_INT(count_answered(), 20);
    CHECK(!hear(plain) && begins(got, "HTTP/1.1 200 OK"));
    CHECK_INT(atomic_load(&server->score->queue), 0);
    close(fd);
    close(plain);
    end();
}

/* Requests that wait for a seat count as waiting, too. */
static void test_queue_timeout_finds_the_oldest_of_all_lines(void) {
    settings.queue_timeout_ms = 1000;
    start(answer_path);
    int fd = join_carrier(), plain = join();
    for (unsigned i = 0; i < 8; i++) say_path(fd, i);
    turn_and_take_all();
    CHECK_INT(server->queue.len, 2);
    pass_ms(600);
    say(plain, GET("/p"));
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    CHECK_INT(server->queue.len, 3);
    pass_ms(500);
    rd_server_turn(server, wait_in_poll, true);
    rd_server_turn(server, wait_in_poll, true);
    CHECK_INT(server->queue.len, 1);
    rd_loop_unlock(&server->loop);
    hear_numbers(fd);
    CHECK(begins(numbers[6].text, "HTTP/1.1 503 ") && begins(numbers[7].text, "HTTP/1.1 503 "));
    CHECK_INT(server->counts.dropped, 2);
    end_all_calls();
    turns(3);
    CHECK(!hear(plain) && begins(got, "HTTP/1.1 200 OK"));
    close(fd);
    close(plain);
    end();
}

/* ---- each number has its own limits ---- */

static char page[300000]; /* more than output_high_bytes */

static void answer_page(rd_request *request) {
    if (number_of(request) == 1) {
        answer_with(request, page, sizeof(page));
    } else {
        answer_path(request);
    }
}

/* Its answer waits with it, and so does its next request. No other number waits. */
static void test_a_slow_reader_holds_up_nobody(void) {
    memset(page, 'x', sizeof(page));
    start(answer_page);
    int fd = join_carrier();
    say_to(fd, 1, GET("/1") GET("/100"));
    ask_numbers(fd);
    CHECK_INT(numbers[1].total, NUMBERED_WINDOW);
    const rd_conn *slow = numbered_find(carrier, 1)->conn;
    CHECK(slow->above_high && rd_conn_write_deadline(slow) != UINT64_MAX);
    for (unsigned i = 2; i < 20; i++) say_path(fd, i);
    ask_numbers(fd);
    CHECK_INT(count_answered(), 19);
    CHECK_INT(carrier->out.bytes, 0);
    open_window(fd, 1, 1000);
    ask_numbers(fd);
    CHECK_INT(numbers[1].total, NUMBERED_WINDOW + 1000);
    CHECK(slow->above_high);
    for (int i = 0; i < 40; i++) {
        open_window(fd, 1, 10000);
        ask_numbers(fd);
    }
    CHECK(ends(numbers[1].text, "/100"));
    CHECK(!slow->above_high && rd_conn_write_deadline(slow) == UINT64_MAX);
    close(fd);
    end();
}

/* The carrier's own socket is full: the output of the numbers waits with it, then continues. */
static void test_a_slow_carrier(void) {
    start(answer_page);
    int fd = join_carrier();
    say_path(fd, 1);
    open_window(fd, 1, 1000000);
    const int small = 4096;
    setsockopt(carrier->source.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    turns(20);
    CHECK(carrier->out.bytes > 0);
    CHECK(carrier->out.bytes <= NUMBERED_OUT_MAX + NUMBERED_PART + NUMBERED_HEADER);
    CHECK(numbered_find(carrier, 1)->conn->out.bytes > 100000);
    for (int i = 0; i < 500; i++) {
        hear_numbers(fd);
        turn();
    }
    CHECK(numbers[1].total > sizeof(page));
    CHECK_INT(carrier->out.bytes, 0);
    close(fd);
    end();
}

static void test_deadlines_of_a_number(void) {
    start(answer_page);
    int fd = join_carrier();
    say_path(fd, 1);
    say_to(fd, 2, "GET /2 HTTP/1.1\r\n");
    say_path(fd, 3);
    ask_numbers(fd);
    later((uint64_t)settings.head_timeout_ms + 1);
    ask_numbers(fd);
    CHECK(begins(numbers[2].text, "HTTP/1.1 408 ") && numbers[2].end == 'e');
    CHECK(numbers[3].end == '\0' || settings.keep_alive_timeout_ms <= settings.head_timeout_ms);
    for (int64_t ms = 0; ms <= settings.write_timeout_ms; ms += 1000) later(1000);
    ask_numbers(fd);
    CHECK(numbers[1].end == 'r'); /* its client reads nothing */
    CHECK_INT(server->conns.write_timeouts, 1);
    say_path(fd, 4);
    ask_numbers(fd);
    CHECK(ends(numbers[4].text, "/4"));
    close(fd);
    end();
}

/* ---- the static folder ---- */

#define FILE_AND(end) "GET /a.txt HTTP/1.1\r\nHost: a\r\n" end "\r\n"

static void serve_folder(void) {
    start(answer_path);
    CHECK_INT(rd_files_open(server, folder, false), 0);
}

static unsigned count_files(void) {
    unsigned count = 0;
    for (unsigned i = 0; i < NUMBERS; i++) count += ends(numbers[i].text, "\r\n\r\nhello");
    return count;
}

static void test_files_for_numbers(void) {
    make_text("a.txt", "hello");
    serve_folder();
    int fd = join_carrier();
    for (unsigned i = 0; i < 30; i++) say_to(fd, i, FILE_AND(""));
    turns(10);
    hear_numbers(fd);
    CHECK_INT(count_files(), 30);
    say_to(fd, 1, FILE_AND("") FILE_AND("Connection: close\r\n"));
    ask_numbers(fd);
    CHECK(ends(numbers[1].text, "\r\n\r\nhello") && numbers[1].end == 'e');
    close(fd);
    end();
}

/* Turns by hand, because the turn that reads a request answers it. */
static void test_files_of_clients_that_are_gone(void) {
    serve_folder();
    int fd = join_carrier(), plain = join();
    say_to(fd, 1, FILE_AND(""));
    turns(10); /* the file is cached from now on */
    rd_loop_lock(&server->loop);
    for (unsigned i = 2; i < 22; i++) say_to(fd, i, FILE_AND(""));
    say(plain, FILE_AND(""));
    rd_loop_wait(&server->loop, &server->lead.found, 1000);
    rd_loop_process(&server->loop, &server->lead.found);
    rd_lines *lines = numbered_of(carrier)->lines;
    CHECK(!rd_list_is_empty(&lines->files.waiting) && rd_files_wait(server));
    for (unsigned i = 2; i < 22; i += 2) rd_conn_close(numbered_find(carrier, i)->conn);
    unsigned left = 0;
    for (rd_list *node = lines->files.waiting.next; node != &lines->files.waiting; left++) {
        node = node->next;
    }
    CHECK_INT(left, 10);
    rd_conn_close(carrier);
    CHECK(rd_files_wait(server)); /* the request of the plain client */
    rd_conn_close(joined);
    CHECK(!rd_files_wait(server));
    rd_loop_unlock(&server->loop);
    close(fd);
    close(plain);
    end();
}

/* ---- what a number is switched to ---- */

#define UPGRADE                                                                                    \
    "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"               \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static rd_endpoint *endpoint;

static void upgrade(rd_request *request) {
    const rd_upgrade_row *row = rd_upgrade_asked(request);
    if (row == NULL) {
        answer_path(request);
    } else {
        endpoint = row->begin(request, NULL, 0);
    }
}

static void test_a_number_becomes_a_websocket(void) {
    char frame[CLIENT_HEADER_MAX + 5];
    start(upgrade);
    int fd = join_carrier();
    endpoint = NULL;
    say_to(fd, 1, UPGRADE);
    say_path(fd, 2);
    ask_numbers(fd);
    CHECK(begins(numbers[1].text, "HTTP/1.1 101 ") && ends(numbers[2].text, "/2"));
    CHECK(endpoint != NULL && endpoint->conn == numbered_find(carrier, 1)->conn);
    size_t len = client_frame(frame, FIN | PING, 0x01020304, "hello", 5, 5);
    numbers[1].len = 0;
    send_message(fd, 'd', 1, frame, len);
    ask_numbers(fd);
    CHECK_BYTES(numbers[1].text, numbers[1].len, "\x8a\x05hello");
    rd_loop_lock(&server->loop);
    numbers[1].len = 0;
    rd_endpoint_ops_of(endpoint)->write(endpoint, "news", 4, true);
    rd_loop_unlock(&server->loop);
    ask_numbers(fd);
    CHECK_BYTES(numbers[1].text, numbers[1].len, "\x81\x04news");
    send_message(fd, 'e', 1, NULL, 0);
    ask_numbers(fd);
    CHECK(endpoint->conn == NULL);
    rd_loop_lock(&server->loop);
    rd_event event = {0};
    while (rd_server_next_event(server, &event, true)) {
    }
    rd_endpoint_unref(endpoint);
    rd_loop_unlock(&server->loop);
    close(fd);
    end();
}

static void test_all(void) {
    test_answers_in_any_order();
    test_each_number_goes_on();
    test_a_number_that_pipelines();
    test_what_is_carried_is_no_connection();
    test_shares_of_a_round();
    test_cheap_requests_share_a_quantum();
    test_clients_that_ask_again();
    test_seats();
    test_beyond_the_seats();
    test_calls_without_a_place_have_no_seat();
    test_patience();
    test_urgency();
    test_an_answer_frees_the_seat();
    test_a_cancelled_request_leaves_the_queue_at_once();
    test_a_free_seat_ends_the_poll_of_the_watch_thread();
    test_a_cancelled_call_keeps_its_seat();
    test_a_call_that_takes_too_long_keeps_its_seat();
    test_a_plain_client_that_goes_leaves_the_queue();
    test_a_carrier_that_ends_in_the_middle();
    test_a_server_that_ends_with_lines();
    test_a_drain_waits_for_what_is_carried();
    test_max_queue_counts_requests();
    test_a_carrier_does_not_fill_the_queue();
    test_queue_timeout_finds_the_oldest_of_all_lines();
    test_a_slow_reader_holds_up_nobody();
    test_a_slow_carrier();
    test_deadlines_of_a_number();
    test_files_for_numbers();
    test_files_of_clients_that_are_gone();
    test_a_number_becomes_a_websocket();
}

int main(void) {
    make_folder();
    return test_both_pollers(test_all);
}

/* SPDX-License-Identifier: MIT
 *
 * A control server as it runs: on its own thread, on the loopback, over a scoreboard; this thread
 * is its client and its process. Tokens, bad input, stalled clients, questions and their answers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "check.h"
#include "control/access.h"
#include "control/control.h"
#include "control/commands.h"
#include "control/verbs.h"

#define PATIENCE_MS 60000

static rd_scoreboard board;
static rd_control *control;
static uint16_t port;
static int process_fd;
static char got[262144];

static void start_with(rd_control_options options) {
    char error[RD_LISTENER_ERROR_MAX];
    rd_listen_options listen = {.backlog = 64, .mode = -1};
    options.board = &board;
    if (options.answer_timeout_ms == 0) options.answer_timeout_ms = PATIENCE_MS;
    CHECK_INT(rd_scoreboard_create(&board, 2), 0);
    control = rd_control_new(&options, &process_fd);
    if (!CHECK(control != NULL)) return;
    rd_listener *listener = rd_alloc_zero(sizeof(*listener));
    CHECK_INT(rd_listen_tcp(listener, "127.0.0.1", 0, &listen, error), 0);
    CHECK(!rd_access_is_public(listener));
    port = listener->port;
    CHECK_INT(rd_control_add_listener(control, listener), 0);
    CHECK_INT(rd_control_start(control), 0);
}

static void start(void) {
    start_with((rd_control_options){.token = "s3cret", .verbs = ~0u});
}

static void finish(void) {
    rd_control_free(control);
    if (process_fd >= 0) close(process_fd);
    rd_scoreboard_close(&board);
}

/* ---- a client ---- */

static int dial(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void say(int fd, const char *bytes) {
    CHECK_INT(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
}

/* Reads until the other side closes, or until `enough` has come. */
static const char *hear(int fd, const char *enough) {
    size_t len = 0;
    got[0] = '\0';
    while (len < sizeof(got) - 1) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (!CHECK_INT(poll(&ready, 1, PATIENCE_MS), 1)) break;
        ssize_t part = recv(fd, got + len, sizeof(got) - 1 - len, 0);
        if (part <= 0) break;
        len += (size_t)part;
        got[len] = '\0';
        if (enough != NULL && strstr(got, enough) != NULL) break;
    }
    return got;
}

/* `fields` contains Host. */
static const char *fetch_for(const char *method, const char *target, const char *fields) {
    char head[1024];
    int fd = dial();
    snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nConnection: close\r\n%s\r\n", method, target,
             fields);
    say(fd, head);
    hear(fd, NULL);
    close(fd);
    return got;
}

static const char *fetch(const char *method, const char *target, const char *fields) {
    char all[512];
    snprintf(all, sizeof(all), "Host: localhost\r\n%s", fields);
    return fetch_for(method, target, all);
}

static int status_of(const char *answer) {
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

static void read_line(char *line, size_t room) {
    size_t len = 0;
    while (len < room - 1 && (len == 0 || line[len - 1] != '\n')) {
        if (recv(process_fd, line + len, 1, 0) != 1) break;
        len++;
    }
    line[len] = '\0';
}

/* ---- pages ---- */

static void test_probes(void) {
    start();
    CHECK_INT(status_of(fetch("GET", "/live", "")), 200);
    CHECK_INT(status_of(fetch("GET", "/ready", "")), 503);
    atomic_store(&board.rows[1].state, RD_SCORE_READY);
    CHECK_INT(status_of(fetch("GET", "/ready", "")), 200);
    CHECK(strstr(got, "\r\n\r\nready: 1 of 1\n") != NULL);
    atomic_store(&board.rows[1].state, RD_SCORE_DRAINING);
    CHECK_INT(status_of(fetch("HEAD", "/ready", "")), 503);
    finish();
}

/* It is alive, and whoever asks whether it is ready sends it no more clients. */
static void test_a_server_that_is_about_to_stop(void) {
    start();
    atomic_store(&board.rows[1].state, RD_SCORE_READY);
    rd_control_leave(control);
    CHECK_INT(status_of(fetch("GET", "/ready", "")), 503);
    CHECK(strstr(got, "\r\n\r\nnot ready: 1 of 1, and the server is about to stop\n") != NULL);
    CHECK_INT(status_of(fetch("GET", "/live", "")), 200);
    finish();
}

/* It also gets the verbs that are refused, for its log. Others are carried out as before. */
static void test_nothing_begins_in_a_server_that_is_about_to_stop(void) {
    char line[64], expected[64];
    start();
    rd_control_leave(control);
    for (int i = 0; i < RD_VERB_COUNT; i++) {
        if (rd_verb_table[i].answers) continue;
        const bool begins = i == RD_VERB_RESTART || i == RD_VERB_PHASED_RESTART ||
                            i == RD_VERB_REFORK || i == RD_VERB_WORKER_COUNT_UP ||
                            i == RD_VERB_WORKER_COUNT_DOWN;
        snprintf(line, sizeof(line), "/%s?token=s3cret", rd_verb_table[i].path);
        snprintf(expected, sizeof(expected), "0 %s\n", rd_verb_table[i].path);
        CHECK_INT(status_of(fetch("POST", line, "")), begins ? 503 : 200);
        CHECK(strstr(got, begins ? "is refused: this server stops" : "ok") != NULL);
        read_line(line, sizeof(line));
        CHECK_STR(line, expected);
    }
    finish();
}

static void test_a_process_whose_application_hangs(void) {
    start();
    rd_score_row *rows = board.rows;
    for (int i = 0; i < 2; i++) {
        atomic_store(&rows[i].state, RD_SCORE_READY);
        atomic_store(&rows[i].busy, 1);
        atomic_store(&rows[i].ruby_turn_ms, rd_clock_ms() - 5000);
    }
    CHECK_INT(status_of(fetch("GET", "/live", "")), 200);
    CHECK_INT(status_of(fetch("GET", "/live?a=b&within=3", "")), 503);
    CHECK_INT(status_of(fetch("GET", "/live?within=60", "")), 200);
    CHECK_INT(status_of(fetch("GET", "/live?within=", "")), 200);
    CHECK_INT(status_of(fetch("GET", "/live?notwithin=3", "")), 200);
    CHECK_INT(status_of(fetch("GET", "/live?within=99999999999999999999999", "")), 200);
    atomic_store(&rows[1].busy, 0); /* idle workers need no turns */
    CHECK_INT(status_of(fetch("GET", "/live?within=3", "")), 200);
    atomic_store(&rows[1].queue, 1);
    CHECK_INT(status_of(fetch("GET", "/live?within=3", "")), 503);
    finish();
}

typedef struct entrance {
    const char *method, *target, *fields;
    int status;
} entrance;

static const entrance entrances[] = {
    {"GET", "/stats", "", 403},
    {"GET", "/stats?token=", "", 403},
    {"GET", "/stats?token=s3cre", "", 403},
    {"GET", "/stats?token=s3crets", "", 403},
    {"GET", "/stats?token=s3cret", "", 200},
    {"GET", "/stats?a=b&token=s3cret;c", "", 200},
    {"GET", "/stats?token=%733cret", "", 200},
    {"GET", "/stats?token=%", "", 403},
    {"GET", "/stats?nottoken=s3cret", "", 403},
    {"GET", "/metrics", "Authorization: Bearer s3cret\r\n", 200},
    {"GET", "/metrics", "Authorization: bearer s3cret\r\n", 200},
    {"GET", "/metrics", "Authorization: Bearer s3creT\r\n", 403},
    {"GET", "/metrics", "Authorization: Basic s3cret\r\n", 403},
    {"GET", "/stop", "", 403},
    {"GET", "/nothing", "", 403}, /* an unauthorised client does not learn which pages exist */
    {"GET", "/nothing?token=s3cret", "", 404},
    {"GET", "/?token=s3cret", "", 404},
    {"GET", "//stats?token=s3cret", "", 404},
    {"DELETE", "/stats?token=s3cret", "", 405},
    {"HEAD", "/stop?token=s3cret", "", 405},
    {"POST", "/live", "Content-Length: 0\r\n", 200},
    {"POST", "/live", "Content-Length: 100000\r\n", 413},
    {"POST", "/stats?token=s3cret", "Content-Length: 4097\r\n", 413},
    {"POST", "/publish", "", 403},
    {"POST", "/publish", "Content-Length: 4097\r\n", 413}, /* a long body only with the token */
    {"POST", "/publish?token=s3cre", "Content-Length: 4097\r\n", 413},
    {"POST", "/publish?token=s3cret", "Content-Length: 1048577\r\n", 413},
    {"POST", "/publish/?token=s3cret", "Content-Length: 4097\r\n", 413},
    {"GET", "/publish?token=s3cret", "", 405},
    {"GET", "/status?token=s3cret", "", 200},
};

static void test_entrances(void) {
    start();
    for (size_t i = 0; i < sizeof(entrances) / sizeof(entrances[0]); i++) {
        const entrance *row = &entrances[i];
        CHECK_SAYS(status_of(fetch(row->method, row->target, row->fields)) == row->status,
                   "%s %s %s answered by %s", row->method, row->target, row->fields, got);
    }
    finish();
}

/* Without a token, pages of other sites must not be able to use a browser of this machine to send
 * commands or to read. This also holds for sites whose name resolves to this machine. `fields`
 * contains Host. */
static const entrance open_entrances[] = {
    {"GET", "/stats", "Host: localhost\r\n", 200},
    {"GET", "/stats", "Host: LOCALHOST:8080\r\n", 200},
    {"GET", "/stats", "Host: 127.0.0.1\r\n", 200},
    {"GET", "/stats", "Host: 127.1.2.3:9293\r\n", 200},
    {"GET", "/stats", "Host: [::1]:9293\r\n", 200},
    {"GET", "/stats", "Host: [::ffff:127.0.0.1]\r\n", 200},
    {"GET", "/stats", "Host: localhost\r\nSec-Fetch-Site: none\r\n", 200},
    {"GET", "/stats", "Host: evil.example\r\n", 403},
    {"GET", "/stats", "Host: evil.example:9293\r\n", 403},
    {"GET", "/stats", "Host: localhost.evil.example\r\n", 403},
    {"GET", "/stats", "Host: 127.0.0.1.evil.example\r\n", 403},
    {"GET", "/stats", "Host: 10.0.0.1\r\n", 403},
    {"GET", "/stats", "Host: 0.0.0.0\r\n", 403},
    {"GET", "/stats", "Host: [::2]\r\n", 403},
    {"GET", "/stats", "Host: 2130706433\r\n", 403},
    {"GET", "http://evil.example/stats", "Host: localhost\r\n", 403}, /* this one counts */
    {"GET", "http://localhost/stats", "Host: evil.example\r\n", 200},
    {"GET", "/metrics", "Host: evil.example\r\n", 403},
    {"POST", "/gc-stats", "Host: evil.example\r\n", 403},
    {"GET", "/nothing", "Host: evil.example\r\n", 403},
    {"GET", "/ready", "Host: evil.example\r\n", 503}, /* a health probe may */
    {"GET", "/stop", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403},
    {"POST", "/stop", "Host: localhost\r\nOrigin: http://a\r\n", 403},
    {"POST", "/stop", "Host: localhost\r\nReferer: http://a/\r\n", 403},
    {"GET", "/stop", "Host: localhost\r\n", 405},
    {"HEAD", "/stop", "Host: localhost\r\n", 405},
    {"PUT", "/stop", "Host: localhost\r\n", 405},
    {"DELETE", "/stats", "Host: localhost\r\n", 405},
    {"POST", "/stop", "Host: localhost\r\n", 200},
    {"POST", "/stop", "Host: 127.0.0.1\r\nContent-Length: 0\r\n", 200},
    {"POST", "/nothing", "Host: localhost\r\n", 404},
};

static void test_without_a_token(void) {
    start_with((rd_control_options){.verbs = ~0u});
    for (size_t i = 0; i < sizeof(open_entrances) / sizeof(open_entrances[0]); i++) {
        const entrance *row = &open_entrances[i];
        CHECK_SAYS(status_of(fetch_for(row->method, row->target, row->fields)) == row->status,
                   "%s %s %s answered by %s", row->method, row->target, row->fields, got);
    }
    fetch_for("GET", "/stop", "Host: localhost\r\n");
    CHECK(strstr(got, "allow: POST\r\n") != NULL);
    CHECK(strstr(got, "{ \"error\": \"use POST\" }") != NULL);
    finish();
}

/* Methods in the form of Allow. */
static void test_methods_with_a_token(void) {
    start();
    fetch("PUT", "/stop?token=s3cret", "");
    CHECK(strstr(got, "allow: GET, POST\r\n") != NULL);
    fetch("PUT", "/stats?token=s3cret", "");
    CHECK(strstr(got, "allow: GET, HEAD, POST\r\n") != NULL);
    CHECK_INT(status_of(fetch_for("GET", "/stop?token=s3cret", "Host: any.example\r\n")), 200);
    finish();
}

static void test_stats_and_metrics(void) {
    start_with((rd_control_options){.cluster = true, .versions = "{\"rondo\":\"1\"}"});
    rd_score_row *row = &board.rows[1];
    atomic_store(&row->state, RD_SCORE_READY);
    atomic_store(&row->pid, (uint64_t)getpid());
    atomic_store(&row->busy, 2);
    atomic_store(&row->max_threads, 5);
    atomic_store(&row->requests, 99);
    atomic_store(&row->started_ms, rd_clock_ms());
    rd_histogram_add(&row->wait, 1500);
    fetch("GET", "/stats", "");
    CHECK(strstr(got, "\"workers\":1,\"phase\":0,\"booted_workers\":1,\"old_workers\":0") != NULL);
    char expected[64];
    snprintf(expected, sizeof(expected), "\"pid\":%d,\"index\":1,\"phase\":0,\"booted\":true",
             (int)getpid());
    CHECK_SAYS(strstr(got, expected) != NULL, "%s", got);
    CHECK(atomic_load(&row->rss_bytes) > 100000);
    CHECK(strstr(got, "\"pool_capacity\":3,\"busy_threads\":2,\"max_threads\":5") != NULL);
    CHECK(strstr(got, "\"versions\":{\"rondo\":\"1\"}}") != NULL);
    fetch("GET", "/metrics", "");
    CHECK(strstr(got, "\nrondo_requests_total{worker=\"1\"} 99\n") != NULL);
    CHECK(strstr(got, "\nrondo_queue_time_seconds_bucket{worker=\"1\",le=\"0.001024\"} 0\n") !=
          NULL);
    CHECK(strstr(got, "\nrondo_queue_time_seconds_bucket{worker=\"1\",le=\"0.002048\"} 1\n") !=
          NULL);
    CHECK(strstr(got, "\nrondo_queue_time_seconds_bucket{worker=\"1\",le=\"+Inf\"} 1\n") != NULL);
    CHECK(strstr(got, "\nrondo_queue_time_seconds_sum{worker=\"1\"} 0.0015\n") != NULL);
    CHECK(strstr(got, "worker=\"0\"") == NULL);
    finish();
}

/* The clients are in the kernel's queue when connect() has returned: no thread accepts here. */
static void watch_and_fill(rd_listener *listener, int family, const struct sockaddr *to,
                           socklen_t len) {
    int clients[2];
    start_with((rd_control_options){0});
    rd_control_add_queue(control, listener->url, listener->source.fd, 3);
    for (int i = 0; i < 2; i++) {
        clients[i] = socket(family, SOCK_STREAM, 0);
        CHECK_INT(connect(clients[i], to, len), 0);
    }
    fetch("GET", "/stats", "");
    bool known = strstr(got, "\"worker\":3,\"depth\":2,\"limit\":7") != NULL;
    CHECK_SAYS(known || strstr(got, "\"depth\":null") != NULL, "%s", got);
    rd_control_clear_queues(control);
    CHECK(strstr(fetch("GET", "/stats", ""), "\"accept_queues\":[]") != NULL);
    for (int i = 0; i < 2; i++) close(clients[i]);
    finish();
}

static void test_accept_queues(void) {
    char error[RD_LISTENER_ERROR_MAX];
    rd_listener listener;
    rd_listen_options options = {.backlog = 7, .mode = -1};
    struct sockaddr_storage to;
    socklen_t len = sizeof(to);
    CHECK_INT(rd_listen_tcp(&listener, "127.0.0.1", 0, &options, error), 0);
    getsockname(listener.source.fd, (struct sockaddr *)&to, &len);
    watch_and_fill(&listener, AF_INET, (struct sockaddr *)&to, len);
    close(listener.source.fd);
    close(listener.spare_fd);
    char name[64];
    snprintf(name, sizeof(name), "@rondo-test-control-%d", (int)getpid());
    CHECK_INT(rd_listen_unix(&listener, name, &options, error), 0);
    len = sizeof(to);
    getsockname(listener.source.fd, (struct sockaddr *)&to, &len);
    watch_and_fill(&listener, AF_UNIX, (struct sockaddr *)&to, len);
    close(listener.source.fd);
    close(listener.spare_fd);
}

/* ---- bad clients ---- */

static void test_garbage(void) {
    static const char *const rubbish[] = {
        "\x16\x03\x01\x02",
        "GET\r\n\r\n",
        "GET /live HTTP/9.9\r\n\r\n",
        "GET /live HTTP/1.1\r\n\r\n",
        "\r\n\r\n\r\n!!!\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"};
    start();
    for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++) {
        int fd = dial();
        say(fd, rubbish[i]);
        shutdown(fd, SHUT_WR);
        hear(fd, NULL);
        CHECK_SAYS(got[0] == '\0' || status_of(got) >= 400, "%s answered by %s", rubbish[i], got);
        close(fd);
    }
    CHECK_INT(status_of(fetch("GET", "/live", "")), 200);
    finish();
}

static void test_stalled_and_many_clients(void) {
    int clients[120];
    start();
    for (int i = 0; i < 120; i++) {
        clients[i] = dial();
        say(clients[i], i % 2 == 0 ? "GET /live HT" : "");
    }
    CHECK_INT(status_of(fetch("GET", "/live", "")), 200);
    for (int i = 0; i < 120; i += 2) {
        say(clients[i], "TP/1.1\r\nHost: a\r\n\r\n");
        CHECK_INT(status_of(hear(clients[i], "live\n")), 200);
    }
    finish(); /* while all of them are connected */
    for (int i = 0; i < 120; i++) close(clients[i]);
}

/* ---- the process ---- */

static int ask(const char *target) {
    char head[128];
    int fd = dial();
    snprintf(head, sizeof(head),
             "GET %s?token=s3cret HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", target);
    say(fd, head);
    return fd;
}

static void test_verbs_reach_the_process(void) {
    char line[64], expected[64];
    start();
    for (int i = 0; i < RD_VERB_COUNT; i++) {
        if (rd_verb_table[i].answers) continue;
        snprintf(line, sizeof(line), "/%s", rd_verb_table[i].path);
        snprintf(expected, sizeof(expected), "0 %s\n", rd_verb_table[i].path);
        int fd = ask(line);
        CHECK_INT(status_of(hear(fd, NULL)), 200);
        close(fd);
        read_line(line, sizeof(line));
        CHECK_STR(line, expected);
    }
    finish();
}

static void test_answers_of_the_process(void) {
    char line[64], answer[128];
    int numbers[2], fds[2];
    start();
    fds[0] = ask("/gc-stats");
    read_line(line, sizeof(line));
    CHECK_INT(sscanf(line, "%d gc-stats", &numbers[0]), 1);
    fds[1] = ask("/gc");
    read_line(line, sizeof(line));
    CHECK_INT(sscanf(line, "%d gc", &numbers[1]), 1);
    /* In reverse order, in pieces, and with an answer that no client waits for. */
    int len = snprintf(answer, sizeof(answer), "%d 500 3\nbad77 200 2\nxx%d 200 4\ngood",
                       numbers[1], numbers[0]);
    for (int i = 0; i < len; i++) CHECK_INT(send(process_fd, answer + i, 1, 0), 1);
    CHECK_INT(status_of(hear(fds[1], NULL)), 500);
    CHECK(strstr(got, "\r\n\r\nbad") != NULL);
    CHECK_INT(status_of(hear(fds[0], NULL)), 200);
    CHECK(strstr(got, "\r\n\r\ngood") != NULL);
    close(fds[0]);
    close(fds[1]);
    finish();
}

/* A client that posts `size` bytes to /publish, with `more` in the query. */
static int post_with(size_t size, const char *more) {
    char head[256];
    char *body = rd_alloc(size + 1);
    int fd = dial();
    snprintf(head, sizeof(head),
             "POST /publish?token=s3cret%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
             "Content-Length: %zu\r\n\r\n",
             more, size);
    say(fd, head);
    for (size_t i = 0; i < size; i++) body[i] = (char)('a' + i % 26);
    body[size] = '\0';
    say(fd, body);
    rd_free(body);
    return fd;
}

static int post(size_t size) {
    return post_with(size, "");
}

static void answer(int id, const char *text) {
    char line[64];
    int len = snprintf(line, sizeof(line), "%d 200 %zu\n%s", id, strlen(text), text);
    CHECK_INT(send(process_fd, line, (size_t)len, 0), len);
}

static int next_publication(void) {
    char line[64];
    int id = 0;
    read_line(line, sizeof(line));
    CHECK_INT(sscanf(line, "%d publish", &id), 1);
    return id;
}

static void test_the_process_fetches_a_body(void) {
    static const size_t sizes[] = {1, 4096, 100000, 1 << 20};
    start();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        rd_buffer bytes = {0};
        int fd = post(sizes[i]);
        int id = next_publication();
        CHECK(rd_control_body(control, (uint64_t)id, &bytes));
        CHECK_INT(rd_buffer_len(&bytes), sizes[i]);
        CHECK_INT(rd_buffer_ptr(&bytes)[sizes[i] - 1], 'a' + (int)((sizes[i] - 1) % 26));
        answer(id, "done");
        CHECK_INT(status_of(hear(fd, NULL)), 200);
        CHECK(!rd_control_body(control, (uint64_t)id, &bytes)); /* nobody waits for it any more */
        rd_buffer_clear(&bytes);
        close(fd);
    }
    finish();
}

static void test_bodies_that_wait_for_the_process(void) {
    int fds[RD_COMMAND_BODIES_MAX], ids[RD_COMMAND_BODIES_MAX];
    start();
    for (int i = 0; i < RD_COMMAND_BODIES_MAX; i++) {
        fds[i] = post(10);
        ids[i] = next_publication();
    }
    int fd = post(10);
    CHECK_INT(status_of(hear(fd, NULL)), 503);
    close(fd);
    CHECK_INT(status_of(fetch("GET", "/live", "")), 200);
    answer(ids[0], "done");
    CHECK_INT(status_of(hear(fds[0], NULL)), 200);
    fd = post(10);
    answer(next_publication(), "done");
    CHECK_INT(status_of(hear(fd, NULL)), 200);
    close(fd);
    for (int i = 0; i < RD_COMMAND_BODIES_MAX; i++) close(fds[i]);
    finish();
}

static void test_who_waits_for_the_engine_says_how_long(void) {
    static const struct {
        const char *text;
        int ms;
    } good[] = {{"1", 1000},       {"30", 30000},    {"0.001", 1},         {"2.5", 2500},
                {"29.999", 29999}, {"007.50", 7500}, {"5&confirm=x", 5000}};
    static const char *bad[] = {
        "",   "0",  "0.0", "-1", "1.",    ".5",  "1.0001", "30.001",
        "31", "1s", "1e1", "+1", "1.2.3", "%31", "true",   "99999999999999999999"};
    char query[64], line[64];
    int id, ms;
    start();
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(query, sizeof(query), "&confirm=%s", good[i].text);
        int fd = post_with(1, query);
        read_line(line, sizeof(line));
        CHECK_INT(sscanf(line, "%d publish %d", &id, &ms), 2);
        CHECK_INT(ms, good[i].ms);
        answer(id, "done");
        CHECK_INT(status_of(hear(fd, NULL)), 200);
        close(fd);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(query, sizeof(query), "&confirm=%s", bad[i]);
        int fd = post_with(1, query);
        CHECK_INT(status_of(hear(fd, NULL)), 400);
        close(fd);
    }
    finish();
}

/* A word that is misspelt would not wait, and nobody would know. */
static void test_parameters_that_there_are_not(void) {
    static const char *bad[] = {
        "&confrim=1", "&confirm=5&wait=1", "&Confirm=1",        "&confirm%3D1",
        "&=1",        "&token&x",          "&confirm=5;wait=1", "&confirm"};
    static const char *good[] = {"&", "&&token=x", "&confirm=5&", ";confirm=5"};
    char query[101];
    int fd;
    start();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        fd = post_with(1, bad[i]);
        CHECK_INT(status_of(hear(fd, NULL)), 400);
        close(fd);
    }
    fd = post_with(1, "&confrim=1");
    hear(fd, NULL);
    CHECK(strstr(got, "\"unknown parameter confrim; there is confirm\"") != NULL);
    close(fd);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        fd = post_with(1, good[i]);
        answer(next_publication(), "done");
        CHECK_INT(status_of(hear(fd, NULL)), 200);
        close(fd);
    }
    memset(query, 'x', sizeof(query));
    query[0] = '&';
    query[100] = '\0';
    fd = post_with(1, query);
    CHECK_INT(status_of(hear(fd, NULL)), 400);
    CHECK(strstr(got, "; there is confirm\"") != NULL);
    close(fd);
    finish();
}

static void test_who_waits_for_the_engine_has_more_time(void) {
    start_with((rd_control_options){.token = "s3cret", .verbs = ~0u, .answer_timeout_ms = 20});
    int patient = post_with(1, "&confirm=30");
    int id = next_publication();
    int hasty = post(1);
    next_publication();
    CHECK_INT(status_of(hear(hasty, NULL)), 504);
    answer(id, "done");
    CHECK_INT(status_of(hear(patient, NULL)), 200);
    close(patient);
    close(hasty);
    finish();
}

/* Nobody can publish what the process has not asked for. */
static void test_what_was_not_published_for_sure(void) {
    start_with((rd_control_options){.token = "s3cret", .verbs = ~0u, .answer_timeout_ms = 20});
    int fd = post(10);
    next_publication();
    CHECK_INT(status_of(hear(fd, NULL)), 504);
    CHECK(strstr(got, "\"published\": 0") != NULL);
    close(fd);
    finish();
    start_with((rd_control_options){.token = "s3cret", .verbs = ~0u, .answer_timeout_ms = 1500});
    fd = post(10);
    rd_buffer bytes = {0};
    CHECK(rd_control_body(control, (uint64_t)next_publication(), &bytes));
    rd_buffer_clear(&bytes);
    CHECK_INT(status_of(hear(fd, NULL)), 504);
    CHECK(strstr(got, "published") == NULL);
    close(fd);
    finish();
}

static void test_a_process_that_does_not_answer(void) {
    start_with((rd_control_options){.token = "s3cret", .verbs = ~0u, .answer_timeout_ms = 20});
    int fd = ask("/gc");
    CHECK_INT(status_of(hear(fd, NULL)), 504);
    close(fd);
    fd = ask("/gc"); /* a client that does not wait */
    close(fd);
    CHECK_INT(status_of(fetch("GET", "/live", "")), 200);
    finish();
}

static void test_a_process_that_takes_nothing(void) {
    bool refused = false;
    start();
    for (int i = 0; i < 20000 && !refused; i++) {
        refused = status_of(fetch("GET", "/info?token=s3cret", "")) == 503;
    }
    CHECK(refused);
    CHECK_INT(status_of(fetch("GET", "/live", "")), 200);
    finish();
}

static void test_a_process_that_is_gone_or_talks_nonsense(void) {
    start();
    int fd = ask("/gc");
    char line[64];
    read_line(line, sizeof(line));
    CHECK_INT(send(process_fd, "nonsense\n", 9, 0), 9);
    CHECK_INT(status_of(hear(fd, NULL)), 503);
    close(fd);
    CHECK_INT(status_of(fetch("GET", "/gc?token=s3cret", "")), 503);
    CHECK_INT(status_of(fetch("GET", "/stop?token=s3cret", "")), 503);
    CHECK_INT(status_of(fetch("GET", "/live", "")), 200);
    finish();
}

static void test_questions_end_with_the_server(void) {
    start();
    int fd = ask("/thread-backtraces");
    char line[64];
    read_line(line, sizeof(line)); /* the command has arrived */
    finish();
    CHECK_INT(status_of(hear(fd, NULL)), 503);
    close(fd);
}

static void test_verbs_the_process_cannot_do(void) {
    start_with((rd_control_options){.token = "s3cret", .verbs = 1u << RD_VERB_GC_STATS});
    CHECK_INT(status_of(fetch("GET", "/stop?token=s3cret", "")), 404);
    CHECK(strstr(got, "{ \"error\": \"stop not available\" }") != NULL);
    finish();
}

static void test_public_addresses(void) {
    static const struct {
        const char *host;
        bool is_public;
    } rows[] = {{"127.0.0.1", false}, {"[::1]", false},    {"127.9.9.9", false},
                {"0.0.0.0", true},    {"[::]", true},      {"10.1.2.3", true},
                {"[fe80::1]", true},  {"localhost.", true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rd_listener listener = {.port = 1};
        snprintf(listener.host, sizeof(listener.host), "%s", rows[i].host);
        CHECK_SAYS(rd_access_is_public(&listener) == rows[i].is_public, "%s", rows[i].host);
    }
}

/* ---- the status page ---- */

#define BROWSER "Accept: text/html,application/xhtml+xml\r\n"
#define PAGE    "<!doctype html><title>status</title>"

static void start_with_page(const char *token) {
    start_with((rd_control_options){
        .token = token, .page = PAGE, .page_policy = "default-src 'none'", .verbs = ~0u});
}

/* base64 of "anybody:s3cret", "anybody:s3cres" and "s3cret" */
static const entrance page_entrances[] = {
    {"GET", "/", "", 403},
    {"GET", "/", BROWSER, 401},
    {"GET", "/?token=s3cret", BROWSER, 200},
    {"HEAD", "/?token=s3cret", BROWSER, 200},
    {"GET", "/", BROWSER "Authorization: Basic YW55Ym9keTpzM2NyZXQ=\r\n", 200},
    {"GET", "/", BROWSER "Authorization: basic YW55Ym9keTpzM2NyZXQ\r\n", 200},
    {"GET", "/", BROWSER "Authorization: Basic YW55Ym9keTpzM2NyZXM=\r\n", 401},
    {"GET", "/", BROWSER "Authorization: Basic czNjcmV0\r\n", 401},
    {"GET", "/", BROWSER "Authorization: Basic YW55 Ym9keTpzM2NyZXQ=\r\n", 401},
    {"GET", "/", BROWSER "Authorization: Basic\r\n", 401},
    {"GET", "/", BROWSER "Authorization: Basic ====\r\n", 401},
    {"GET", "/stats", "Authorization: Basic YW55Ym9keTpzM2NyZXQ=\r\n", 200},
    {"GET", "/stats",
     "Authorization: Basic YW55Ym9keTpzM2NyZXQ=\r\nSec-Fetch-Site: same-origin\r\n", 200},
    {"GET", "/stats", "Authorization: Basic YW55Ym9keTpzM2NyZXQ=\r\nSec-Fetch-Site: cross-site\r\n",
     403},
    {"GET", "/stats", "Authorization: Basic YW55Ym9keTpzM2NyZXQ=\r\nSec-Fetch-Site: same-site\r\n",
     403},
    {"GET", "/stats", "Authorization: Basic YW55Ym9keTpzM2NyZXQ=\r\nReferer: http://a/\r\n", 403},
    /* a password that the browser keeps is no token for commands */
    {"GET", "/stop", "Authorization: Basic YW55Ym9keTpzM2NyZXQ=\r\n", 403},
    {"POST", "/stop", "Authorization: Basic YW55Ym9keTpzM2NyZXQ=\r\n", 403},
    {"GET", "/events", "", 403},
};

static const entrance open_page_entrances[] = {
    {"GET", "/", "", 200},
    {"GET", "/", "Sec-Fetch-Site: none\r\n", 200},
    {"GET", "/stats", "Sec-Fetch-Site: same-origin\r\n", 200},
    {"GET", "/", "Sec-Fetch-Site: same-site\r\n", 403},
    {"GET", "/", "Sec-Fetch-Site: cross-site\r\n", 403},
    {"GET", "/events", "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n", 403},
    {"POST", "/stats", "Sec-Fetch-Site: same-origin\r\n", 403},
    {"POST", "/stop", "Sec-Fetch-Site: same-origin\r\n", 403},
};

static void test_who_may_see_the_page(void) {
    start_with_page("s3cret");
    for (size_t i = 0; i < sizeof(page_entrances) / sizeof(page_entrances[0]); i++) {
        const entrance *row = &page_entrances[i];
        CHECK_INT(status_of(fetch(row->method, row->target, row->fields)), row->status);
    }
    fetch("GET", "/", BROWSER);
    CHECK(strstr(got, "\r\nwww-authenticate: Basic realm=\"Rondo\"\r\n") != NULL);
    fetch("GET", "/?token=s3cret", "");
    CHECK(strstr(got, "\r\n\r\n" PAGE) != NULL);
    CHECK(strstr(got, "\r\ncontent-security-policy: default-src 'none'\r\n") != NULL);
    CHECK(strstr(got, "\r\nreferrer-policy: no-referrer\r\n") != NULL);
    finish();
    start_with_page(NULL);
    for (size_t i = 0; i < sizeof(open_page_entrances) / sizeof(open_page_entrances[0]); i++) {
        const entrance *row = &open_page_entrances[i];
        CHECK_INT(status_of(fetch(row->method, row->target, row->fields)), row->status);
    }
    CHECK_INT(status_of(fetch_for("GET", "/", "Host: rebound.example\r\n")), 403);
    finish();
    start(); /* without a page */
    CHECK_INT(status_of(fetch("GET", "/?token=s3cret", "")), 404);
    finish();
}

static int look(const char *method) {
    char head[160];
    int fd = dial();
    snprintf(head, sizeof(head), "%s /events?token=s3cret HTTP/1.1\r\nHost: localhost\r\n\r\n",
             method);
    say(fd, head);
    return fd;
}

static void test_events(void) {
    start_with_page("s3cret");
    atomic_store(&board.rows[0].state, RD_SCORE_READY);
    atomic_store(&board.rows[0].pid, (uint64_t)getpid());
    rd_journal_add(board.journal, RD_JOURNAL_WARN, 1, "a \"line\"\n    of two", 20);
    rd_journal_add(board.journal, RD_JOURNAL_WARN, -1, "no \xff text", 9);
    int fd = look("GET");
    hear(fd, "\"time_ms\":");
    hear(fd, "event: stats");
    CHECK(atomic_load(&board.rows[0].watched_ms) > rd_clock_ms());
    hear(fd, "event: samples"); /* of a second */
    rd_journal_add(board.journal, RD_JOURNAL_ERROR, 0, "another", 7);
    hear(fd, "another");
    CHECK(strstr(got, "event: log\ndata: [{\"number\":3,") != NULL);
    const int other = look("GET");
    rd_journal_add(board.journal, RD_JOURNAL_ERROR, 0, "in between", 10);
    const int third = look("GET"); /* who comes takes no line from those that are there */
    CHECK(strstr(hear(third, "in between"), "in between") != NULL);
    CHECK(strstr(hear(fd, "in between"), "in between") != NULL);
    CHECK(strstr(hear(other, "in between"), "in between") != NULL);
    close(third);
    close(other);
    close(fd);
    fd = look("GET");
    hear(fd, "event: stats"); /* everything from the beginning */
    CHECK(strstr(got, "\r\ncontent-type: text/event-stream\r\n") != NULL);
    CHECK(strstr(got, "\"worker\":1,\"cut\":false,\"text\":\"a \\\"line\\\"\\u000a    of two\"") !=
          NULL);
    CHECK(strstr(got, "\"worker\":null,\"cut\":false,\"text\":\"no ? text\"") != NULL);
    CHECK(strstr(got, "event: lives\ndata: [{\"worker\":0,\"pid\":") != NULL);
    close(fd);
    fd = look("HEAD");
    say(fd, "GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    hear(fd, NULL);
    CHECK(strstr(got, "event: ") == NULL && strstr(got, "\r\n\r\nlive\n") != NULL);
    close(fd);
    finish();
}

/* The streams end with the server, and a page that nobody reads holds no more than its limit. */
static void test_viewers_at_the_end(void) {
    int fds[65];
    start_with_page("s3cret");
    for (int i = 0; i < 64; i++) {
        fds[i] = look("GET");
        hear(fds[i], "event: stats");
    }
    fds[64] = look("GET");
    hear(fds[64], "too many look at this page");
    CHECK_INT(status_of(got), 503);
    close(fds[0]);
    for (int fd = look("GET");; fd = look("GET")) { /* as soon as the server has seen it */
        const int status = status_of(hear(fd, "\n\n"));
        close(fd);
        if (status == 200) break;
    }
    rd_control_stop(control);
    hear(fds[1], NULL);
    CHECK(strstr(got, "\r\n0\r\n\r\n") != NULL);
    for (int i = 1; i < 65; i++) close(fds[i]);
    finish();
}

static void test_watching_by_stats(void) {
    start();
    CHECK_INT(status_of(fetch("GET", "/stats?token=s3cret", "")), 200);
    CHECK_INT(atomic_load(&board.rows[1].watched_ms), 1);
    CHECK(strstr(got, "\"lives\"") == NULL);
    rd_journal_add(board.journal, RD_JOURNAL_ERROR, 0, "a line", 6);
    fetch("GET", "/stats?token=s3cret&past=1", "");
    CHECK(strstr(got, ",\"samples\":[") != NULL && strstr(got, ",\"lives\":[") != NULL);
    CHECK(strstr(got, "\"text\":\"a line\"}]}\n") != NULL);
    fetch("GET", "/stats?token=s3cret&watch=50", "");
    CHECK(atomic_load(&board.rows[1].watched_ms) > rd_clock_ms() + 20000);
    fetch("GET", "/stats?token=s3cret&watch=1", ""); /* the longer time counts */
    CHECK(atomic_load(&board.rows[1].watched_ms) > rd_clock_ms() + 20000);
    fetch("GET", "/stats?token=s3cret&watch=999999", "");
    CHECK(atomic_load(&board.rows[1].watched_ms) <= rd_clock_ms() + 60000);
    finish();
}

int main(void) {
    test_probes();
    test_a_server_that_is_about_to_stop();
    test_nothing_begins_in_a_server_that_is_about_to_stop();
    test_a_process_whose_application_hangs();
    test_entrances();
    test_without_a_token();
    test_methods_with_a_token();
    test_stats_and_metrics();
    test_accept_queues();
    test_garbage();
    test_stalled_and_many_clients();
    test_verbs_reach_the_process();
    test_answers_of_the_process();
    test_the_process_fetches_a_body();
    test_bodies_that_wait_for_the_process();
    test_who_waits_for_the_engine_says_how_long();
    test_parameters_that_there_are_not();
    test_who_waits_for_the_engine_has_more_time();
    test_what_was_not_published_for_sure();
    test_a_process_that_does_not_answer();
    test_a_process_that_takes_nothing();
    test_a_process_that_is_gone_or_talks_nonsense();
    test_questions_end_with_the_server();
    test_verbs_the_process_cannot_do();
    test_public_addresses();
    test_who_may_see_the_page();
    test_events();
    test_viewers_at_the_end();
    test_watching_by_stats();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * The reading side of HTTP/1.1 on one connection: pipelines, PROXY headers, what is refused after
 * what was good, every deadline, and bodies that fail, by their client or a full disk, before and
 * after the application has their request.
 */
#include "full_disk.h"
#include "serving.h"

#define POST(fields) "POST /p HTTP/1.1\r\nHost: a\r\n" fields "\r\n"
#define EXPECTING    "Expect: 100-continue\r\n"
#define CHUNKED      "Transfer-Encoding: chunked\r\n"

static int client;

static void begin(void (*application)(rd_request *)) {
    start(application);
    client = join();
}

static void finish(void) {
    close(client);
    end();
}

/* ---- pipelines ---- */

/* How many times `what` is in `got`. */
static unsigned count_in_got(const char *what) {
    unsigned count = 0;
    for (const char *at = got; (at = strstr(at, what)) != NULL; at++) count++;
    return count;
}

/* Checks the bodies of the answers in `got`, in order. answer_path() wrote them. */
static void check_paths(const char *const *paths, unsigned count) {
    const char *at = got;
    for (unsigned i = 0; i < count; i++) {
        char answer[32];
        int len = snprintf(answer, sizeof(answer), "\r\n\r\n%s%s", paths[i],
                           i + 1 < count ? "HTTP/1.1 200 OK\r\n" : "");
        at = strstr(at, answer);
        if (!CHECK_SAYS(at != NULL, "%s is not in its place in %s", paths[i], got)) return;
        at += len - (i + 1 < count ? 17 : 0);
    }
    CHECK_STR(at, "");
}

static void test_a_pipeline_leaves_in_one_write(void) {
    static const char *const paths[] = {"/a", "/bb", "/ccc", "/dd", "/e"};
    begin(answer_path);
    CHECK(!ask(client, GET("/a") GET("/bb") GET("/ccc") GET("/dd") GET("/e")));
    CHECK_INT(count_in_got("HTTP/1.1 200 OK\r\n"), 5);
    check_paths(paths, 5);
    CHECK_INT(writes, 1);
    finish();
}

static void test_a_pipeline_cut_anywhere(void) {
    static const char *const paths[] = {"/a", "/b", "/c"};
    static const char sent[] = GET("/a") GET("/b") GET("/c");
    begin(answer_path);
    for (size_t cut = 1; cut < sizeof(sent) - 1; cut++) {
        CHECK_INT(send(client, sent, cut, MSG_NOSIGNAL), cut);
        turns(2);
        CHECK(!ask(client, sent + cut));
        check_paths(paths, 3);
    }
    CHECK_INT(server->http.requests.live, 0);
    finish();
}

static void test_an_answer_that_is_late_keeps_the_order(void) {
    static const char *const paths[] = {"/a", "/b", "/c"};
    begin(hold);
    CHECK(!ask(client, GET("/a") GET("/b") GET("/c")));
    CHECK_INT(got_len, 0);
    app = answer_path;
    answer_path(held);
    let_go();
    turns(2);
    CHECK(!hear(client));
    check_paths(paths, 3);
    finish();
}

/* Read-ahead has a limit while a request is answered, and continues after the answer. */
static void test_read_ahead_is_bounded(void) {
    enum { COUNT = 3000, SIZE = sizeof(GET("/a")) - 1 };
    static char many[COUNT * SIZE + 1];
    settings.max_pipeline_bytes = 4096;
    begin(hold);
    for (int i = 0; i < COUNT; i++) memcpy(many + i * SIZE, GET("/a"), SIZE);
    say(client, many);
    turns(4);
    CHECK(joined->read_paused);
    CHECK(rd_buffer_len(&joined->input) <= 4096 + RD_LOOP_RECEIVE_BYTES);
    app = answer_path;
    answer_path(held);
    let_go();
    unsigned answers = 0;
    for (int i = 0; i < 200 && answers < COUNT; i++) {
        turn();
        hear(client);
        answers += count_in_got("HTTP/1.1 200");
    }
    CHECK_INT(answers, COUNT);
    finish();
}

/* A client sends and does not read: its answers must not pile up without limit. */
static void test_answers_that_nobody_reads_are_bounded(void) {
    static const char head[] = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    enum { SIZE = sizeof(head) - 1, COUNT = 20000 };
    static char many[COUNT * SIZE];
    size_t sent = 0, answers = 0;
    for (int i = 0; i < COUNT; i++) memcpy(many + i * SIZE, head, SIZE);
    settings.output_high_bytes = 16384;
    settings.output_low_bytes = 4096;
    begin(answer_path);
    for (int i = 0; i < 3000; i++) {
        ssize_t part = send(client, many + sent, sizeof(many) - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (part > 0) sent += (size_t)part;
        turn();
    }
    CHECK_SAYS(joined->out.bytes < 65536, "%zu bytes are queued", joined->out.bytes);
    for (int i = 0; i < 10000 && answers < COUNT; i++) {
        ssize_t part = send(client, many + sent, sizeof(many) - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (part > 0) sent += (size_t)part;
        turn();
        hear(client);
        answers += count_in_got("HTTP/1.1 200");
    }
    CHECK_INT(sent, sizeof(many));
    CHECK_INT(server->counts.requests, COUNT);
    finish();
}

/* ---- PROXY protocol ---- */

static const struct {
    const char *sent, *peer; /* the address that the application sees; NULL: no request came */
} proxied[] = {
    {"PROXY TCP4 203.0.113.9 10.0.0.1 5555 80\r\n" GET("/a"), "203.0.113.9"},
    {"PROXY UNKNOWN\r\n" GET("/a"), "127.0.0.1"},
    {GET("/a"), NULL},
    {"PROXY TCP4 nonsense\r\n" GET("/a"), NULL},
    {"PROXY TCP4 ", NULL},
};

static char seen_peer[RD_ADDRESS_TEXT_MAX];

static void note_peer(rd_request *request) {
    rd_address_text(&request->conn->peer, seen_peer);
    answer_path(request);
}

static void begin_proxied(void) {
    rd_network *networks = rd_alloc(sizeof(*networks));
    CHECK(rd_network_parse(networks, "unix", 4));
    start(note_peer);
    rd_server_set_proxies(server, networks, 1);
    client = join();
    seen_peer[0] = '\0';
}

/* No answer is sent: the other side is the operator's own load balancer. */
static void test_proxied_connections(void) {
    for (size_t i = 0; i < sizeof(proxied) / sizeof(proxied[0]); i++) {
        size_t len = strlen(proxied[i].sent);
        for (size_t cut = 0; cut < len; cut++) {
            begin_proxied();
            CHECK_INT(send(client, proxied[i].sent, cut, MSG_NOSIGNAL), cut);
            turns(2);
            ssize_t rest = send(client, proxied[i].sent + cut, len - cut, MSG_NOSIGNAL);
            CHECK(rest > 0 || proxied[i].peer == NULL);
            turns(3);
            later((uint64_t)settings.head_timeout_ms);
            CHECK_INT(hear(client), proxied[i].peer == NULL);
            CHECK_STR(seen_peer, proxied[i].peer != NULL ? proxied[i].peer : "");
            CHECK_INT(got_len > 0, proxied[i].peer != NULL);
            finish();
        }
    }
}

/* ---- refusals ---- */

static const struct {
    const char *sent, *status; /* of the last answer */
    unsigned answers;          /* sent with the refusal */
} refusals[] = {
    {GET("/a") "nonsense\r\n\r\n", "400 ", 2},
    {GET("/a") GET("/b") "GET /c HTTP/1.1\r\n\r\n" GET("/d"), "400 ", 3},
    {GET("/a") "GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505 ", 2},
    {GET("/a") POST("Content-Length: 99999999999\r\n"), "413 ", 2},
    {GET("/a") POST(CHUNKED) "zz\r\n", "400 ", 2},
    {POST(CHUNKED) "2\r\nabcd", "400 ", 1},
    {POST(CHUNKED) "ffffffff\r\n", "413 ", 1},
    {"HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", "413 ", 1},
};

static void test_refusals_after_what_was_good(void) {
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        begin(answer_path);
        CHECK_SAYS(ask(client, refusals[i].sent), "%s", refusals[i].sent);
        CHECK_INT(count_in_got("date: "), refusals[i].answers);
        char last[16];
        snprintf(last, sizeof(last), "HTTP/1.1 %s", refusals[i].status);
        CHECK_SAYS(strstr(got, last) != NULL, "%s", got);
        CHECK_SAYS(count_in_got("connection: close\r\n") == 1, "%s", got);
        CHECK_INT(server->counts.refused, 1);
        CHECK_INT(server->incidents.count, 1);
        if (refusals[i].answers > 1) CHECK_INT(writes, 1);
        CHECK_INT(begins(refusals[i].sent, "HEAD"), ends(got, "\r\n\r\n"));
        finish();
    }
}

/* ---- deadlines ---- */

static const struct {
    const char *sent;      /* sent before the deadline starts */
    const char *more;      /* sent half-way, or NULL. `renews`: the deadline starts again then */
    const char *answer;    /* the beginning of the answer; "" if the connection ends without one */
    size_t timeout_offset; /* the setting */
    bool renews;
} deadlines[] = {
    {"", NULL, "", offsetof(rd_settings, head_timeout_ms), false},
    {"\r\n", NULL, "", offsetof(rd_settings, head_timeout_ms), false},
    {"G", "E", "HTTP/1.1 408 ", offsetof(rd_settings, head_timeout_ms), false},
    {GET("/a"), NULL, "", offsetof(rd_settings, keep_alive_timeout_ms), false},
    {GET("/a"), "\r\n", "", offsetof(rd_settings, keep_alive_timeout_ms), false},
    {GET("/a") "GET /", " HT", "HTTP/1.1 408 ", offsetof(rd_settings, head_timeout_ms), false},
    {POST("Content-Length: 9\r\n"), NULL, "HTTP/1.1 408 ", offsetof(rd_settings, body_timeout_ms),
     false},
    {POST("Content-Length: 9\r\n") "a", "b", "HTTP/1.1 408 ",
     offsetof(rd_settings, body_timeout_ms), true},
    {POST(CHUNKED) "5\r\nab", "c", "HTTP/1.1 408 ", offsetof(rd_settings, body_timeout_ms), true},
};

static void test_deadlines(void) {
    for (size_t i = 0; i < sizeof(deadlines) / sizeof(deadlines[0]); i++) {
        settings.body_min_rate = 0;
        begin(answer_path);
        int64_t timeout;
        memcpy(&timeout, (const char *)&settings + deadlines[i].timeout_offset, sizeof(timeout));
        CHECK(!ask(client, deadlines[i].sent));
        later((uint64_t)timeout / 2);
        if (deadlines[i].more != NULL) CHECK(!ask(client, deadlines[i].more));
        if (deadlines[i].renews) later((uint64_t)timeout / 2);
        later((uint64_t)timeout / 2 - 1);
        CHECK_SAYS(!hear(client) && got_len == 0, "row %zu: too early", i);
        later(1);
        CHECK_SAYS(hear(client), "row %zu: too late", i);
        CHECK_SAYS(begins(got, deadlines[i].answer), "row %zu: %s", i, got);
        CHECK_INT(got_len > 0, deadlines[i].answer[0] != '\0');
        finish();
    }
}

static void test_each_head_has_its_deadline(void) {
    begin(answer_path);
    ask(client, "GET /a");
    CHECK(!ask(client, " HTTP/1.1\r\nHost: a\r\n\r\n"));
    ask(client, "GET /b");
    later((uint64_t)settings.head_timeout_ms);
    CHECK(hear(client) && begins(got, "HTTP/1.1 408 "));
    finish();
}

static const struct {
    unsigned bytes_a_second, seconds;
    bool expecting; /* the client is asked for its body after 20 s */
    bool refused;
} rates[] = {
    {400, 9, false, false}, /* within the grace */
    {400, 10, false, true}, {600, 20, false, false}, {400, 9, true, false},
    {600, 20, true, false}, {400, 10, true, true},
};

static void want_body(rd_request *request) {
    hold(request);
    await(held);
}

static void test_minimum_rate_of_bodies(void) {
    static char bytes[1024];
    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        begin(want_body);
        CHECK(!ask(client, rates[i].expecting ? POST("Content-Length: 99999\r\n" EXPECTING)
                                              : POST("Content-Length: 99999\r\n")));
        CHECK_INT(held != NULL, rates[i].expecting);
        if (held != NULL) {
            later(20000);
            held->responder->want_body(held);
        }
        for (unsigned second = 0; second < rates[i].seconds; second++) {
            later(1000);
            CHECK(send(client, bytes, rates[i].bytes_a_second, MSG_NOSIGNAL) > 0);
            turns(2);
        }
        CHECK_SAYS(server->counts.refused == rates[i].refused, "row %zu", i);
        if (rates[i].refused) CHECK_INT(server->incidents.kept[0].code, RD_ERR_BODY_TOO_SLOW);
        if (held != NULL) answer_path(held);
        finish();
    }
}

/* A client may send its body before it is asked for it. The time for the body starts then. */
static void test_minimum_rate_of_a_client_that_did_not_wait(void) {
    begin(want_body);
    ask(client, POST("Content-Length: 10\r\n" EXPECTING));
    later(15000);
    ask(client, "12345");
    CHECK_INT(held->body_error, 0);
    later(1000);
    ask(client, "67890");
    CHECK(held->body_complete);
    CHECK_INT(server->counts.refused, 0);
    answer_path(held);
    finish();
}

/* ---- bodies that fail while the application has the request ---- */

static void cut_short(void) {
    shutdown(client, SHUT_WR);
}

static void time_out(void) {
    later((uint64_t)settings.body_timeout_ms);
}

static void say_nonsense(void) {
    say(client, "nonsense\r\n");
}

static void announce_too_much(void) {
    say(client, "ffffffffff\r\n");
}

static const struct {
    void (*fail)(void);
    int code;
} failures[] = {
    {cut_short, RD_ERR_BODY_CUT},
    {time_out, RD_ERR_BODY_TIMEOUT},
    {say_nonsense, RD_ERR_CHUNK_SIZE},
    {announce_too_much, RD_ERR_BODY_TOO_LARGE},
};

static void test_failing_bodies(void) {
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        begin(want_body);
        ask(client, POST(CHUNKED EXPECTING));
        held->responder->want_body(held);
        CHECK(!hear(client));
        CHECK_STR(got, "HTTP/1.1 100 Continue\r\n\r\n");
        ask(client, "3\r\nabc\r\n");
        CHECK(woken() == NULL);
        failures[i].fail();
        turns(2);
        CHECK(woken() == held);
        CHECK_INT(held->body_error, failures[i].code);
        CHECK(!held->body_complete && !held->gone);
        CHECK_INT(held->body.size, 3); /* the bytes that came can be read */
        CHECK_INT(server->counts.refused, 1);
        answer_path(held); /* the application may answer what it likes */
        let_go();
        turns(2);
        CHECK_SAYS(hear(client), "row %zu", i);
        CHECK(begins(got, "HTTP/1.1 200 OK\r\n") && strstr(got, "connection: close\r\n") != NULL);
        finish();
    }
}

static void test_a_client_that_leaves_with_its_body(void) {
    begin(want_body);
    ask(client, POST("Content-Length: 5\r\n" EXPECTING));
    held->responder->want_body(held); /* the client never reads it, so its end is a reset */
    close(client);
    turns(2);
    CHECK(woken() == held);
    CHECK(held->gone && held->conn == NULL);
    CHECK_INT(held->body_error, RD_ERR_BODY_CUT);
    client = -1;
    finish();
}

static int fail_to_modify(rd_poller *poller, rd_source *source) {
    (void)poller, (void)source;
    errno = ENOMEM;
    return -1;
}

/* After a failure no more of the body is read. If the poller cannot be told, the connection ends.
 */
static void test_a_poller_that_fails_with_the_body(void) {
    begin(want_body);
    ask(client, POST("Content-Length: 5\r\n" EXPECTING));
    held->responder->want_body(held);
    const rd_poller_ops *whole = server->loop.ops;
    rd_poller_ops broken = *whole;
    broken.modify = fail_to_modify;
    server->loop.ops = &broken;
    later((uint64_t)settings.body_timeout_ms);
    server->loop.ops = whole;
    CHECK(woken() == held);
    CHECK(held->gone && held->conn == NULL);
    CHECK_INT(held->body_error, RD_ERR_BODY_TIMEOUT);
    finish();
}

/* ---- calls before their bodies ---- */

static unsigned calls;

static void count_call(rd_request *request) {
    (void)request;
    calls++;
}

static void expect_early(int fd, bool early) {
    const unsigned before = calls;
    ask(fd, POST("Content-Length: 5\r\n" EXPECTING));
    CHECK_INT(calls - before, early);
    CHECK_STR(got, early ? "" : "HTTP/1.1 100 Continue\r\n\r\n");
}

/* One thirty-second of max_parked_bodies may wait for their bodies in the application. */
static void test_calls_before_their_bodies_are_few(void) {
    settings.max_parked_bodies = 95;
    calls = 0;
    begin(count_call);
    int first = join(), second = join();
    expect_early(first, true);
    expect_early(second, true);
    expect_early(client, false);
    ask(client, "12345");
    CHECK_INT(calls, 3); /* together with its body */
    close(first);
    turns(2);
    first = join();
    expect_early(first, true);
    ask(second, "12345");
    close(client);
    client = join();
    expect_early(client, true);
    CHECK_INT(server->http.early_calls, 2);
    close(first);
    close(second);
    close(client);
    client = join();
    turns(2);
    CHECK_INT(server->http.early_calls, 0);
    finish();
}

/* ---- a full disk ---- */

#define BODY "0123456789012345678901234567890123456789"
#define NEXT "abcdefghijabcdefghijabcdefghijabcdefghij"

static void answer_body(rd_request *request) {
    char bytes[64];
    ssize_t len = rd_body_read(&request->body, 0, bytes, sizeof(bytes));
    CHECK(request->body_complete && len >= 0);
    answer_with(request, bytes, (size_t)len);
}

static const struct {
    const char *sent;
    int64_t in_memory;
} stored[] = {
    {POST("Content-Length: 40\r\n") BODY, 0},
    {POST("Content-Length: 40\r\n") BODY, 39},
    {POST(CHUNKED) "28\r\n" BODY "\r\n0\r\n\r\n", 0},
    {GET("/a") POST("Content-Length: 40\r\n" EXPECTING) BODY GET("/b"), 10},
};

/* Only the client of the body learns of it. When the disk has room again, the server works again.
 */
static void test_a_full_disk(void) {
    for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); i++) {
        settings.body_memory_bytes = stored[i].in_memory;
        begin(answer_body);
        fill_disk(20);
        CHECK(ask(client, stored[i].sent));
        CHECK_SAYS(strstr(got, "HTTP/1.1 507 Insufficient Storage\r\n") != NULL, "%s", got);
        CHECK_INT(count_in_got("connection: close\r\n"), 1);
        CHECK_INT(server->incidents.kept[0].code, RD_ERR_DISK_FULL);
        close(client);
        client = join();
        CHECK(!ask(client, GET("/")));
        CHECK(begins(got, "HTTP/1.1 200 OK\r\n"));
        empty_disk();
        CHECK(!ask(client, POST("Content-Length: 40\r\n") NEXT));
        CHECK(begins(got, "HTTP/1.1 200 OK\r\n") && ends(got, "\r\n\r\n" NEXT));
        finish();
    }
}

static void test_a_full_disk_while_the_application_has_the_request(void) {
    settings.body_memory_bytes = 10;
    begin(want_body);
    ask(client, POST("Content-Length: 40\r\n" EXPECTING));
    held->responder->want_body(held);
    fill_disk(20);
    ask(client, BODY);
    empty_disk();
    CHECK(woken() == held);
    CHECK_INT(held->body_error, RD_ERR_DISK_FULL);
    answer_path(held);
    let_go();
    turns(2);
    CHECK(hear(client) && strstr(got, "connection: close\r\n") != NULL);
    finish();
}

/* ---- keep-alive ---- */

static void test_max_keep_alive(void) {
    settings.max_keep_alive = 3;
    begin(answer_path);
    CHECK(ask(client, GET("/a") GET("/b") GET("/c") GET("/d")));
    CHECK_INT(count_in_got("HTTP/1.1 200 OK\r\n"), 3);
    CHECK_INT(count_in_got("connection: close\r\n"), 1);
    CHECK(ends(got, "/c"));
    finish();
}

static const struct {
    const char *sent, *ending;
} half_closes[] = {
    {GET("/a"), "/a"},
    {GET("/a") GET("/b"), "/b"},
    {GET("/a") "\r\n", "/a"},
    {GET("/a") "GET /b HT", "connection ended before the end of the head\n"},
    {GET("/a") POST("Content-Length: 9\r\n") "1234", "/a"},
};

static void test_half_closed_clients_get_all_answers(void) {
    for (size_t i = 0; i < sizeof(half_closes) / sizeof(half_closes[0]); i++) {
        begin(hold);
        say(client, half_closes[i].sent);
        shutdown(client, SHUT_WR);
        turns(3);
        app = answer_path;
        answer_path(held);
        let_go();
        turns(3);
        CHECK_SAYS(hear(client), "row %zu", i);
        CHECK_SAYS(ends(got, half_closes[i].ending), "row %zu: %s", i, got);
        finish();
    }
}

static void test_all(void) {
    test_a_pipeline_leaves_in_one_write();
    test_a_pipeline_cut_anywhere();
    test_an_answer_that_is_late_keeps_the_order();
    test_read_ahead_is_bounded();
    test_answers_that_nobody_reads_are_bounded();
    test_proxied_connections();
    test_refusals_after_what_was_good();
    test_deadlines();
    test_each_head_has_its_deadline();
    test_minimum_rate_of_bodies();
    test_minimum_rate_of_a_client_that_did_not_wait();
    test_failing_bodies();
    test_a_client_that_leaves_with_its_body();
    test_a_poller_that_fails_with_the_body();
    test_calls_before_their_bodies_are_few();
    test_a_full_disk();
    test_a_full_disk_while_the_application_has_the_request();
    test_max_keep_alive();
    test_half_closed_clients_get_all_answers();
}

int main(void) {
    return test_both_pollers(test_all);
}

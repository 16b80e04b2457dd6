/* SPDX-License-Identifier: MIT
 *
 * Budgets over all clients: many that take all there is and never go on, one beside them that is
 * served, and an application that still has what is its own.
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "serving.h"

#define UPLOAD "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n"

enum { CROWD = 40 };

static int crowd[CROWD];
static char portion[2001];

static rd_ledger_row *row(rd_ledger_kind kind) {
    return &server->conns.ledger.rows[kind];
}

/* Starts as if the process could have this many descriptors. */
static void start_with_descriptors(rlim_t limit) {
    struct rlimit before, fewer;
    getrlimit(RLIMIT_NOFILE, &before);
    fewer = (struct rlimit){limit, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &fewer);
    start_listening(answer_path);
    setrlimit(RLIMIT_NOFILE, &before);
}

/* Each client sends this, and then nothing more. */
static void gather(int count, const char *head, const char *more) {
    for (int i = 0; i < count; i++) {
        say(crowd[i] = join(), head);
        turns(1);
        if (more != NULL) say(crowd[i], more);
        turns(2);
    }
}

static void leave(int count) {
    for (int i = 0; i < count; i++) close(crowd[i]);
    turns(4);
}

static int count_answered(int count, const char *with) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        hear(crowd[i]);
        if (strstr(got, with) != NULL) found++;
    }
    return found;
}

static void check_bystander(void) {
    int other = join();
    CHECK(!ask(other, GET("/bystander")));
    CHECK(ends(got, "/bystander"));
    close(other);
    turns(2);
}

static bool has_field(const char *line) {
    return strstr(got, line) != NULL;
}

static void check_told_once(int code) {
    CHECK_INT(server->incidents.count, 1);
    CHECK_INT(server->incidents.kept[0].code, code);
}

/* 64 descriptors for clients, 4 of them only for bodies. */
static void test_files_of_bodies(void) {
    settings.body_memory_bytes = 1000;
    start_with_descriptors(128);
    CHECK_INT(server->accepting.limit, 60);
    gather(30, UPLOAD, portion);
    CHECK_INT(row(RD_LEDGER_BODY_FILES)->held, 16);
    CHECK_INT(row(RD_LEDGER_BODY_FILES)->refused, 14);
    CHECK(row(RD_LEDGER_DESCRIPTORS)->held <= 64);
    CHECK_INT(atomic_load(&server->score->body_files), 16);
    CHECK_INT(atomic_load(&server->score->body_files_refused), 14);
    check_told_once(RD_ERR_BODY_DESCRIPTOR);
    CHECK_INT(count_answered(30, "HTTP/1.1 503 "), 14);
    check_bystander();
    say(crowd[0], portion); /* one of the first clients continues */
    turns(3);
    CHECK(!hear(crowd[0]) && begins(got, "HTTP/1.1 200 "));
    leave(30);
    CHECK_INT(row(RD_LEDGER_BODY_FILES)->held, 0);
    CHECK_INT(row(RD_LEDGER_DESCRIPTORS)->held, 0);
    end();
}

/* Files count like connections: new clients wait, and do not take descriptors of the application.
 */
static void test_accepting_pauses_before_the_last_descriptor(void) {
    settings.body_memory_bytes = 1000;
    start_with_descriptors(64); /* 32 for clients, 2 of them only for bodies; bodies may have 8 */
    gather(8, UPLOAD, portion);
    CHECK_INT(row(RD_LEDGER_DESCRIPTORS)->held, 16);
    CHECK(!server->accepting.paused);
    for (int i = 8; i < 24; i++) crowd[i] = join();
    turns(1);
    CHECK_INT(row(RD_LEDGER_DESCRIPTORS)->held, 32);
    CHECK(server->accepting.paused);
    int late = dial();
    say(late, GET("/late"));
    turns(3);
    CHECK(!hear(late) && got_len == 0);
    close(crowd[0]);
    CHECK(!talk(late, "/late"));
    close(late);
    for (int i = 1; i < 24; i++) close(crowd[i]);
    turns(4);
    CHECK_INT(row(RD_LEDGER_DESCRIPTORS)->held, 0);
    end();
}

static void test_disk_of_bodies(void) {
    settings.body_memory_bytes = 1000;
    settings.total_body_bytes = 20000;
    start_with_descriptors(1024);
    gather(20, UPLOAD, portion);
    CHECK(row(RD_LEDGER_BODY_DISK)->held <= 20000);
    CHECK_INT(row(RD_LEDGER_BODY_DISK)->held, 2000 * row(RD_LEDGER_BODY_FILES)->held);
    CHECK_INT(row(RD_LEDGER_BODY_FILES)->held, 9); /* 2000 bytes are left, one needs 4000 */
    check_told_once(RD_ERR_BODY_DISK);
    CHECK_INT(count_answered(20, "HTTP/1.1 507 "), 11);
    check_bystander();
    leave(20);
    CHECK_INT(row(RD_LEDGER_BODY_DISK)->held, 0);
    end();
}

/* The application may change its environment at any time. The server read it before. */
static void test_the_folder_of_bodies_stays(void) {
    static char body[200000];
    memset(body, 'x', sizeof(body) - 1);
    unsetenv("TMPDIR");
    start_with_descriptors(1024);
    setenv("TMPDIR", "/nonexistent", 1);
    int client = join();
    say(client, "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 199999\r\n\r\n");
    uint64_t stored = 0;
    for (size_t at = 0; at < sizeof(body) - 1 || (stored == 0 && server->counts.requests == 0);) {
        const ssize_t sent = send(client, body + at, sizeof(body) - 1 - at, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) break; /* the upload was refused */
        if (sent > 0) at += (size_t)sent;
        turns(1);
        stored += row(RD_LEDGER_BODY_DISK)->held;
    }
    CHECK(stored > 0);
    CHECK(!talk(client, "\r\n\r\n") && begins(got, "HTTP/1.1 200 "));
    unsetenv("TMPDIR");
    close(client);
    turns(3);
    end();
}

/* It reserves nothing, and is refused before its body has come. */
static void test_a_body_that_will_not_fit(void) {
    settings.total_body_bytes = 100000;
    start_with_descriptors(1024);
    int client = join();
    CHECK(ask(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n") ||
          begins(got, "HTTP/1.1 507 "));
    CHECK(begins(got, "HTTP/1.1 507 "));
    gather(20, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", portion);
    CHECK_INT(count_answered(20, "507"), 0);
    CHECK_INT(row(RD_LEDGER_BODY_DISK)->held, 0);
    close(client);
    leave(20);
    end();
}

static void test_the_log_is_told_again_after_a_second(void) {
    settings.total_body_bytes = 100000;
    start_with_descriptors(1024);
    static const struct {
        uint64_t ms;
        unsigned lines;
    } steps[] = {{0, 1}, {999, 1}, {1, 2}, {500, 2}};
    for (size_t i = 0; i < 4; i++) {
        pass_ms(steps[i].ms);
        gather(1, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n", NULL);
        leave(1);
        CHECK_INT(server->incidents.count, steps[i].lines);
    }
    CHECK_INT(server->counts.refused, 4);
    end();
}

/* More heads than there is room for. A client with a small head is served. */
static void test_heads_that_never_end(void) {
    static char head[40001];
    memset(head, 'x', sizeof(head) - 1);
    memcpy(head, "GET / HTTP/1.1\r\nHost: a\r\nX: ", 28);
    settings.total_input_bytes = 1 << 20;
    start_with_descriptors(1024);
    for (int i = 0; i < CROWD; i++) {
        say(crowd[i] = join(), head);
        turns(2);
        CHECK(row(RD_LEDGER_INPUT)->held <= 1 << 20);
    }
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 21 * (65536 - RD_LEDGER_FREE));
    check_told_once(RD_ERR_INPUT_FULL);
    CHECK_INT(count_answered(CROWD, "HTTP/1.1 503 "), CROWD - 21);
    check_bystander();
    int cut = join();
    say(cut, "GET /cut HTTP/1.1\r\nHo");
    turns(2);
    CHECK(!ask(cut, "st: a\r\n\r\n") && ends(got, "/cut"));
    close(cut);
    leave(CROWD);
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 0);
    end();
}

/* Heads of requests that wait for the application, and the bytes that were sent behind them. */
static void test_what_was_read_ahead(void) {
    static char ahead[40001];
    memset(ahead, 'x', sizeof(ahead) - 1);
    memcpy(ahead, "GET / HTTP/1.1\r\nHost: a\r\nX: ", 28);
    settings.total_input_bytes = 1 << 20;
    start_with_descriptors(1024);
    app = hold;
    crowd[0] = join();
    say(crowd[0], GET("/held"));
    turns(2);
    say(crowd[0], ahead);
    turns(2);
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 65536 - RD_LEDGER_FREE);
    rd_ledger_limit(&server->conns.ledger, RD_LEDGER_INPUT, 1000);
    say(crowd[0], ahead);
    turns(2);
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 0);
    check_told_once(RD_ERR_INPUT_FULL);
    rd_loop_lock(&server->loop);
    answer_path(held);
    rd_loop_unlock(&server->loop);
    turns(2);
    hear(crowd[0]);
    CHECK(has_field("connection: close") && ends(got, "/held"));
    leave(1);
    end();
}

/* Bytes without room in memory go to a file. */
static void test_bodies_in_memory(void) {
    static char body[30001];
    memset(body, 'x', sizeof(body) - 1);
    settings.total_input_bytes = 100000;
    start_with_descriptors(1024);
    gather(CROWD, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30001\r\n\r\n", body);
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 6 * (32768 - RD_LEDGER_FREE));
    CHECK_INT(row(RD_LEDGER_BODY_FILES)->held, CROWD - 6);
    CHECK_INT(server->counts.refused, 0);
    for (int i = 0; i < CROWD; i++) {
        CHECK(!ask(crowd[i], "y"));
        CHECK(begins(got, "HTTP/1.1 200 "));
    }
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 0);
    leave(CROWD);
    end();
}

static void test_all(void) {
    memset(portion, 'x', sizeof(portion) - 1);
    test_files_of_bodies();
    test_accepting_pauses_before_the_last_descriptor();
    test_disk_of_bodies();
    test_the_folder_of_bodies_stays();
    test_a_body_that_will_not_fit();
    test_the_log_is_told_again_after_a_second();
    test_heads_that_never_end();
    test_what_was_read_ahead();
    test_bodies_in_memory();
}

int main(void) {
    return test_both_pollers(test_all);
}

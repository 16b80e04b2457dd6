/* SPDX-License-Identifier: MIT
 *
 * A server with a static folder, against server/files.h and files/static_file.h: who answers what,
 * in which order, and how. The table of rules runs elsewhere, over the whole server.
 */
#include "server/files.h"

#include <sys/resource.h>
#include <unistd.h>

#include "folder.h"
#include "files/file_body.h"
#include "files/file_open.h"
#include "serving.h"

#define ASK(method, path, fields) method " " path " HTTP/1.1\r\nHost: a\r\n" fields "\r\n"

static char large[300000];

static void serve(bool alone) {
    start(answer_path);
    CHECK_INT(rd_files_open(server, folder, alone), 0);
}

/* A cold file needs one more turn for each request. */
static bool ask_slowly(int client, const char *text) {
    say(client, text);
    turns(10);
    return hear(client);
}

/* Reads the answers to these bytes, until the end of the connection or a pause. */
static void ask_once(const char *requests) {
    int client = join();
    ask_slowly(client, requests);
    close(client);
    turns(2);
}

static bool has(const char *text) {
    return strstr(got, text) != NULL;
}

static void test_files_and_the_application(void) {
    make_text("a.txt", "hello");
    serve(false);
    ask_once(GET("/a.txt") GET("/app") ASK("POST", "/a.txt", "Content-Length: 0\r\n")
                 GET("/a.txt"));
    const char *second = strstr(got, "\r\n\r\nhello");
    CHECK(second != NULL && begins(got, "HTTP/1.1 200 OK\r\n"));
    CHECK(has("\r\n\r\n/appHTTP/1.1") && has("\r\n\r\n/a.txtHTTP/1.1"));
    CHECK(ends(got, "\r\n\r\nhello"));
    rd_server_write_scores(server);
    CHECK_INT(atomic_load(&server->score->static_answers), 2);
    CHECK_INT(server->counts.requests, 2);
    end();
}

static void test_fields(void) {
    make_text("b.css", "p{}");
    serve(false);
    ask_once(ASK("HEAD", "/b.css?x=1", ""));
    CHECK(has("\r\ncontent-type: text/css; charset=utf-8\r\n") && has("\r\ncontent-length: 3\r\n"));
    CHECK(has("\r\nlast-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
    CHECK(has("\r\ncache-control: max-age=3600\r\n") && has("\r\naccept-ranges: bytes\r\n"));
    CHECK(has("\r\nx-content-type-options: nosniff\r\n") && !has("vary"));
    CHECK(ends(got, "\r\n\r\n"));
    make_file("future", "x", 1, 9300000000); /* RFC 9110 section 8.8.2.1: no date in the future */
    ask_once(ASK("HEAD", "/future", "If-Modified-Since: Sat, 01 Jan 2280 00:00:00 GMT\r\n"));
    CHECK(begins(got, "HTTP/1.1 200 ") && has("\r\netag: ") && !has("last-modified"));
    ask_once(ASK("HEAD", "/b.css", ""));
    const char *tag = strstr(got, "\r\netag: ");
    if (!CHECK(tag != NULL)) return;
    char request[256];
    snprintf(request, sizeof(request), ASK("GET", "/b.css", "If-None-Match: %.*s\r\n"),
             (int)strcspn(tag + 8, "\r"), tag + 8);
    ask_once(request);
    CHECK(begins(got, "HTTP/1.1 304 ") && has("\r\netag: ") && !has("content-type"));
    ask_once(ASK("GET", "/b.css", "If-Match: \"x\"\r\n"));
    CHECK(begins(got, "HTTP/1.1 412 ") && has("\r\ncontent-length: 0\r\n"));
    end();
}

static void test_ranges(void) {
    make_text("r.txt", "0123456789");
    serve(false);
    ask_once(ASK("GET", "/r.txt", "Range: bytes=2-4\r\n"));
    CHECK(begins(got, "HTTP/1.1 206 ") && has("\r\ncontent-range: bytes 2-4/10\r\n"));
    CHECK(has("\r\ncontent-length: 3\r\n") && ends(got, "\r\n\r\n234"));
    ask_once(ASK("GET", "/r.txt", "Range: bytes=0-1,5-6\r\n"));
    CHECK(has("\r\ncontent-type: multipart/byteranges; boundary="));
    CHECK(has("\r\ncontent-range: bytes 0-1/10\r\n\r\n01\r\n--"));
    CHECK(has("\r\ncontent-range: bytes 5-6/10\r\n\r\n56\r\n--"));
    CHECK(ends(got, "--\r\n"));
    const char *length = strstr(got, "content-length: "), *body = strstr(got, "\r\n\r\n");
    CHECK(length != NULL && body != NULL);
    CHECK_INT(atoi(length + 16), got_len - (size_t)(body + 4 - got));
    ask_once(ASK("GET", "/r.txt", "Range: bytes=10-\r\n"));
    CHECK(begins(got, "HTTP/1.1 416 ") && has("\r\ncontent-range: bytes */10\r\n"));
    CHECK(!has("cache-control"));
    ask_once(ASK("GET", "/r.txt", "Range: bytes=0-1\r\nRange: bytes=2-3\r\n"));
    CHECK(begins(got, "HTTP/1.1 200 "));
    end();
}

static void test_encodings(void) {
    make_text("e.js", "original");
    make_text("e.js.gz", "gz");
    serve(false);
    ask_once(ASK("GET", "/e.js", "Accept-Encoding: gzip, br\r\n"));
    CHECK(has("\r\ncontent-encoding: gzip\r\n") && has("\r\nvary: accept-encoding\r\n"));
    CHECK(has("-gz\"\r\n") && has("\r\ncontent-type: text/javascript; charset=utf-8\r\n"));
    ask_once(ASK("GET", "/e.js", "Accept-Encoding: gzip\r\nRange: bytes=1-1\r\n"));
    CHECK(begins(got, "HTTP/1.1 206 ") && has("\r\ncontent-encoding: gzip\r\n"));
    CHECK(ends(got, "\r\n\r\nz"));
    /* A body of several parts would not have the coding that the field names. */
    ask_once(ASK("GET", "/e.js", "Accept-Encoding: gzip\r\nRange: bytes=0-0,1-1\r\n"));
    CHECK(begins(got, "HTTP/1.1 200 ") && has("\r\ncontent-encoding: gzip\r\n"));
    CHECK(ends(got, "\r\n\r\ngz"));
    ask_once(ASK("GET", "/e.js", ""));
    CHECK(!has("content-encoding") && has("\r\nvary: accept-encoding\r\n") && has("original"));
    end();
}

static void test_nothing_but_the_folder(void) {
    mkdir(in_folder("sub"), 0755);
    make_text("sub/index.html", "index");
    serve(true);
    ask_once(GET("/none") ASK("POST", "/a.txt", "Content-Length: 0\r\n") GET("/sub?a=b"));
    CHECK(begins(got, "HTTP/1.1 404 ") && has("not found\n"));
    CHECK(has("HTTP/1.1 405 ") && has("\r\nallow: GET, HEAD\r\n"));
    CHECK(has("HTTP/1.1 301 ") && has("\r\nlocation: /sub/?a=b\r\n"));
    make_text("404.html", "<p>gone");
    ask_once(GET("/none"));
    CHECK(begins(got, "HTTP/1.1 404 ") && has("<p>gone") && has("text/html"));
    unlink(in_folder("404.html"));
    end();
}

/* One client with many requests ahead, and another one: both make progress, and no answer is lost.
 */
static void test_each_gets_one_a_round(void) {
    char requests[400 * sizeof(GET("/t"))];
    size_t len = 0, answers = 0;
    make_text("t", "t");
    serve(false);
    for (int i = 0; i < 400; i++) len += (size_t)sprintf(requests + len, "%s", GET("/t"));
    int greedy = join(), other = join();
    say(greedy, requests);
    say(other, GET("/t"));
    turns(2);
    CHECK(!hear(other) && has("\r\n\r\nt"));
    for (int i = 0; i < 20; i++) {
        turns(1);
        hear(greedy);
        for (const char *at = got; (at = strstr(at, "\r\n\r\nt")) != NULL; at++) answers++;
    }
    CHECK_INT(answers, 400);
    close(greedy);
    close(other);
    end();
}

/* The descriptor is shared, and closed when the last answer has left. */
static void test_many_from_one_descriptor(void) {
    int clients[8];
    memset(large, 'x', sizeof(large));
    make_file("large", large, sizeof(large), WRITTEN);
    settings.static_cache_files = 1;
    serve(false);
    for (int i = 0; i < 8; i++) {
        clients[i] = join();
        say(clients[i], GET("/large"));
    }
    turns(2);
    rd_map_node *node = rd_map_find(&server->files.folder->cache.entries, RD_SLICE("large"));
    rd_file_entry *entry = RD_CONTAINER(node, rd_file_entry, node);
    rd_file *file = entry->is.variants[RD_CODING_IDENTITY]->file;
    CHECK_INT(file->refs, 9);
    ask_once(GET("/t")); /* its entry replaces the other one */
    CHECK_INT(file->refs, 8);
    for (int i = 0; i < 8; i++) {
        size_t total = 0;
        for (int j = 0; j < 40 && total < sizeof(large); j++) {
            turns(1);
            hear(clients[i]);
            total += got_len;
        }
        CHECK(total > sizeof(large));
        close(clients[i]);
    }
    end();
}

static void test_a_file_that_shrinks(void) {
    make_file("large", large, sizeof(large), WRITTEN);
    serve(false);
    int client = join();
    say(client, GET("/large"));
    turns(1);
    CHECK_INT(truncate(in_folder("large"), 10), 0);
    bool ended = false;
    for (int i = 0; i < 40 && !ended; i++) {
        turns(1);
        ended = hear(client);
    }
    CHECK(ended);
    CHECK_INT(server->conns.count, 0);
    CHECK_INT(server->incidents.count, 1);
    CHECK_INT(server->incidents.kept[0].code, RD_ERR_FILE_CUT);
    CHECK_INT(server->counts.refused, 0);
    close(client);
    end();
}

/* Each answer that sends the file is cut. The log has one line a second. */
static void test_lines_about_a_file_that_shrinks(void) {
    static const struct {
        uint64_t ms;
        unsigned lines;
    } steps[] = {{0, 1}, {999, 1}, {1, 2}, {500, 2}};
    settings.static_cache_files = 1;
    serve(false);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        char name[16], request[64];
        snprintf(name, sizeof(name), "shrinks%zu", i);
        snprintf(request, sizeof(request), "GET /%s HTTP/1.1\r\nHost: a\r\n\r\n", name);
        make_file(name, large, sizeof(large), WRITTEN);
        pass_ms(steps[i].ms);
        int client = join();
        say(client, request);
        turns(1);
        CHECK_INT(truncate(in_folder(name), 10), 0);
        for (int j = 0; j < 40 && server->conns.count > 0; j++) {
            turns(1);
            hear(client);
        }
        CHECK_INT(server->conns.count, 0);
        CHECK_INT(server->incidents.count, steps[i].lines);
        close(client);
    }
    end();
}

/* With the bytes between its ranges, the length would be larger than a length can be. */
static void answer_endless(rd_request *request) {
    rd_field fields[RD_FILE_BODY_FIELDS];
    rd_response_head head = {.status = 200, .fields = fields};
    rd_file *file = rd_file_new(&server->loop, open(in_folder("large"), O_RDONLY | O_CLOEXEC), 0);
    const rd_file_body body = {.file = file, .size = INT64_MAX};
    rd_boundaries boundaries = rd_boundaries_random();
    rd_file_body_send_wanted(request, &head, fields, &body, &(rd_validators){.modified = -1},
                             &boundaries);
    rd_file_unref(file);
}

static void test_the_longest_file(void) {
    make_file("large", large, sizeof(large), WRITTEN);
    start(answer_endless);
    ask_once(ASK("GET", "/", "Range: bytes=0-9,10-\r\n"));
    CHECK(begins(got, "HTTP/1.1 200 ") && has("\r\ncontent-length: 9223372036854775807\r\n"));
    ask_once(ASK("GET", "/", "Range: bytes=0-0,2-2\r\n"));
    CHECK(begins(got, "HTTP/1.1 206 ") && ends(got, "--\r\n"));
    end();
}

/* The server cannot know whether the file exists. It neither asks the application nor sends a 404.
 */
static void test_no_descriptor_is_left(void) {
    struct rlimit before, limit;
    make_file("large", large, sizeof(large), WRITTEN);
    serve(false);
    int client = join();
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(lowest);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)lowest;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (dup(0) >= 0) {
    }
    ask_slowly(client, GET("/large"));
    CHECK(begins(got, "HTTP/1.1 503 ") && has("\r\nretry-after: 1\r\n"));
    ask_slowly(client, GET("/app"));
    CHECK(ends(got, "\r\n\r\n/app"));
    ask_slowly(client, GET("/"));
    CHECK(ends(got, "\r\n\r\n/"));
    setrlimit(RLIMIT_NOFILE, &before);
    ask_slowly(client, GET("/t"));
    CHECK(ends(got, "\r\n\r\nt"));
    close(client);
    turns(2);
    end();
}

/* The limit of connections leaves descriptors for files, and the files leave descriptors for
 * connections. */
static void test_room_for_descriptors(void) {
    struct rlimit before, limit;
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = 464;
    setrlimit(RLIMIT_NOFILE, &limit);
    serve(false);
    CHECK_INT(server->files.folder->cache.most_open, 93);
    CHECK_INT(server->accepting.limit, 282); /* 25 of 400 are reserved for bodies */
    end();
    settings.static_cache_files = 10;
    serve(false);
    CHECK_INT(server->files.folder->cache.most_open, 10);
    CHECK_INT(server->accepting.limit, 365);
    end();
    settings.max_connections = 50;
    serve(false);
    CHECK_INT(server->files.folder->cache.most_open, 256);
    CHECK_INT(server->accepting.limit, 50);
    end();
    setrlimit(RLIMIT_NOFILE, &before);
}

static uint64_t files_open(void) {
    return server->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held - server->conns.count;
}

/* Files of slow clients leave descriptors for the other clients, and so do new connections. */
static void test_files_of_slow_clients(void) {
    char request[64];
    int clients[5];
    for (int i = 0; i < 5; i++) {
        snprintf(request, sizeof(request), "slow%d", i);
        make_file(request, large, sizeof(large), WRITTEN);
    }
    start_listening(answer_path);
    CHECK_INT(rd_files_open(server, folder, false), 0);
    rd_file_cache *cache = &server->files.folder->cache;
    cache->most_open = 2;
    server->conns.ledger.body_files_kept = 0;
    rd_ledger_limit(&server->conns.ledger, RD_LEDGER_DESCRIPTORS, 8);
    for (int i = 0; i < 5; i++) {
        clients[i] = join();
        snprintf(request, sizeof(request), "GET /slow%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
        if (i < 4) ask_slowly(clients[i], request);
    }
    CHECK_INT(files_open(), 3); /* next to 5 connections */
    CHECK(begins(got, "HTTP/1.1 503 "));
    ask_slowly(clients[4], GET("/slow2")); /* the last file that is kept open */
    CHECK(begins(got, "HTTP/1.1 200 "));
    CHECK_INT(files_open(), 3);
    ask_slowly(clients[3], GET("/t"));
    CHECK(ends(got, "\r\n\r\nt"));
    int late = dial();
    say(late, GET("/t"));
    turns(4);
    CHECK(server->accepting.paused && !hear(late) && got_len == 0);
    for (int i = 0; i < 5; i++) close(clients[i]);
    turns(4);
    CHECK(!server->accepting.paused && !hear(late) && ends(got, "\r\n\r\nt"));
    CHECK_INT(files_open(), cache->open);
    close(late);
    turns(2);
    end();
}

/* Whether the system knows without the disk that a file is missing; Linux does since 5.12. */
static bool knows_what_is_missing(const char *name) {
    rd_file_root root;
    CHECK_INT(rd_file_root_open(&root, folder), 0);
    CHECK(access(in_folder(name), F_OK) != 0); /* in memory from now on */
    const bool knows = rd_file_is_absent(&root, name);
    rd_file_root_close(&root);
    return knows;
}

/* A request that a file's answer lets into a full queue is refused in the same turn. The next turn
 * may be far away. */
static void test_excess_behind_a_file(void) {
    if (!knows_what_is_missing("app")) return; /* then the question takes more turns */
    settings.max_queue = 1;
    serve(false);
    ask_once(GET("/t")); /* the file is cached from now on */
    int waiting = join(), client = join();
    say(waiting, GET("/app"));
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, false);
    CHECK_INT(server->queue.len, 1);
    say(client, GET("/t") GET("/app"));
    rd_server_turn(server, wait_in_poll, false);
    CHECK(rd_list_is_empty(&server->queue.excess));
    CHECK_INT(server->counts.dropped, 1);
    rd_loop_unlock(&server->loop);
    turns(2);
    CHECK(!hear(client) && has("\r\n\r\ntHTTP/1.1 503 "));
    close(waiting);
    close(client);
    turns(2);
    end();
}

/* ---- while the disk does not answer ---- */

/* A cached file is served. Only a client that asks for another file waits, and its answers stay in
 * order. */
static void test_a_cold_file_delays_nobody_else(void) {
    make_text("cold", "cold");
    serve(false);
    ask_once(GET("/t"));
    hold_volume(&server->loop, RD_DISK_FOLDER);
    int waiting = join(), second = join(), client = join();
    say(waiting, GET("/cold") GET("/t") GET("/app"));
    say(second, GET("/cold"));
    turns(4);
    CHECK(!hear(waiting) && got_len == 0);
    ask(client, GET("/t") ASK("POST", "/app", "Content-Length: 0\r\n"));
    CHECK(has("\r\n\r\ntHTTP/1.1 200 OK\r\n") && ends(got, "\r\n\r\n/app"));
    CHECK_INT(server->files.folder->cache.openings.count, 1);
    release_jobs(&server->loop);
    turns(10);
    CHECK(!hear(waiting) && has("\r\n\r\ncoldHTTP/1.1") && has("\r\n\r\ntHTTP/1.1"));
    CHECK(ends(got, "\r\n\r\n/app"));
    CHECK(!hear(second) && ends(got, "\r\n\r\ncold"));
    close(waiting);
    close(second);
    close(client);
    turns(2);
    end();
}

/* A client that leaves leaves nothing behind, and the others get their answers. */
static void test_clients_that_leave_meanwhile(void) {
    serve(true);
    hold_volume(&server->loop, RD_DISK_FOLDER);
    int gone = join(), stays = join();
    say(gone, GET("/cold"));
    say(stays, GET("/cold"));
    turns(2);
    CHECK_INT(server->http.requests.live, 2);
    close(gone);
    turns(3);
    CHECK_INT(server->http.requests.live, 1);
    release_jobs(&server->loop);
    turns(4);
    CHECK(!hear(stays) && ends(got, "\r\n\r\ncold"));
    close(stays);
    turns(2);
    end();
}

static void test_a_stop_meanwhile(void) {
    serve(true);
    hold_volume(&server->loop, RD_DISK_FOLDER);
    int client = join();
    say(client, GET("/cold"));
    turns(2);
    rd_server_stop(server, RD_STOP_NOW);
    turns(2);
    CHECK(rd_server_is_done(server));
    release_jobs(&server->loop);
    close(client);
    end();
}

static void test_patience_with_the_disk(void) {
    settings.queue_timeout_ms = 2000;
    serve(false);
    hold_volume(&server->loop, RD_DISK_FOLDER);
    int client = join(), late = join();
    say(client, GET("/cold"));
    turns(2);
    later(1500);
    say(late, GET("/cold"));
    turns(2);
    later(600);
    CHECK_SAYS(!hear(client) && begins(got, "HTTP/1.1 503 ") && has("the disk does not answer\n"),
               "%s", got);
    CHECK(!hear(late) && got_len == 0);
    release_jobs(&server->loop);
    turns(4);
    CHECK(!hear(late) && ends(got, "\r\n\r\ncold"));
    close(client);
    close(late);
    turns(2);
    end();
}

static int ask_for_cold(int number) {
    char request[128];
    int client = join();
    snprintf(request, sizeof(request), "GET /cold%d HTTP/1.1\r\nHost: a\r\n\r\n", number);
    say(client, request);
    return client;
}

/* However many files they wait for, a turn answers only a few requests that have waited too long.
 */
static void test_many_that_wait_too_long(void) {
    enum { COUNT = 300, A_TURN = 256 };
    static int clients[COUNT];
    settings.queue_timeout_ms = 2000;
    serve(true);
    hold_volume(&server->loop, RD_DISK_FOLDER);
    for (int i = 0; i < COUNT; i++) clients[i] = ask_for_cold(i % 3);
    turns(3);
    CHECK_INT(server->files.folder->cache.openings.count, 3);
    pass_ms(2000);
    turns(1);
    CHECK_INT(server->counts.dropped, A_TURN);
    pass_ms(1);
    turns(1);
    CHECK_INT(server->counts.dropped, COUNT);
    turns(2);
    for (int i = 0; i < COUNT; i++) {
        CHECK_SAYS(!hear(clients[i]) && begins(got, "HTTP/1.1 503 "), "%d: %s", i, got);
        close(clients[i]);
    }
    release_jobs(&server->loop);
    turns(4);
    end();
}

/* More different files than may be opened at once: the rest waits, and all clients get their
 * answers. */
static void test_more_openings_than_may_be_in_flight(void) {
    enum { COUNT = RD_FILE_OPENINGS_MAX + 20 };
    static int clients[COUNT];
    char request[128];
    settings.static_cache_files = 4;
    serve(false);
    hold_volume(&server->loop, RD_DISK_FOLDER);
    for (int i = 0; i < COUNT; i++) {
        snprintf(request, sizeof(request), "cold%d", i);
        make_text(request, request);
        clients[i] = join();
        snprintf(request, sizeof(request), "GET /cold%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
        say(clients[i], request);
    }
    turns(3);
    CHECK_INT(server->files.folder->cache.openings.count, RD_FILE_OPENINGS_MAX);
    release_jobs(&server->loop);
    turns(10);
    for (int i = 0; i < COUNT; i++) {
        snprintf(request, sizeof(request), "\r\n\r\ncold%d", i);
        CHECK_SAYS(!hear(clients[i]) && ends(got, request), "%d: %s", i, got);
        close(clients[i]);
    }
    turns(2);
    end();
}

/* A client that comes when openings end waits behind those that have waited already. */
static void test_the_line_for_openings(void) {
    static int clients[RD_FILE_OPENINGS_MAX + 2];
    settings.static_cache_files = 4;
    serve(false);
    hold_volume(&server->loop, RD_DISK_FOLDER);
    for (int i = 0; i <= RD_FILE_OPENINGS_MAX; i++) clients[i] = ask_for_cold(i);
    turns(3);
    release_jobs(&server->loop);
    clients[RD_FILE_OPENINGS_MAX + 1] = ask_for_cold(RD_FILE_OPENINGS_MAX + 1);
    rd_loop_lock(&server->loop);
    rd_loop_run_posted(&server->loop);
    rd_conn_read_now(joined);
    CHECK_INT(server->files.folder->cache.openings.count, 0);
    rd_loop_unlock(&server->loop);
    turns(10);
    for (int i = 0; i < RD_FILE_OPENINGS_MAX + 2; i++) {
        CHECK_SAYS(!hear(clients[i]) && strstr(got, "\r\n\r\ncold") != NULL, "%d: %s", i, got);
        close(clients[i]);
    }
    turns(2);
    end();
}

static void test_folders_that_cannot_be_served(void) {
    start(answer_path);
    CHECK(rd_files_open(server, "/nowhere/at all", false) != 0 && errno == ENOENT);
    CHECK(rd_files_open(server, in_folder("a.txt"), false) != 0 && errno == ENOTDIR);
    end();
}

int main(void) {
    rd_settings_init(&settings);
    make_folder();
    test_files_and_the_application();
    test_fields();
    test_ranges();
    test_encodings();
    test_nothing_but_the_folder();
    test_each_gets_one_a_round();
    test_many_from_one_descriptor();
    test_a_file_that_shrinks();
    test_lines_about_a_file_that_shrinks();
    test_the_longest_file();
    test_no_descriptor_is_left();
    test_room_for_descriptors();
    test_files_of_slow_clients();
    test_excess_behind_a_file();
    test_a_cold_file_delays_nobody_else();
    test_clients_that_leave_meanwhile();
    test_a_stop_meanwhile();
    test_patience_with_the_disk();
    test_many_that_wait_too_long();
    test_more_openings_than_may_be_in_flight();
    test_the_line_for_openings();
    test_folders_that_cannot_be_served();
    return check_summary();
}

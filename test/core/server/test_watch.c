/* SPDX-License-Identifier: MIT
 *
 * Leaders, the watch thread and their clients at the same time: threads that take the loop from
 * each other as the binding's do, with a mutex in place of the GVL, and calls that block with and
 * without it. Every request is answered, in order, and refusals need nobody. Meant for
 * ThreadSanitizer, too.
 */
#include "check.h"
#include "leaders.h"
#include "numbered.h"

enum { CLIENTS = 6, REQUESTS = 60 };

/* Reads until the bytes end with `end`. */
static bool read_until(int fd, const char *end) {
    char got[2048];
    size_t len = 0, end_len = strlen(end);
    while (len < sizeof(got)) {
        ssize_t part = recv(fd, got + len, sizeof(got) - len, 0);
        if (part <= 0) return false;
        len += (size_t)part;
        if (len >= end_len && memcmp(got + len - end_len, end, end_len) == 0) return true;
    }
    return false;
}

static void *run_client(void *argument) {
    intptr_t failed = 0, number = (intptr_t)argument;
    int fd = dial();
    for (int i = 0; i < REQUESTS; i++) {
        char request[128], end[32];
        const char *kind = i % 10 == 3 ? "w" : i % 20 == 7 ? "s" : "x";
        snprintf(end, sizeof(end), "/%s-%d-%d", kind, (int)number, i);
        int len = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", end);
        if (send(fd, request, (size_t)len, MSG_NOSIGNAL) != len || !read_until(fd, end)) failed++;
    }
    int broken = dial();
    if (send(broken, "nonsense\r\n\r\n", 12, MSG_NOSIGNAL) != 12) failed++;
    if (!read_until(broken, "\n")) failed++;
    close(broken);
    close(fd);
    return (void *)failed;
}

static void start(void) {
    start_on(NULL);
}

static void test_clients(void) {
    pthread_t clients[CLIENTS];
    start();
    for (intptr_t i = 0; i < CLIENTS; i++) {
        pthread_create(&clients[i], NULL, run_client, (void *)i);
    }
    for (int i = 0; i < CLIENTS; i++) {
        void *failed;
        pthread_join(clients[i], &failed);
        CHECK_INT((intptr_t)failed, 0);
    }
    CHECK_INT(server->counts.requests, CLIENTS * REQUESTS);
    CHECK(atomic_load(&called) > 0);
    stop();
}

static void start_without_a_leader(void) {
    atomic_store(&over, true);
    start();
    for (int i = 0; i < LEADERS; i++) pthread_join(leaders[i].thread, NULL);
}

static void wait_for_queue(uint32_t wanted) {
    for (uint32_t len = wanted + 1; len != wanted;) {
        rd_loop_lock(&server->loop);
        len = server->queue.len;
        rd_loop_unlock(&server->loop);
    }
}

/* No thread runs the application. Broken requests are still refused, and the others are queued. */
static void test_without_a_leader(void) {
    start_without_a_leader();
    int queued = dial(), broken = dial();
    CHECK_INT(send(queued, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, MSG_NOSIGNAL), 27);
    CHECK_INT(send(broken, "nonsense\r\n\r\n", 12, MSG_NOSIGNAL), 12);
    CHECK(read_until(broken, "\n"));
    wait_for_queue(1);
    rd_server_stop(server, RD_STOP_NOW);
    rd_watch_stop(server);
    rd_server_free(server);
    close(queued);
    close(broken);
}

/* A client of the protocol of numbered.h. */
static int join_carrier(void) {
    const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    rd_server_lock(server);
    rd_conn_read_now(
        rd_conn_open(&server->conns, pair[0], &rd_transport_tcp, &numbered_protocol, &nobody));
    rd_server_unlock(server);
    return pair[1];
}

static void ask_by_number(int fd, unsigned number) {
    char message[NUMBERED_HEADER + 27];
    numbered_put_header(message, 'd', number, 27);
    memcpy(message + NUMBERED_HEADER, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    CHECK_INT(send(fd, message, sizeof(message), MSG_NOSIGNAL), sizeof(message));
}

/* The watch thread asks for a thread if there is a request to take, and again and again for the GVL
 * that this thread needs. A request that only waits for a seat of its line cannot be taken. */
static void test_what_needs_a_thread(void) {
    numbered_seats = 1;
    start_without_a_leader();
    int carrier = join_carrier(), plain = dial();
    ask_by_number(carrier, 1);
    ask_by_number(carrier, 2);
    wait_for_queue(2);
    rd_server_lock(server);
    rd_request *seated = rd_server_next_request(server, NULL);
    CHECK(seated != NULL && rd_server_next_request(server, NULL) == NULL);
    atomic_store(&called, 0);
    atomic_store(&asked_for_gvl, 0);
    rd_server_unlock(server);
    for (int i = 0; i < 3; i++) { /* each one makes the watch thread turn */
        int broken = dial();
        CHECK_INT(send(broken, "nonsense\r\n\r\n", 12, MSG_NOSIGNAL), 12);
        CHECK(read_until(broken, "\n"));
        close(broken);
    }
    CHECK_INT(atomic_load(&called), 0);
    CHECK_INT(atomic_load(&asked_for_gvl), 0);
    CHECK_INT(send(plain, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, MSG_NOSIGNAL), 27);
    while (atomic_load(&called) == 0 || atomic_load(&asked_for_gvl) < 3) pause_us(200);
    rd_server_lock(server);
    rd_server_let_go(server, seated);
    rd_server_unlock(server);
    rd_server_stop(server, RD_STOP_NOW);
    rd_watch_stop(server);
    rd_server_free(server);
    close(carrier);
    close(plain);
}

static uint64_t watch_turns(void) {
    return atomic_load(&server->score->watch_turns);
}

/* Calls are inside, and none waits for a thread. One of them may need the GVL, but only if another
 * one computes. */
static void test_calls_that_compute(void) {
    start_without_a_leader();
    atomic_store(&server->score->busy, 2);
    for (uint64_t from = watch_turns(); watch_turns() < from + 2;) pause_us(1000);
    atomic_store(&asked_for_gvl, 0);
    for (uint64_t from = watch_turns(); watch_turns() < from + 20;) pause_us(1000);
    CHECK_INT(atomic_load(&asked_for_gvl), 0);
    while (atomic_load(&asked_for_gvl) < 3) { /* computes */
    }
    rd_server_stop(server, RD_STOP_NOW);
    rd_watch_stop(server);
    rd_server_free(server);
}

/* The same, while the leader sleeps in its poll. */
static void test_calls_that_compute_beside_a_leader(void) {
    atomic_store(&over, false);
    start();
    atomic_store(&server->score->busy, 2);
    atomic_store(&asked_for_gvl, 0);
    while (atomic_load(&asked_for_gvl) < 3) { /* computes */
    }
    stop();
}

int main(void) {
    test_clients();
    test_without_a_leader();
    test_what_needs_a_thread();
    test_calls_that_compute();
    test_calls_that_compute_beside_a_leader();
    return check_summary();
}

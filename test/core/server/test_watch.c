/* SPDX-License-Identifier: MIT
 *
 * Leaders, the watch thread and their clients at the same time: threads that take the loop from
 * each other as the binding's do, with a mutex in place of the GVL, and calls that block with and
 * without it. Every request is answered, in order, and refusals need nobody. Meant for
 * ThreadSanitizer, too.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "numbered.h"
#include "server/server.h"

enum { LEADERS = 3, CLIENTS = 6, REQUESTS = 60 };

typedef struct leader {
    pthread_t thread;
    bool away;
} leader;

static rd_server *server;
static uint16_t port;
static pthread_mutex_t gvl = PTHREAD_MUTEX_INITIALIZER; /* covers current, away, inside, stuck */
static leader leaders[LEADERS];
static leader *current;
static unsigned inside;
static atomic_bool over;
static atomic_uint called;

static void pause_us(long us) {
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void need_thread(rd_server *one) {
    (void)one;
    atomic_fetch_add(&called, 1);
}

static void wait_without_gvl(rd_server *one, int64_t timeout_us) {
    pthread_mutex_unlock(&gvl);
    rd_loop_wait(&one->loop, &one->lead.found,
                 timeout_us < 0 || timeout_us > 20000 ? 20000 : timeout_us);
    atomic_store(&one->lead.phase, RD_PHASE_AWAKE);
    rd_watch_begin(&one->watch);
    pthread_mutex_lock(&gvl);
}

static void answer(rd_request *request) {
    rd_slice path = rd_request_slice(request, request->head.path);
    rd_response_head head = {.status = 200, .length = (int64_t)path.len};
    if (request->conn == NULL) return;
    request->responder->start(request, &head);
    request->responder->write(request, path.ptr, path.len);
    request->responder->finish(request);
}

/* Computes with the GVL. The first call does so until the watch thread has asked for another
 * leader, because requests of other clients wait meanwhile. */
static void keep_gvl(void) {
    for (int tries = 0; tries == 0 || (atomic_load(&called) == 0 && tries < 24000); tries++) {
        pause_us(2500);
    }
}

/* "/w…" waits without the GVL, "/s…" waits with it. */
static void call_application(leader *self, const rd_request *request) {
    char kind = request->bytes[request->head.path.at + 1];
    inside++;
    self->away = true;
    if (kind == 'w') {
        pthread_mutex_unlock(&gvl);
        pause_us(2500);
        pthread_mutex_lock(&gvl);
    } else if (kind == 's') {
        keep_gvl();
    }
    self->away = false;
    inside--;
}

static void lead(leader *self) {
    rd_server_lock(server);
    server->lead.may_hold = inside == 0;
    rd_server_turn(server, wait_without_gvl, true);
    rd_server_unlock(server);
    rd_request *request = NULL;
    while (current == self) {
        rd_server_lock(server);
        request = rd_server_next_request(server, request);
        rd_server_unlock(server);
        if (request == NULL) return;
        call_application(self, request);
        rd_server_lock(server);
        answer(request);
        rd_server_unlock(server);
    }
    rd_server_lock(server);
    rd_server_let_go(server, request);
    rd_conn_set_flush(&server->conns);
    rd_server_unlock(server);
}

static void *run_leader(void *argument) {
    leader *self = argument;
    pthread_mutex_lock(&gvl);
    while (!atomic_load(&over)) {
        if (current == NULL || current == self || current->away) {
            current = self;
            lead(self);
        } else {
            pthread_mutex_unlock(&gvl);
            pause_us(200);
            pthread_mutex_lock(&gvl);
        }
    }
    if (current == self) current = NULL;
    pthread_mutex_unlock(&gvl);
    return NULL;
}

static int dial(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval patience = {.tv_sec = 60};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) return -1;
    return fd;
}

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
    rd_settings settings;
    char error[RD_LISTENER_ERROR_MAX];
    rd_settings_init(&settings);
    settings.linger_timeout_ms = 50;
    server = rd_server_new(&settings);
    server->hooks.need_thread = need_thread;
    rd_listener *listener = rd_alloc_zero(sizeof(*listener));
    rd_listen_options options = {.backlog = 64, .mode = -1};
    CHECK_INT(rd_listen_tcp(listener, "127.0.0.1", 0, &options, error), 0);
    port = listener->port;
    rd_loop_lock(&server->loop);
    CHECK_INT(rd_server_add_listener(server, listener), 0);
    rd_loop_unlock(&server->loop);
    CHECK_INT(rd_watch_start(server), 0);
    for (int i = 0; i < LEADERS; i++) {
        pthread_create(&leaders[i].thread, NULL, run_leader, &leaders[i]);
    }
}

static void stop(void) {
    rd_server_stop(server, RD_STOP_NOW);
    atomic_store(&over, true);
    for (int i = 0; i < LEADERS; i++) pthread_join(leaders[i].thread, NULL);
    rd_watch_stop(server);
    rd_watch_stop(server); /* the second time there is nothing to do */
    rd_server_free(server);
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

/* The watch thread asks for a thread if there is a request to take. A request that only waits for a
 * seat of its line cannot be taken. */
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
    rd_server_unlock(server);
    for (int i = 0; i < 3; i++) { /* each one makes the watch thread turn */
        int broken = dial();
        CHECK_INT(send(broken, "nonsense\r\n\r\n", 12, MSG_NOSIGNAL), 12);
        CHECK(read_until(broken, "\n"));
        close(broken);
    }
    CHECK_INT(atomic_load(&called), 0);
    CHECK_INT(send(plain, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, MSG_NOSIGNAL), 27);
    while (atomic_load(&called) == 0) pause_us(200);
    rd_server_lock(server);
    rd_server_let_go(server, seated);
    rd_server_unlock(server);
    rd_server_stop(server, RD_STOP_NOW);
    rd_watch_stop(server);
    rd_server_free(server);
    close(carrier);
    close(plain);
}

int main(void) {
    test_clients();
    test_without_a_leader();
    test_what_needs_a_thread();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * A server whose leaders and watch thread run at the same time: threads that take the loop from
 * each other as the binding's do, with a mutex in place of the GVL, and calls that block with and
 * without it.
 */
#ifndef LEADERS_H
#define LEADERS_H

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "server/server.h"

enum { LEADERS = 3 };

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
static atomic_uint asked_for_gvl;

static void pause_us(long us) {
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void need_gvl(rd_server *one) {
    (void)one;
    atomic_fetch_add(&asked_for_gvl, 1);
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

/* Over this transport; NULL: plain. */
static void start_on(const rd_transport *transport) {
    rd_settings settings;
    char error[RD_LISTENER_ERROR_MAX];
    rd_settings_init(&settings);
    settings.linger_timeout_ms = 50;
    server = rd_server_new(&settings);
    server->hooks.need_thread = need_thread;
    server->hooks.need_gvl = need_gvl;
    rd_listener *listener = rd_alloc_zero(sizeof(*listener));
    rd_listen_options options = {.backlog = 64, .mode = -1, .transport = transport};
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

#endif

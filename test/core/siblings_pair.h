/* SPDX-License-Identifier: MIT
 *
 * Two servers with one scoreboard, and clients of the first one. Included by the tests of
 * connections that change their worker.
 */
#ifndef RD_TEST_SIBLINGS_PAIR_H
#define RD_TEST_SIBLINGS_PAIR_H

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "check.h"
#include "protocol/protocols.h"
#include "server/server.h"

enum { A, B, SERVERS };

static rd_scoreboard board;
static rd_server *servers[SERVERS];
static int inboxes[SERVERS][2];
static int clients[128];
static unsigned client_count;
static bool one_inbox; /* for both, as for a worker and its successor */
static char got[65536];
static const rd_transport *dialed = &rd_transport_tcp; /* of the listener that clients dial */
static rd_slice dialed_name;                           /* and its name */

static void wait_in_poll(rd_server *server, int64_t timeout_us) {
    (void)timeout_us;
    rd_loop_wait(&server->loop, &server->lead.found, 1000);
}

static void answer(rd_server *server, rd_request *request) {
    char text[64];
    rd_slice path = rd_request_slice(request, request->head.path);
    int len = snprintf(text, sizeof(text), "%c %.*s %d", server == servers[A] ? 'A' : 'B',
                       (int)path.len, path.ptr, (int)request->body.size);
    rd_response_head head = {.status = 200, .length = len};
    request->responder->start(request, &head);
    request->responder->write(request, text, (size_t)len);
    request->responder->finish(request);
}

/* An application that says which server and which site it is. */
__attribute__((unused)) static void answer_site(rd_server *server, rd_request *request) {
    char text[32];
    int len =
        snprintf(text, sizeof(text), "%c site %d", server == servers[A] ? 'A' : 'B', request->site);
    rd_response_head head = {.status = 200, .length = len};
    request->responder->start(request, &head);
    request->responder->write(request, text, (size_t)len);
    request->responder->finish(request);
}

static void (*app)(rd_server *server, rd_request *request) = answer;

/* One turn and all its consequences. */
static void serve(rd_server *server) {
    rd_request *request = NULL;
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    while ((request = rd_server_next_request(server, request)) != NULL) {
        if (request->conn != NULL) app(server, request);
    }
    rd_server_turn(server, wait_in_poll, true);
    rd_loop_unlock(&server->loop);
}

/* A turn of the watch thread while the leader is away. */
__attribute__((unused)) static void stand_in(rd_server *server) {
    static rd_ready_set found;
    rd_loop_lock(&server->loop);
    server->lead.watch_owns = true;
    server->lead.seen_ns = 0; /* long ago */
    rd_server_turn_apart(server, &found);
    rd_loop_unlock(&server->loop);
}

static void start(void) {
    rd_settings settings;
    rd_settings_init(&settings);
    CHECK_INT(rd_scoreboard_create(&board, SERVERS), 0);
    for (int i = 0; i < SERVERS; i++) {
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, inboxes[i]), 0);
    }
    const int outboxes[SERVERS] = {inboxes[A][1], inboxes[one_inbox ? A : B][1]};
    for (uint32_t i = 0; i < SERVERS; i++) {
        rd_server *server = servers[i] = rd_server_new(&settings);
        server->score = &board.rows[i];
        board.rows[i].state = RD_SCORE_READY;
        board.rows[i].max_threads = 1;
        rd_loop_lock(&server->loop);
        int inbox = inboxes[one_inbox ? A : i][0];
        CHECK_INT(rd_siblings_join(server, &board, i, inbox, outboxes), 0);
        rd_server_write_scores(server);
        rd_loop_unlock(&server->loop);
    }
    client_count = 0;
}

static void end(void) {
    for (int i = 0; i < SERVERS; i++) {
        rd_server_stop(servers[i], RD_STOP_NOW);
        serve(servers[i]);
        CHECK_INT(servers[i]->conns.count, 0);
        CHECK_INT(servers[i]->http.requests.live, 0);
        CHECK_INT(board.rows[i].arriving, 0);
        rd_server_free(servers[i]);
        close(inboxes[i][0]);
        close(inboxes[i][1]);
    }
    while (client_count > 0) close(clients[--client_count]);
    rd_scoreboard_close(&board);
}

/* A client of server A, as if A had accepted it; its own end. */
static int dial(void) {
    static const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    rd_server *server = servers[A];
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    rd_loop_lock(&server->loop);
    if (!rd_handover_accepted(server, pair[0], &nobody, dialed_name)) {
        const rd_protocol *protocol = rd_protocol_begin(&server->conns, dialed, &nobody);
        rd_conn_read_now(rd_conn_open(&server->conns, pair[0], dialed, protocol, &nobody));
        rd_server_write_scores(server);
    }
    rd_loop_unlock(&server->loop);
    clients[client_count++] = pair[1];
    return pair[1];
}

__attribute__((unused)) static void say(int fd, const char *text) {
    CHECK_INT(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

__attribute__((unused)) static const char *hear(int fd) {
    ssize_t len = recv(fd, got, sizeof(got) - 1, 0);
    got[len > 0 ? len : 0] = '\0';
    const char *body = strstr(got, "\r\n\r\n");
    return body == NULL ? got : body + 4;
}

/* A message with a descriptor and any content. */
__attribute__((unused)) static void send_descriptor(int inbox, int fd, const char *bytes,
                                                    size_t len) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec iov = {(void *)(uintptr_t)bytes, len};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(part), &fd, sizeof(int));
    CHECK_INT(sendmsg(inbox, &message, 0), len);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

#endif

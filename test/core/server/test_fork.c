/* SPDX-License-Identifier: MIT
 *
 * Forks (rd_server_hold() of server/server.c): the child has none of the server's sockets, finds
 * the lock free and answers nobody; the parent's poller notices nothing.
 */
#include "serving.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "server/server.h"

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

/* What is wrong with the child, as bits of its exit status. */
static int child(int listener_fd, int conn_fd) {
    int wrong = 0;
    rd_server_abandon(server);
    if (is_open(listener_fd) || is_open(conn_fd)) wrong |= 1;
    if (joined->source.fd != -1 || rd_conn_is_open(joined)) wrong |= 2;
    if (pthread_mutex_trylock(&server->loop.lock) != 0) wrong |= 4;
    const rd_response_head head = {.status = 200, .length = 2};
    if (held->responder->start(held, &head) != RD_ERR_CLOSED) wrong |= 8;
    if (held->responder->write(held, "no", 2) != RD_ERR_CLOSED) wrong |= 16;
    rd_conn_close(joined); /* this would remove it from the poller that the parent uses, too */
    return wrong;
}

static void test_fork(void) {
    start_listening(hold);
    int client = join();
    CHECK(!ask(client, GET("/held")));
    CHECK(held != NULL);
    const rd_listener *listener =
        RD_CONTAINER(server->accepting.listeners.next, rd_listener, in_server);
    const int listener_fd = listener->source.fd, conn_fd = joined->source.fd;

    rd_server_hold(server);
    const pid_t pid = fork();
    if (pid == 0) _exit(child(listener_fd, conn_fd));
    rd_server_release(server);
    int status = -1;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);

    CHECK(is_open(listener_fd) && is_open(conn_fd));
    rd_loop_lock(&server->loop);
    answer_path(held);
    rd_loop_unlock(&server->loop);
    let_go();
    app = answer_path;
    turns(2);
    CHECK(!hear(client) && ends(got, "/held"));
    CHECK(!ask(client, GET("/next")) && ends(got, "/next"));
    int other = dial();
    say(other, GET("/other"));
    CHECK(!talk(other, "/other"));
    close(other);
    close(client);
    end();
}

/* ---- bodies in files ---- */

/* Descriptors of files without a name. In the parent no thread may be about to open one. */
static int count_nameless(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        struct stat found;
        if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink == 0) count++;
    }
    return count;
}

/* Turns until a request for the application is there. */
static rd_request *take_call(void) {
    rd_request *request = NULL;
    while (request == NULL && check_failed == 0) {
        rd_loop_lock(&server->loop);
        rd_server_turn(server, wait_in_poll, true);
        request = rd_server_next_request(server, NULL);
        rd_loop_unlock(&server->loop);
    }
    return request;
}

static bool is_whole(const rd_request *request) {
    char bytes[16];
    return rd_body_read(&request->body, 0, bytes, sizeof(bytes)) == 16 &&
           memcmp(bytes, "0123456789abcdef", 16) == 0;
}

static int child_with_bodies(const rd_request *call, const rd_request *stream, int before) {
    int wrong = 0;
    rd_server_abandon(server);
    if (count_nameless() != before + 2) wrong |= 1;
    if (!is_whole(call)) wrong |= 2;
    if (!is_whole(stream)) wrong |= 4;
    return wrong;
}

static void say_part(int client) {
    char part[5000];
    memset(part, 'x', sizeof(part));
    CHECK_INT(send(client, part, sizeof(part), MSG_NOSIGNAL), sizeof(part));
}

#define POST_LONG(fields) "POST / HTTP/1.1\r\nHost: a\r\n" fields "Content-Length: 9999\r\n\r\n"

/* The child continues to read the bodies that the application has: that of a call, and that of a
 * stream that was left open. Bodies that clients still send, also to a call, and requests in the
 * queue, belong only to the parent. */
static void test_bodies_in_files(void) {
    const char *post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16\r\n\r\n0123456789abcdef";
    const int before = count_nameless();
    settings.body_memory_bytes = 4;
    start(answer_path);
    int called = join(), streaming = join(), asked = join(), queued = join(), sending = join();
    say(called, post);
    rd_request *call = take_call();
    say(streaming, post);
    rd_request *stream = take_call();
    say(asked, POST_LONG("Expect: 100-continue\r\n"));
    rd_request *early = take_call();
    if (!CHECK(call != NULL && stream != NULL && early != NULL)) exit(1);
    rd_loop_lock(&server->loop);
    rd_request_ref(stream);
    rd_request_keep(stream);
    rd_server_let_go(server, stream);
    early->responder->want_body(early);
    rd_loop_unlock(&server->loop);
    say_part(asked);
    say(sending, POST_LONG(""));
    say_part(sending);
    say(queued, post);
    while ((!rd_queue_is_ready(&server->queue) || count_nameless() < before + 5) &&
           check_failed == 0) {
        rd_loop_lock(&server->loop);
        rd_server_turn(server, wait_in_poll, true);
        rd_loop_unlock(&server->loop);
        rd_disk_wait_idle(&server->loop);
    }
    rd_server_hold(server);
    const pid_t pid = fork();
    if (pid == 0) _exit(child_with_bodies(call, stream, before));
    rd_server_release(server);
    int status = -1;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
    rd_disk_wait_idle(&server->loop);
    CHECK_INT(count_nameless(), before + 5);
    rd_loop_lock(&server->loop);
    rd_request *const answered[] = {call, early};
    for (int i = 0; i < 2; i++) {
        answer_path(answered[i]);
        rd_server_let_go(server, answered[i]);
    }
    answer_path(stream);
    rd_request_unref(stream);
    rd_loop_unlock(&server->loop);
    close(called);
    close(streaming);
    close(asked);
    close(queued);
    close(sending);
    end();
}

static void test_all(void) {
    test_fork();
    test_bodies_in_files();
}

int main(void) {
    return test_both_pollers(test_all);
}

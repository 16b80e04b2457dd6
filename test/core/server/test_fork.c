/* SPDX-License-Identifier: MIT
 *
 * server/fork: the child has none of the server's sockets, finds the lock free and answers nobody;
 * the parent's poller notices nothing.
 */
#include "serving.h"

#include <sys/wait.h>

#include "server/server.h"

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

/* What of the child is wrong, as bits of its exit status. */
static int child(int listener_fd, int conn_fd) {
    int wrong = 0;
    rd_server_abandon(server);
    if (is_open(listener_fd) || is_open(conn_fd)) wrong |= 1;
    if (joined->source.fd != -1 || rd_conn_is_open(joined)) wrong |= 2;
    if (pthread_mutex_trylock(&server->loop.lock) != 0) wrong |= 4;
    const rd_response_head head = {.status = 200, .length = 2};
    if (held->responder->start(held, &head) != RD_ERR_CLOSED) wrong |= 8;
    if (held->responder->write(held, "no", 2) != RD_ERR_CLOSED) wrong |= 16;
    rd_conn_close(joined); /* would take it out of the poller that the parent has, too */
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

int main(void) {
    return test_both_pollers(test_fork);
}

/* SPDX-License-Identifier: MIT
 *
 * A server whose listening sockets close for good, before it stops or while it goes on.
 */
#include <sys/stat.h>

#include "serving.h"
#include "server/stop.h"

#define PATIENCE_US 20000000

static rd_listener *first_listener(void) {
    return RD_CONTAINER(server->accepting.listeners.next, rd_listener, in_server);
}

static void retire(uint64_t inode) {
    rd_loop_lock(&server->loop);
    rd_server_retire_socket(server, inode);
    rd_loop_unlock(&server->loop);
}

static uint64_t own_inode(void) {
    struct stat info;
    CHECK_INT(fstat(first_listener()->source.fd, &info), 0);
    return info.st_ino;
}

/* The same socket again, as if a sibling's slot was announced twice. */
static void listen_twice(void) {
    char error[RD_LISTENER_ERROR_MAX];
    rd_listener *again = rd_alloc_zero(sizeof(*again));
    CHECK_INT(rd_listen_inherited(again, dup(first_listener()->source.fd), NULL, false, error), 0);
    rd_loop_lock(&server->loop);
    CHECK_INT(rd_server_add_listener(server, again), 0);
    rd_loop_unlock(&server->loop);
}

static void test_a_server_that_goes_on(void) {
    start_listening(answer_path);
    listen_twice();
    int fd = dial();
    say(fd, GET("/q"));
    retire(own_inode() + 1);
    CHECK(!rd_retirement_has_begun(&first_listener()->retirement));
    retire(own_inode());
    later(2);
    CHECK(rd_list_is_empty(&server->accepting.listeners));
    CHECK(!talk(fd, "/q"));
    say(fd, GET("/next"));
    CHECK(!talk(fd, "/next"));
    close(fd);
    end();
}

static void test_a_drain_waits_for_it(void) {
    start_listening(answer_path);
    int idle = dial();
    turns(2);
    retire(own_inode());
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(3);
    CHECK_INT(server->stop.state, RD_STOP_NOT);
    say(idle, GET("/i"));
    CHECK(!talk(idle, "/i"));
    later(2);
    CHECK_INT(server->stop.state, RD_STOP_DRAIN);
    CHECK(rd_list_is_empty(&server->accepting.listeners));
    later((uint64_t)server->settings.idle_grace_ms);
    CHECK(hear(idle));
    CHECK(rd_server_is_done(server));
    close(idle);
    end();
}

static void test_the_limit_of_connections_holds_nobody_back(void) {
    int fds[4];
    settings.max_connections = 2;
    start_listening(answer_path);
    for (int i = 0; i < 4; i++) say(fds[i] = dial(), LAST("/l"));
    retire(own_inode());
    later(2);
    for (int i = 0; i < 4; i++) {
        CHECK(talk(fds[i], NULL));
        CHECK(ends(got, "/l"));
        close(fds[i]);
    }
    end();
}

static void test_a_stop_at_once_does_not_wait(void) {
    start_listening(answer_path);
    retire(own_inode());
    rd_server_stop(server, RD_STOP_NOW);
    turn();
    CHECK_INT(server->stop.state, RD_STOP_NOW);
    CHECK(rd_list_is_empty(&server->accepting.listeners));
    end();
}

/* Another thread retires the socket when the leader's poll has already found a client there. */
static int late_client;

static void retire_in_poll(rd_server *waiting, int64_t timeout_us) {
    (void)timeout_us;
    late_client = dial();
    rd_loop_wait(&waiting->loop, &waiting->lead.found, PATIENCE_US);
    CHECK_INT(waiting->lead.found.count, 1);
    retire(own_inode());
}

static void test_where_nobody_can_be_held_back(void) {
    int locked = 1;
    start_listening(answer_path);
    int fd = first_listener()->source.fd;
    CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &locked, sizeof(locked)), 0);
    turns(2);
    rd_loop_lock(&server->loop);
    rd_server_turn(server, retire_in_poll, true);
    rd_loop_unlock(&server->loop);
    say(late_client, LAST("/late"));
    later(2);
    CHECK(rd_list_is_empty(&server->accepting.listeners));
    CHECK(talk(late_client, NULL));
    CHECK(ends(got, "/late"));
    close(late_client);
    end();
}

static void test_all(void) {
    test_a_server_that_goes_on();
    test_a_drain_waits_for_it();
    test_the_limit_of_connections_holds_nobody_back();
    test_a_stop_at_once_does_not_wait();
    test_where_nobody_can_be_held_back();
}

int main(void) {
    return test_both_pollers(test_all);
}

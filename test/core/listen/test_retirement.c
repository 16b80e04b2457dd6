/* SPDX-License-Identifier: MIT
 *
 * The end of a listening socket: nobody begins there any more, who has begun is waited for, and
 * whoever asks for it at an end gets it within a second.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "hand_clock.h"
#include "listen/listener.h"

static rd_loop loop;
static rd_listener listener;
static unsigned dues;

static void count_due(rd_retirement *retirement) {
    CHECK(retirement == &listener.retirement);
    dues++;
}

static void start(const char *host) {
    char error[RD_LISTENER_ERROR_MAX];
    rd_listen_options options = {.backlog = 8, .mode = -1};
    dues = 0;
    CHECK_INT(rd_loop_init(&loop, false), 0);
    CHECK_INT(rd_listen_tcp(&listener, host, 0, &options, error), 0);
    CHECK_INT(rd_listener_start(&listener, &loop), 0);
}

static void begin(void) {
    rd_retirement_begin(&listener.retirement, &loop, listener.source.fd, count_due);
}

static void later(uint64_t ms) {
    pass_ms(ms);
    rd_loop_refresh(&loop);
    rd_timer_advance(&loop.timers, loop.now_ms);
}

static void end(void) {
    rd_listener_close(&listener);
    CHECK(!rd_timer_is_armed(&listener.retirement.timer));
    rd_loop_clear(&loop);
}

/* A client that does not wait. A deaf client hears no answer, so it never finishes its handshake.
 */
static int dial(bool deaf) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(listener.port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(listener.port)};
    bool v6 = listener.host[0] == '[';
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {1, &nothing};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in6.sin6_addr = in6addr_loopback;
    if (deaf) setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
    const struct sockaddr *to = v6 ? (const struct sockaddr *)&in6 : (const struct sockaddr *)&in;
    CHECK_INT(connect(fd, to, v6 ? sizeof(in6) : sizeof(in)), -1);
    CHECK_INT(errno, EINPROGRESS);
    return fd;
}

static struct tcp_info look_at(int fd) {
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    CHECK_INT(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    return info;
}

static void test_nobody_begins_any_more(const char *host) {
    start(host);
    int before = dial(false);
    CHECK_INT(look_at(before).tcpi_state, TCP_ESTABLISHED);
    begin();
    int after = dial(false);
    CHECK_INT(look_at(after).tcpi_state, TCP_SYN_SENT);
    CHECK_INT(look_at(listener.source.fd).tcpi_unacked, 1); /* is still queued */
    CHECK_INT(dues, 0);
    later(2);
    CHECK_INT(dues, 1);
    int accepted = accept(listener.source.fd, NULL, NULL);
    CHECK_INT(send(before, "a", 1, 0), 1);
    CHECK_INT(send(accepted, "b", 1, 0), 1);
    close(before);
    close(after);
    close(accepted);
    end();
}

static void test_who_is_on_the_way_is_waited_for(const char *host) {
    start(host);
    int deaf = dial(true);
    begin();
    for (uint64_t ms = 2; ms <= 64; ms *= 2) {
        later(ms);
        CHECK_INT(dues, 0);
    }
    begin(); /* makes no difference */
    later(128);
    CHECK_INT(dues, 1); /* that long */
    close(deaf);
    end();
}

static void test_it_may_be_closed_meanwhile(void) {
    start("127.0.0.1");
    CHECK(!rd_retirement_has_begun(&listener.retirement));
    begin();
    CHECK(rd_retirement_has_begun(&listener.retirement));
    end();
    CHECK_INT(dues, 0);
}

static void test_where_nobody_can_be_held_back(void) {
    start("127.0.0.1");
    int deaf = dial(true);
    rd_retirement_begin(&listener.retirement, &loop, STDIN_FILENO, count_due);
    CHECK(rd_retirement_has_begun(&listener.retirement));
    CHECK_INT(dues, 0); /* not here: it is in no turn */
    later(1);
    CHECK_INT(dues, 1);
    close(deaf);
    end();
}

int main(void) {
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        test_nobody_begins_any_more(hosts[i]);
        test_who_is_on_the_way_is_waited_for(hosts[i]);
    }
    test_it_may_be_closed_meanwhile();
    test_where_nobody_can_be_held_back();
    return check_summary();
}

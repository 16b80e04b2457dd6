/* SPDX-License-Identifier: MIT
 *
 * Holds clients back by a socket filter, and asks sock_diag(7) for unfinished handshakes; see
 * retirement.h.
 */
#include "listen/retirement.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system/platform.h"

#ifdef RD_LINUX
#include <linux/filter.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#endif

/* Checks for handshakes after FIRST_STEP_MS, then after twice that time, and so on: a quarter of a
 * second in total, well before clients that were held back try again. */
#define FIRST_STEP_MS 2
#define LAST_STEP_MS  128

#ifdef RD_LINUX

/* The filter sees each segment from its TCP header on. Connections inherit it, without effect. */
static int hold_back(int fd) {
    enum { FLAGS = 13, SYN = 0x02, ACK = 0x10 };
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {sizeof(steps) / sizeof(steps[0]), steps};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

typedef struct rd_diag_question {
    struct nlmsghdr header;
    struct inet_diag_req_v2 wanted;
} rd_diag_question;

/* Whether the kernel has any socket of this kind. It answers at once. True if it does not say. */
static bool any_socket(const rd_diag_question *question) {
    char answer[4096];
    struct nlmsghdr header = {.nlmsg_type = NLMSG_ERROR};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0) return true;
    if (send(fd, question, sizeof(*question), MSG_DONTWAIT) == (ssize_t)sizeof(*question)) {
        ssize_t len = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
        if (len >= (ssize_t)sizeof(header)) memcpy(&header, answer, sizeof(header));
    }
    close(fd);
    return header.nlmsg_type != NLMSG_DONE;
}

/* Whether a handshake with any socket at this port is unfinished. The kernel does not say which
 * socket. */
static bool somebody_comes(int fd) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound = {.v6 = {0}};
    socklen_t len = sizeof(bound);
    if (getsockname(fd, &bound.any, &len) != 0) return true;
    const in_port_t port = bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port;
    rd_diag_question question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .wanted = {.sdiag_family = (uint8_t)bound.any.sa_family,
                   .sdiag_protocol = IPPROTO_TCP,
                   .idiag_states = 1u << TCP_SYN_RECV,
                   .id = {.idiag_sport = port}},
    };
    return any_socket(&question);
}

#else

static int hold_back(int fd) {
    (void)fd;
    errno = ENOSYS;
    return -1;
}

static bool somebody_comes(int fd) {
    (void)fd;
    return false;
}

#endif

static void wait_for_step(rd_retirement *retirement) {
    uint64_t due = retirement->loop->now_ms + retirement->step_ms;
    rd_timer_set(&retirement->loop->timers, &retirement->timer, due);
}

static void on_step(rd_timer *timer) {
    rd_retirement *retirement = RD_CONTAINER(timer, rd_retirement, timer);
    const bool waits = retirement->holds_back && retirement->step_ms < LAST_STEP_MS;
    if (waits && somebody_comes(retirement->fd)) {
        retirement->step_ms *= 2;
        wait_for_step(retirement);
    } else {
        retirement->on_due(retirement);
    }
}

void rd_retirement_init(rd_retirement *retirement) {
    retirement->loop = NULL;
    rd_timer_init(&retirement->timer, on_step);
}

void rd_retirement_clear(rd_retirement *retirement) {
    if (rd_timer_is_armed(&retirement->timer)) rd_timer_cancel(&retirement->timer);
}

void rd_retirement_begin(rd_retirement *retirement, rd_loop *loop, int fd,
                         void (*on_due)(rd_retirement *retirement)) {
    if (rd_retirement_has_begun(retirement)) return;
    retirement->loop = loop;
    retirement->fd = fd;
    retirement->on_due = on_due;
    retirement->holds_back = hold_back(fd) == 0;
    retirement->step_ms = FIRST_STEP_MS;
    if (retirement->holds_back) {
        wait_for_step(retirement);
    } else {
        rd_timer_set(&loop->timers, &retirement->timer, loop->now_ms);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Measures TCP sockets by TCP_INFO, Unix sockets by sock_diag(7); see accept_queue.h.
 */
#include "control/accept_queue.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/platform.h"

#ifdef RD_LINUX
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#endif

static ino_t inode_of(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

void rd_accept_queue_init(rd_accept_queue *queue, const char *url, int fd, int slot) {
    *queue = (rd_accept_queue){.fd = fd, .slot = slot, .inode = inode_of(fd)};
    snprintf(queue->url, sizeof(queue->url), "%s", url);
    queue->depth = queue->limit = -1;
}

#ifdef RD_LINUX

/* For a listening socket, tcpi_unacked is the length of its queue and tcpi_sacked the limit. An
 * emulator may know less of it. */
static void measure_tcp(rd_accept_queue *queue) {
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    if (getsockopt(queue->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0) return;
    if (len < offsetof(struct tcp_info, tcpi_lost)) return;
    queue->depth = info.tcpi_unacked;
    queue->limit = info.tcpi_sacked;
}

typedef struct rd_diag_question {
    struct nlmsghdr header;
    struct unix_diag_req wanted;
} rd_diag_question;

/* Attributes follow the message: length, type, value, each padded to four bytes. */
static void read_answer(rd_accept_queue *queue, const char *bytes, size_t len) {
    struct nlmsghdr header;
    struct rtattr attribute;
    size_t at = NLMSG_LENGTH(sizeof(struct unix_diag_msg));
    if (len < sizeof(header)) return;
    memcpy(&header, bytes, sizeof(header));
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_len > len) return;
    while (at + sizeof(attribute) <= header.nlmsg_len) {
        struct unix_diag_rqlen lengths;
        memcpy(&attribute, bytes + at, sizeof(attribute));
        if (attribute.rta_len < sizeof(attribute)) return;
        if (attribute.rta_type == UNIX_DIAG_RQLEN &&
            at + RTA_LENGTH(sizeof(lengths)) <= header.nlmsg_len) {
            memcpy(&lengths, bytes + at + RTA_LENGTH(0), sizeof(lengths));
            queue->depth = lengths.udiag_rqueue;
            queue->limit = lengths.udiag_wqueue;
        }
        at += RTA_ALIGN(attribute.rta_len);
    }
}

static void measure_unix(rd_accept_queue *queue) {
    rd_diag_question question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .wanted = {.sdiag_family = AF_UNIX,
                   .udiag_states = ~0u,
                   .udiag_ino = (uint32_t)queue->inode,
                   .udiag_show = UDIAG_SHOW_RQLEN,
                   .udiag_cookie = {~0u, ~0u}},
    };
    char answer[1024];
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0) return;
    if (send(fd, &question, sizeof(question), MSG_DONTWAIT) == (ssize_t)sizeof(question)) {
        ssize_t len =
            recv(fd, answer, sizeof(answer), MSG_DONTWAIT); /* the kernel answers at once */
        if (len > 0) read_answer(queue, answer, (size_t)len);
    }
    close(fd);
}

void rd_accept_queue_measure(rd_accept_queue *queue) {
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(bound);
    int listening = 0;
    socklen_t listening_len = sizeof(listening);
    queue->depth = queue->limit = -1;
    if (queue->inode == 0 || inode_of(queue->fd) != queue->inode) return;
    if (getsockopt(queue->fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &listening_len) != 0) return;
    if (!listening || getsockname(queue->fd, (struct sockaddr *)&bound, &len) != 0) return;
    if (bound.ss_family == AF_UNIX) {
        measure_unix(queue);
    } else {
        measure_tcp(queue);
    }
}

#else

void rd_accept_queue_measure(rd_accept_queue *queue) {
    queue->depth = queue->limit = -1;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * The transport of plain stream sockets, TCP and Unix; see transport.h.
 */
#include <errno.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/apart.h"
#include "system/platform.h"
#include "system/socket.h"
#include "transport/conn.h"
#include "transport/transport.h"

#ifdef RD_LINUX
#include <linux/sockios.h>
#include <sys/sendfile.h>
#endif

#define JOINED_BYTES 4096
#define COPIED_BYTES 16384

static ssize_t tcp_read(rd_conn *conn, char *bytes, size_t len) {
    ssize_t got;
    do {
        got = recv(conn->source.fd, bytes, len, 0);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Joins several small pieces into one, because each piece costs the kernel more than a copy. False:
 * they do not fit. */
static bool join(struct iovec *joined, const struct iovec *iov, int count) {
    size_t len = 0;
    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len > JOINED_BYTES - len) return false;
        memcpy((char *)joined->iov_base + len, iov[i].iov_base, iov[i].iov_len);
        len += iov[i].iov_len;
    }
    joined->iov_len = len;
    return true;
}

static ssize_t send_piece(int fd, const struct iovec *piece, int flags) {
    ssize_t sent;
    do {
        sent = send(fd, piece->iov_base, piece->iov_len, flags);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

RD_APART static ssize_t send_pieces(int fd, const struct iovec *iov, int count, int flags) {
    char bytes[JOINED_BYTES];
    struct iovec joined = {.iov_base = bytes};
    if (join(&joined, iov, count)) return send_piece(fd, &joined, flags);
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov,
                                   .msg_iovlen = (rd_iovec_count)count};
    ssize_t sent;
    do {
        sent = sendmsg(fd, &message, flags);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

static ssize_t tcp_write(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    const int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0), fd = conn->source.fd;
    return count == 1 ? send_piece(fd, iov, flags) : send_pieces(fd, iov, count, flags);
}

/* For systems without sendfile(2), and files that it does not take. */
RD_APART static ssize_t send_copy(int to, int fd, off_t offset, size_t len) {
    char bytes[COPIED_BYTES];
    ssize_t got;
    do {
        got = pread(fd, bytes, len < sizeof(bytes) ? len : sizeof(bytes), offset);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return got;
    const struct iovec piece = {bytes, (size_t)got};
    return send_piece(to, &piece, MSG_NOSIGNAL);
}

static ssize_t tcp_send_file(rd_conn *conn, int fd, off_t offset, size_t len) {
#ifdef RD_LINUX
    ssize_t sent;
    do {
        sent = sendfile(conn->source.fd, fd, &offset, len);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0 || (errno != EINVAL && errno != ENOSYS && errno != EPERM)) return sent;
#endif
    return send_copy(conn->source.fd, fd, offset, len);
}

static void tcp_shutdown_write(rd_conn *conn) {
    shutdown(conn->source.fd, SHUT_WR);
}

/* The kernel also drops what it has not sent. */
static void tcp_reset(rd_conn *conn) {
    const struct linger none = {.l_onoff = 1, .l_linger = 0};
    setsockopt(conn->source.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

static void tcp_close(rd_conn *conn) {
    close(conn->source.fd);
}

static uint32_t tcp_count_unread(rd_conn *conn) {
    int bytes = 0;
#ifdef SIOCOUTQ
    if (ioctl(conn->source.fd, SIOCOUTQ, &bytes) != 0) bytes = 0;
#elif defined(SO_NWRITE) /* macOS */
    socklen_t len = sizeof(bytes);
    if (getsockopt(conn->source.fd, SOL_SOCKET, SO_NWRITE, &bytes, &len) != 0) bytes = 0;
#else
    (void)conn;
#endif
    return (uint32_t)bytes;
}

const rd_transport rd_transport_tcp = {
    .scheme = "http",
    .read = tcp_read,
    .write = tcp_write,
    .send_file = tcp_send_file,
    .shutdown_write = tcp_shutdown_write,
    .close = tcp_close,
    .reset = tcp_reset,
    .is_plain = true,
    .can_move = true,
    .count_unread = tcp_count_unread,
};

static void set_option(int fd, int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof(value));
}

void rd_tcp_keep_alive(int fd, unsigned silence_s) {
    const int seconds = silence_s > INT16_MAX ? INT16_MAX : (int)silence_s;
    if (seconds == 0) return;
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(TCP_KEEPIDLE)
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
#elif defined(TCP_KEEPALIVE) /* macOS */
    set_option(fd, IPPROTO_TCP, TCP_KEEPALIVE, seconds);
#endif
#if defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds < 30 ? seconds : 30);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
#endif
}

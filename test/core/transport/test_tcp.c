/* SPDX-License-Identifier: MIT
 *
 * The plain transport over a pair of sockets: what its functions answer when there is something,
 * nothing, an end, a peer that left, a signal in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"
#include "transport/conn.h"

static const rd_transport *const tcp = &rd_transport_tcp;
static rd_conn conn;
static int peer;

static void open_pair(void) {
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    conn = (rd_conn){.source.fd = pair[0]};
    peer = pair[1];
}

static void close_pair(void) {
    tcp->close(&conn);
    close(peer);
}

static void test_reading(void) {
    char bytes[8];
    open_pair();
    CHECK_INT(tcp->read(&conn, bytes, sizeof(bytes)), -1);
    CHECK(errno == EAGAIN);
    CHECK_INT(write(peer, "0123456789", 10), 10);
    CHECK_INT(tcp->read(&conn, bytes, sizeof(bytes)), 8);
    CHECK_INT(tcp->read(&conn, bytes, sizeof(bytes)), 2);
    CHECK_BYTES(bytes, 2, "89");
    shutdown(peer, SHUT_WR);
    CHECK_INT(tcp->read(&conn, bytes, sizeof(bytes)), 0);
    close_pair();
}

static void check_peer_reads(const char *expected) {
    char got[64];
    ssize_t len = read(peer, got, sizeof(got));
    CHECK_BYTES(got, len < 0 ? 0 : (size_t)len, expected);
}

static void test_writing(void) {
    open_pair();
    struct iovec parts[] = {{"one", 3}, {"", 0}, {"two", 3}, {"three", 5}};
    CHECK_INT(tcp->write(&conn, parts, 1, false), 3);
    CHECK_INT(tcp->write(&conn, parts, 4, false), 11);
    check_peer_reads("oneonetwothree");
    tcp->shutdown_write(&conn);
    check_peer_reads("");
    CHECK_INT(write(peer, "more", 4), 4); /* only one direction ended */
    char bytes[8];
    CHECK_INT(tcp->read(&conn, bytes, sizeof(bytes)), 4);
    close_pair();
}

/* Small pieces leave as one, larger ones are sent in place; the peer sees no difference. */
static void test_pieces_of_all_sizes(void) {
    static char bytes[12288], copy[sizeof(bytes)];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)(i * 7 + i / 256);
    for (size_t piece = 1; piece <= sizeof(bytes) / 8; piece += 101) {
        struct iovec parts[8];
        for (size_t i = 0; i < 8; i++) parts[i] = (struct iovec){bytes + i * piece, piece};
        open_pair();
        CHECK_INT(tcp->write(&conn, parts, 8, false), 8 * piece);
        CHECK_INT(recv(peer, copy, sizeof(copy), MSG_DONTWAIT), 8 * piece);
        CHECK(memcmp(copy, bytes, 8 * piece) == 0);
        close_pair();
    }
}

static void test_a_full_socket(void) {
    static char big[1 << 20];
    open_pair();
    ssize_t sent, total = 0;
    struct iovec parts[] = {{big, sizeof(big)}, {big, sizeof(big)}};
    while ((sent = tcp->write(&conn, parts, 2, false)) > 0) total += sent;
    CHECK(sent == -1 && errno == EAGAIN && total > 0);
    CHECK_INT(tcp->write(&conn, parts, 1, false), -1);
    CHECK(errno == EAGAIN);
    close_pair();
}

/* No SIGPIPE, though this program does not ignore it. */
static void test_a_peer_that_left(void) {
    char bytes[8];
    open_pair();
    struct iovec parts[] = {{"one", 3}, {"two", 3}};
    CHECK_INT(tcp->write(&conn, parts, 1, false), 3);
    close(peer); /* with unread bytes */
    CHECK_INT(tcp->read(&conn, bytes, sizeof(bytes)), -1);
    CHECK(errno == ECONNRESET);
    for (int count = 1; count <= 2; count++) {
        CHECK_INT(tcp->write(&conn, parts, count, false), -1);
        CHECK(errno == EPIPE);
    }
    tcp->close(&conn);
}

static void test_files(void) {
    char path[] = "/tmp/rondo-test-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    CHECK_INT(write(fd, "0123456789", 10), 10);
    CHECK_INT(lseek(fd, 1, SEEK_SET), 1);
    open_pair();
    CHECK_INT(tcp->send_file(&conn, fd, 2, 3), 3);
    check_peer_reads("234");
    CHECK_INT(tcp->send_file(&conn, fd, 8, 100), 2);
    check_peer_reads("89");
    CHECK_INT(tcp->send_file(&conn, fd, 10, 100), 0);
    CHECK_INT(lseek(fd, 0, SEEK_CUR), 1); /* other processes may read from the same descriptor */
    CHECK_INT(tcp->send_file(&conn, -1, 0, 1), -1);
    CHECK(errno == EBADF);
    close_pair();
    close(fd);
}

static volatile sig_atomic_t signals;
static bool peer_writes;

static void on_alarm(int number) {
    char bytes[65536] = {0};
    (void)number;
    if (++signals < 3) return;
    ssize_t done = peer_writes ? write(peer, bytes, 1) : read(peer, bytes, sizeof(bytes));
    (void)done;
}

static void begin_signals(bool writes) {
    struct sigaction action = {.sa_handler = on_alarm}; /* without SA_RESTART */
    struct itimerval often = {{0, 1000}, {0, 1000}};
    fcntl(conn.source.fd, F_SETFL, 0);
    peer_writes = writes;
    signals = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void end_signals(void) {
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(signals >= 3);
}

/* Two signals interrupt a call that would block; the third one brings the bytes it waits for. */
static void test_signals(void) {
    char byte;
    open_pair();
    begin_signals(true);
    CHECK_INT(tcp->read(&conn, &byte, 1), 1);
    end_signals();
    close_pair();
}

static void test_signals_while_writing(void) {
    static char big[65536];
    open_pair();
    struct iovec parts[] = {{big, sizeof(big)}, {big, 1}};
    while (tcp->write(&conn, parts, 1, false) > 0) {
    }
    begin_signals(false);
    CHECK_INT(tcp->write(&conn, parts + 1, 1, false), 1);
    end_signals();
    close_pair();
}

int main(void) {
    CHECK_STR(tcp->scheme, "http");
    test_reading();
    test_writing();
    test_pieces_of_all_sizes();
    test_a_full_socket();
    test_a_peer_that_left();
    test_files();
    test_signals();
    test_signals_while_writing();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Listening sockets: ports the kernel chooses, ports that are taken, Unix sockets that are stale,
 * alive, abstract or somebody else's by now, descriptors from a parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "listen/listener.h"

static char error[RD_LISTENER_ERROR_MAX];
static rd_listen_options options = {.backlog = 8, .mode = -1};

static void test_tcp(void) {
    rd_listener one, two;
    CHECK_INT(rd_listen_tcp(&one, "127.0.0.1", 0, &options, error), 0);
    CHECK(one.port != 0);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", one.port);
    CHECK_STR(one.url, url);
    CHECK(rd_listen_tcp(&two, "127.0.0.1", one.port, &options, error) < 0);
    CHECK(strstr(error, "address already in use") != NULL);
    rd_listener_close(&one);
    CHECK(rd_listen_tcp(&two, "no.such.host.invalid", 80, &options, error) < 0);
    CHECK(strstr(error, "cannot listen on tcp://no.such.host.invalid:80") != NULL);
}

static int connect_to(const rd_listener *listener) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(listener->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EINPROGRESS);
    return fd;
}

static bool is_connected(int fd) {
    struct pollfd connecting = {.fd = fd, .events = POLLOUT};
    return poll(&connecting, 1, 0) == 1;
}

/* An emulator may not know the option. */
static bool has_least_ttl(void) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), most = 255;
    const bool has = setsockopt(fd, IPPROTO_IP, IP_MINTTL, &most, sizeof(most)) == 0;
    close(fd);
    return has;
}

/* Its clients would be reset with it. On the loopback the kernel answers within connect(2). */
static void test_a_port_that_is_reserved_lets_nobody_in(void) {
    rd_listener first, second;
    if (!has_least_ttl()) return;
    options.reserves = true;
    CHECK_INT(rd_listen_tcp(&first, "127.0.0.1", 0, &options, error), 0);
    const int early = connect_to(&first);
    CHECK(!is_connected(early));
    options.reserves = false;
    CHECK(rd_listen_tcp(&second, "127.0.0.1", first.port, &options, error) < 0);
    rd_listener_close(&first);
    CHECK_INT(rd_listen_tcp(&second, "127.0.0.1", first.port, &options, error), 0);
    const int late = connect_to(&second);
    CHECK(is_connected(late));
    close(early);
    close(late);
    rd_listener_close(&second);
}

static void test_unix(void) {
    char path[64], with_scheme[96];
    rd_listener one, two;
    struct stat info;
    snprintf(path, sizeof(path), "/tmp/rondo-test-%d.sock", (int)getpid());
    options.mode = 0600;
    CHECK_INT(rd_listen_unix(&one, path, &options, error), 0);
    snprintf(with_scheme, sizeof(with_scheme), "unix://%s", path);
    CHECK_STR(one.url, with_scheme);
    CHECK_INT(stat(path, &info), 0);
    CHECK_INT(info.st_mode & 0777, 0600);
    CHECK(rd_listen_unix(&two, path, &options, error) < 0); /* a live socket listens there */
    CHECK(strstr(error, "address already in use") != NULL);
    close(one.source.fd); /* its process died without removing it */
    one.source.fd = -1;
    CHECK_INT(rd_listen_unix(&two, path, &options, error), 0);
    rd_listener_close(&one); /* the file belongs to the second socket by now */
    CHECK_INT(stat(path, &info), 0);
    rd_listener_close(&two);
    CHECK(stat(path, &info) != 0);
    options.mode = -1;
}

static void test_a_file_that_is_no_socket_stays(void) {
    char path[] = "/tmp/rondo-test-XXXXXX";
    rd_listener one;
    struct stat info;
    int fd = mkstemp(path);
    CHECK(rd_listen_unix(&one, path, &options, error) < 0);
    CHECK_INT(stat(path, &info), 0);
    unlink(path);
    close(fd);
}

static void test_abstract_and_too_long(void) {
    rd_listener one, two;
    char name[200];
    snprintf(name, sizeof(name), "@rondo-test-%d", (int)getpid());
    CHECK_INT(rd_listen_unix(&one, name, &options, error), 0);
    CHECK(rd_listen_unix(&two, name, &options, error) < 0);
    rd_listener_close(&one);
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    CHECK(rd_listen_unix(&one, name, &options, error) < 0);
}

static void test_inherited(void) {
    rd_listener one, two;
    int pair[2];
    CHECK_INT(rd_listen_tcp(&one, "127.0.0.1", 0, &options, error), 0);
    CHECK_INT(rd_listen_inherited(&two, dup(one.source.fd), NULL, false, error), 0);
    CHECK_STR(two.url, one.url);
    rd_listener_close(&one);
    rd_listener_close(&two);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK(rd_listen_inherited(&one, pair[0], NULL, false, error) < 0);
    CHECK(strstr(error, "not a listening socket") != NULL);
    close(pair[0]);
    close(pair[1]);
}

/* ---- the transport ---- */

static unsigned owners;

static void add_owner(const rd_transport *transport) {
    owners += transport != NULL;
}

static void drop_owner(const rd_transport *transport) {
    owners -= transport != NULL;
}

static void test_a_listener_owns_its_transport(void) {
    rd_listener one, two;
    const rd_transport made = {.scheme = "https", .ref = add_owner, .unref = drop_owner};
    const rd_listen_options with = {.backlog = 8, .mode = -1, .transport = &made};
    CHECK_INT(rd_listen_tcp(&one, "127.0.0.1", 0, &with, error), 0);
    CHECK_INT(strncmp(one.url, "https://127.0.0.1:", 18), 0);
    CHECK_INT(rd_listen_inherited(&two, dup(one.source.fd), &made, false, error), 0);
    CHECK_STR(two.url, one.url);
    CHECK_INT(owners, 2);
    rd_listener_close(&two);
    CHECK_INT(owners, 1);
    CHECK(rd_listen_unix(&two, "", &with, error) < 0);
    CHECK_INT(owners, 1);
    rd_listener_close(&one);
    CHECK_INT(owners, 0);
}

/* As in the message about an address that is taken: only what is encrypted is ssl. */
static void test_the_scheme_of_a_raw_address(void) {
    static const struct {
        bool is_plain, is_secure;
        const char *begins;
    } rows[] = {{true, false, "raw tcp://127.0.0.1:"},
                {false, false, "raw tcp://127.0.0.1:"},
                {false, true, "raw ssl://127.0.0.1:"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        rd_transport transport = rd_transport_tcp;
        rd_listener listener;
        transport.is_plain = rows[i].is_plain;
        transport.is_secure = rows[i].is_secure;
        options.transport = &transport;
        CHECK_INT(rd_listen_tcp(&listener, "127.0.0.1", 0, &options, error), 0);
        rd_listener_make_raw(&listener, 0, 60);
        CHECK(strncmp(listener.url, rows[i].begins, strlen(rows[i].begins)) == 0);
        rd_listener_close(&listener);
    }
    options.transport = NULL;
}

/* The poller takes a descriptor once: what it refuses stays its owner's, and so does its file. */
static void test_inherited_and_refused_by_the_poller(void) {
    char path[64];
    rd_listener opened, one, two;
    rd_loop loop;
    CHECK_INT(rd_loop_init(&loop, false), 0);
    snprintf(path, sizeof(path), "/tmp/rondo-refused-%d.sock", (int)getpid());
    CHECK_INT(rd_listen_unix(&opened, path, &options, error), 0);
    const int fd = opened.source.fd;
    CHECK_INT(rd_listen_inherited(&one, fd, NULL, true, error), 0);
    CHECK_INT(rd_listen_inherited(&two, fd, NULL, true, error), 0);
    rd_loop_lock(&loop);
    CHECK_INT(rd_listener_start(&one, &loop), 0);
    CHECK_INT(rd_listener_start(&two, &loop), -1);
    rd_listener_close(&two);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    CHECK_INT(access(path, F_OK), 0);
    rd_listener_close(&one);
    CHECK(fcntl(fd, F_GETFD) < 0);
    CHECK(access(path, F_OK) != 0);
    rd_loop_unlock(&loop);
    rd_loop_clear(&loop);
    opened.source.fd = -1;
    rd_listener_close(&opened);
}

int main(void) {
    test_tcp();
    test_a_port_that_is_reserved_lets_nobody_in();
    test_unix();
    test_a_file_that_is_no_socket_stays();
    test_abstract_and_too_long();
    test_inherited();
    test_inherited_and_refused_by_the_poller();
    test_a_listener_owns_its_transport();
    test_the_scheme_of_a_raw_address();
    return check_summary();
}

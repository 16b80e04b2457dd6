/* SPDX-License-Identifier: MIT
 *
 * Opens listening sockets: TCP over IPv4, IPv6 and both, Unix by path and by abstract name, and
 * descriptors that a parent (systemd, an earlier self) opened. Every failure is a message of one
 * line for people. See listener.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "listen/listener.h"
#include "system/platform.h"
#include "system/socket.h"

static void prepare(rd_listener *listener, const rd_transport *transport) {
    memset(listener, 0, sizeof(*listener));
    listener->source.fd = -1;
    listener->transport = rd_transport_ref(transport == NULL ? &rd_transport_tcp : transport);
    listener->accepts_per_turn = 64;
    listener->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    rd_list_init(&listener->in_server);
}

static int fail(rd_listener *listener, int code, char error[RD_LISTENER_ERROR_MAX],
                const char *what) {
    const char *why = code == EADDRINUSE ? "address already in use" : strerror(code);
    snprintf(error, RD_LISTENER_ERROR_MAX, "cannot listen on %s: %s", what, why);
    rd_listener_close(listener);
    return -code;
}

static void switch_on(int fd, int level, int option) {
    int on = 1;
    setsockopt(fd, level, option, &on, sizeof(on));
}

/* Notes the port that the kernel chose (port 0), and the address as people write it. */
static void describe_tcp(rd_listener *listener) {
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    rd_address address;
    char text[RD_ADDRESS_TEXT_MAX];
    if (getsockname(listener->source.fd, (struct sockaddr *)&bound, &len) != 0) return;
    rd_address_from_sockaddr(&address, (const struct sockaddr *)&bound);
    rd_address_text(&address, text);
    listener->port = address.port;
    bool v6 = address.kind == RD_ADDRESS_V6;
    snprintf(listener->host, sizeof(listener->host), v6 ? "[%s]" : "%s", text);
    snprintf(listener->url, sizeof(listener->url), "%s://%s:%u", listener->transport->scheme,
             listener->host, listener->port);
}

/* Drops packets that have passed a router or may pass one, which are all (RFC 5082): whoever
 * connects meanwhile asks again a second later, as after any packet that is lost. A connection in
 * the queue of a socket that is closed would be reset. Where the system cannot do that, it is. */
static void let_nobody_in(int fd) {
#if defined(IP_MINTTL) && defined(IPV6_MINHOPCOUNT)
    const int most = 255;
    setsockopt(fd, IPPROTO_IP, IP_MINTTL, &most, sizeof(most));
    setsockopt(fd, IPPROTO_IPV6, IPV6_MINHOPCOUNT, &most, sizeof(most));
#else
    (void)fd;
#endif
}

static int bind_tcp(int fd, const struct addrinfo *at, const rd_listen_options *options) {
    switch_on(fd, SOL_SOCKET, SO_REUSEADDR);
    if (options->reuse_port) switch_on(fd, SOL_SOCKET, SO_REUSEPORT);
    /* Accepted sockets inherit it, which saves a system call for each of them. */
    if (options->nodelay) switch_on(fd, IPPROTO_TCP, TCP_NODELAY);
    if (at->ai_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)at->ai_addr;
        int only = !IN6_IS_ADDR_UNSPECIFIED(&in->sin6_addr);
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
    }
    if (bind(fd, at->ai_addr, at->ai_addrlen) != 0) return errno;
    if (options->reserves) let_nobody_in(fd);
    if (listen(fd, options->backlog) != 0) return errno;
    return 0;
}

int rd_listen_tcp(rd_listener *listener, const char *host, uint16_t port,
                  const rd_listen_options *options, char error[RD_LISTENER_ERROR_MAX]) {
    char what[128], service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    prepare(listener, options->transport);
    snprintf(what, sizeof(what), strchr(host, ':') ? "%s://[%.80s]:%u" : "%s://%.80s:%u",
             listener->transport->is_secure ? "ssl" : "tcp", host, port);
    snprintf(service, sizeof(service), "%u", port);
    int resolved = getaddrinfo(host, service, &hints, &found);
    if (resolved != 0) {
        snprintf(error, RD_LISTENER_ERROR_MAX, "cannot listen on %s: %s", what,
                 gai_strerror(resolved));
        rd_listener_close(listener);
        return -EADDRNOTAVAIL;
    }
    int fd = rd_socket_open(found->ai_family, false);
    listener->source.fd = fd;
    int code = fd < 0 ? errno : bind_tcp(fd, found, options);
    freeaddrinfo(found);
    if (code != 0) return fail(listener, code, error, what);
    describe_tcp(listener);
    return 0;
}

/* Whether a socket file is left over from a process that died: no process listens on it. */
static bool is_stale(const struct sockaddr_un *address, socklen_t len) {
    struct stat info;
    if (lstat(address->sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
    int fd = rd_socket_open(AF_UNIX, false);
    if (fd < 0) return false;
    int result = connect(fd, (const struct sockaddr *)address, len);
    bool refused = result != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static int bind_unix(int fd, const struct sockaddr_un *address, socklen_t len,
                     const rd_listen_options *options) {
    bool abstract = address->sun_path[0] == '\0';
    if (bind(fd, (const struct sockaddr *)address, len) != 0) {
        if (errno != EADDRINUSE || abstract || !is_stale(address, len)) return errno;
        if (unlink(address->sun_path) != 0) return errno;
        if (bind(fd, (const struct sockaddr *)address, len) != 0) return errno;
    }
    if (!abstract && options->mode >= 0 && chmod(address->sun_path, (mode_t)options->mode) != 0) {
        return errno;
    }
    if (listen(fd, options->backlog) != 0) return errno;
    return 0;
}

static void remember_file(rd_listener *listener, const char *path) {
    struct stat info;
    if (path[0] == '@' || stat(path, &info) != 0) return;
    size_t len = strlen(path) + 1;
    listener->unlink_path = rd_alloc(len);
    memcpy(listener->unlink_path, path, len);
    listener->unlink_inode = info.st_ino;
    listener->unlink_made = info.st_mtim;
}

int rd_listen_unix(rd_listener *listener, const char *path, const rd_listen_options *options,
                   char error[RD_LISTENER_ERROR_MAX]) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t path_len = strlen(path);
    char what[RD_LISTENER_URL_MAX];
    prepare(listener, options->transport);
    snprintf(what, sizeof(what), "unix://%.140s", path);
    if (path_len == 0 || path_len >= sizeof(address.sun_path)) {
        return fail(listener, path_len == 0 ? EINVAL : ENAMETOOLONG, error, what);
    }
    memcpy(address.sun_path, path, path_len);
    if (path[0] == '@') address.sun_path[0] = '\0';
    socklen_t len =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_len + (path[0] == '@' ? 0 : 1));
    int fd = rd_socket_open(AF_UNIX, false);
    listener->source.fd = fd;
    int code = fd < 0 ? errno : bind_unix(fd, &address, len, options);
    if (code != 0) return fail(listener, code, error, what);
    remember_file(listener, path);
    snprintf(listener->host, sizeof(listener->host), "localhost");
    snprintf(listener->url, sizeof(listener->url), "%s", what);
    return 0;
}

static void describe_unix(rd_listener *listener, const struct sockaddr_un *bound, socklen_t len) {
    size_t path_len = len - offsetof(struct sockaddr_un, sun_path);
    bool abstract = path_len > 0 && bound->sun_path[0] == '\0';
    if (!abstract) path_len = strnlen(bound->sun_path, path_len);
    const char *path = abstract ? bound->sun_path + 1 : bound->sun_path;
    snprintf(listener->host, sizeof(listener->host), "localhost");
    snprintf(listener->url, sizeof(listener->url), "unix://%s%.*s", abstract ? "@" : "",
             (int)(abstract ? path_len - 1 : path_len), path);
}

int rd_listen_inherited(rd_listener *listener, int fd, const rd_transport *transport,
                        bool owns_file, char error[RD_LISTENER_ERROR_MAX]) {
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(bound);
    int listening = 0;
    socklen_t listening_len = sizeof(listening);
    prepare(listener, transport);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &listening_len) != 0 || !listening ||
        getsockname(fd, (struct sockaddr *)&bound, &len) != 0) {
        snprintf(error, RD_LISTENER_ERROR_MAX,
                 "cannot listen on inherited descriptor %d: it is not a listening socket", fd);
        rd_listener_close(listener);
        return -ENOTSOCK;
    }
    listener->source.fd = fd;
    listener->is_adopted = true;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (bound.ss_family == AF_UNIX) {
        describe_unix(listener, (const struct sockaddr_un *)(const void *)&bound, len);
        if (owns_file) remember_file(listener, listener->url + sizeof("unix://") - 1);
    } else {
        describe_tcp(listener);
    }
    return 0;
}

void rd_listener_make_raw(rd_listener *listener, uint32_t maker, unsigned silence_s) {
    const char *scheme = listener->transport->is_secure ? "ssl" : "tcp";
    char before[RD_LISTENER_URL_MAX];
    listener->is_raw = true;
    listener->maker = maker;
    if (listener->port == 0) {
        memcpy(before, listener->url, sizeof(before));
        snprintf(listener->url, sizeof(listener->url), "raw %.*s",
                 (int)(sizeof(listener->url) - sizeof("raw ")), before);
        return;
    }
    snprintf(listener->url, sizeof(listener->url), "raw %s://%s:%u", scheme, listener->host,
             listener->port);
    rd_tcp_keep_alive(listener->source.fd, silence_s); /* accepted sockets inherit it */
}

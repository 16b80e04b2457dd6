/* SPDX-License-Identifier: MIT
 *
 * What every client needs, see client_base.h. */
#include "client_base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

_Noreturn void rd_client_fail(const char *what) {
    if (errno)
        fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    else
        fprintf(stderr, "client: %s\n", what);
    exit(2);
}

uint64_t rd_client_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void rd_client_pin(const char *cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)strtoul(cpu, NULL, 10), &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0) rd_client_fail("--pin");
}

int rd_client_connect(unsigned port, int receive_bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval patience = {.tv_sec = RD_CLIENT_PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0) rd_client_fail("socket");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (receive_bytes) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

socklen_t rd_client_unix_address(struct sockaddr_storage *address, const char *path) {
    struct sockaddr_un *of_unix = (struct sockaddr_un *)address;
    if (strlen(path) >= sizeof of_unix->sun_path) rd_client_fail("socket path too long");
    of_unix->sun_family = AF_UNIX;
    memcpy(of_unix->sun_path, path, strlen(path) + 1);
    return sizeof *of_unix;
}

void rd_client_abort(int fd) {
    struct linger reset = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
}

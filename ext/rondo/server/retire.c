/* SPDX-License-Identifier: MIT
 *
 * A listener's end, found by its socket; see retire.h.
 */
#include "server/retire.h"

#include <limits.h>
#include <sys/stat.h>

static void on_due(rd_retirement *retirement) {
    rd_listener_end(RD_CONTAINER(retirement, rd_listener, retirement), INT_MAX);
}

static bool is_socket(int fd, uint64_t inode) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_ino == inode;
}

void rd_retire_socket(rd_server *server, uint64_t inode) {
    RD_EACH_LISTENER(server, listener, node) {
        int fd = listener->source.fd;
        if (!is_socket(fd, inode)) continue;
        if (rd_retirement_begin(&listener->retirement, &server->loop, fd, on_due) == 0) continue;
        rd_listener_end(listener, (int)server->settings.backlog);
    }
}

static bool is_retiring(rd_server *server) {
    RD_EACH_LISTENER(server, listener, node) {
        if (rd_retirement_has_begun(&listener->retirement)) return true;
    }
    return false;
}

int rd_retire_stop_due(rd_server *server) {
    int wanted = atomic_load(&server->stop_wanted);
    return wanted == RD_STOP_DRAIN && is_retiring(server) ? server->stopping : wanted;
}

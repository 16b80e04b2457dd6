/* SPDX-License-Identifier: MIT
 *
 * Accepts connections, and survives without descriptors; see listener.h. listen.c opens sockets.
 */
#include "listen/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/platform.h"
#include "system/socket.h"

#define BACKOFF_MS 100

static void update_interest(rd_listener *listener) {
    bool waits = listener->paused || rd_timer_is_armed(&listener->backoff);
    rd_loop_set_interest(listener->loop, &listener->source, waits ? 0 : RD_READABLE);
}

static void on_backoff_over(rd_timer *timer) {
    update_interest(RD_CONTAINER(timer, rd_listener, backoff));
}

void rd_listener_pause(rd_listener *listener, bool paused) {
    listener->paused = paused;
    update_interest(listener);
}

static void back_off(rd_listener *listener) {
    rd_timer_set(&listener->loop->timers, &listener->backoff, listener->loop->now_ms + BACKOFF_MS);
    update_interest(listener);
}

/* Out of descriptors: the first connection in the queue is refused and closed, so that it does not
 * wait. Closing the spare descriptor makes room for it. If that fails, only backing off helps. */
static void refuse_one(rd_listener *listener) {
    if (listener->spare_fd >= 0) {
        close(listener->spare_fd);
        int fd = rd_socket_accept(listener->source.fd, NULL, NULL);
        if (fd >= 0) {
            ssize_t sent =
                send(fd, listener->busy.ptr, listener->busy.len, MSG_NOSIGNAL | MSG_DONTWAIT);
            (void)sent;
            shutdown(fd, SHUT_WR);
            close(fd);
            if (listener->on_busy != NULL) listener->on_busy(listener);
        }
    }
    listener->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    back_off(listener);
}

/* Errors of accept(2) that concern a connection that went away, not the listener. */
static bool is_transient(int error) {
    switch (error) {
    case EINTR:
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EPERM:
        return true;
    default:
        return false;
    }
}

/* Accepts at most `most`, and stops when `work` of them have brought work. */
static int accept_some(rd_listener *listener, int most, int work) {
    int count = 0;
    while (count < most && work > 0 && !listener->paused) {
        struct sockaddr_storage from;
        socklen_t len = sizeof(from);
        from.ss_family = AF_UNSPEC;
        int fd = rd_socket_accept(listener->source.fd, (struct sockaddr *)&from, &len);
        if (fd < 0) {
            if (is_transient(errno)) {
                count++;
                continue;
            }
            if (errno != EAGAIN && errno != EWOULDBLOCK) refuse_one(listener);
            break;
        }
        rd_address peer;
        rd_address_from_sockaddr(&peer, (const struct sockaddr *)&from);
        if (peer.kind == RD_ADDRESS_NONE) peer.kind = RD_ADDRESS_UNIX;
        count++;
        work -= listener->on_accept(listener, fd, &peer);
    }
    return count;
}

int rd_listener_accept(rd_listener *listener, int most) {
    return accept_some(listener, most, INT_MAX);
}

/* As much work as all others bring that are ready, at least that of one connection. A request that
 * is answered before the next connection is accepted costs 6 % less CPU (decision 65). */
static int work_now(const rd_listener *listener) {
    const int others = listener->loop->ready_count - 1;
    return others > 1 ? others : 1;
}

static void on_ready(rd_source *source, unsigned ready) {
    (void)ready;
    rd_listener *listener = RD_CONTAINER(source, rd_listener, source);
    accept_some(listener, listener->accepts_per_turn, work_now(listener));
}

/* Closing the listener closes neither the descriptor nor removes the file any more. */
static void give_back(rd_listener *listener) {
    listener->source.fd = -1;
    rd_listener_keep_file(listener);
}

int rd_listener_start(rd_listener *listener, rd_loop *loop) {
    listener->loop = loop;
    listener->source.on_ready = on_ready;
    rd_timer_init(&listener->backoff, on_backoff_over);
    rd_retirement_init(&listener->retirement);
    if (rd_loop_add(loop, &listener->source, RD_READABLE) == 0) return 0;
    const int error = errno;
    if (listener->is_adopted) give_back(listener);
    errno = error;
    return -1;
}

static void unlink_own_file(rd_listener *listener) {
    struct stat now;
    if (listener->unlink_path == NULL) return;
    if (stat(listener->unlink_path, &now) == 0 && now.st_ino == listener->unlink_inode &&
        now.st_mtim.tv_sec == listener->unlink_made.tv_sec &&
        now.st_mtim.tv_nsec == listener->unlink_made.tv_nsec) {
        unlink(listener->unlink_path);
    }
    rd_free(listener->unlink_path);
    listener->unlink_path = NULL;
}

void rd_listener_keep_file(rd_listener *listener) {
    rd_free(listener->unlink_path);
    listener->unlink_path = NULL;
}

void rd_listener_close(rd_listener *listener) {
    if (listener->loop != NULL) {
        rd_loop_remove(listener->loop, &listener->source);
        if (rd_timer_is_armed(&listener->backoff)) rd_timer_cancel(&listener->backoff);
        rd_retirement_clear(&listener->retirement);
    }
    if (listener->source.fd >= 0) close(listener->source.fd);
    if (listener->spare_fd >= 0) close(listener->spare_fd);
    listener->source.fd = listener->spare_fd = -1;
    unlink_own_file(listener);
    if (listener->transport != NULL) rd_transport_unref(listener->transport);
    listener->transport = NULL;
}

void rd_listener_abandon(rd_listener *listener) {
    if (listener->source.fd >= 0) close(listener->source.fd);
    if (listener->spare_fd >= 0) close(listener->spare_fd);
    listener->source.fd = listener->spare_fd = -1;
    listener->source.registered = 0;
}

void rd_listener_end(rd_listener *listener, int most) {
    rd_list_unlink(&listener->in_server); /* else the server would pause it again at its limit */
    rd_listener_pause(listener, false);
    rd_listener_accept(listener, most);
    rd_listener_close(listener);
    rd_free(listener);
}

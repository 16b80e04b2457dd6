/* SPDX-License-Identifier: MIT
 *
 * Plain requests beside something else, see client_bystander.h. */
#include "client_bystander.h"

#include "client_base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

const char RD_HELLO_REQUEST[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

static void watch(const rd_bystander *bystander, int fd, void *who) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = who};
    if (epoll_ctl(bystander->poller, EPOLL_CTL_ADD, fd, &event) < 0) rd_client_fail("epoll_ctl");
}

static struct timespec timespec_of(uint64_t nanoseconds) {
    return (struct timespec){.tv_sec = (time_t)(nanoseconds / 1000000000u),
                             .tv_nsec = (long)(nanoseconds % 1000000000u)};
}

static void conn_open(rd_bystander_conn *conn, unsigned port, rd_tls_mode tls) {
    conn->fd = rd_client_connect(port, 0);
    if (conn->fd < 0) rd_client_fail("connect");
    if (tls == RD_TLS_OFF) return;
    conn->tls = rd_tls_client_begin(conn->fd, tls);
    if (rd_tls_client_shake_hands(conn->tls) != 1) rd_client_fail("handshake");
    fcntl(conn->fd, F_SETFL, O_NONBLOCK); /* as MSG_DONTWAIT does for a plain one */
}

void rd_bystander_open(rd_bystander *bystander, unsigned port, rd_tls_mode tls) {
    memset(bystander, 0, sizeof *bystander);
    bystander->poller = epoll_create1(EPOLL_CLOEXEC);
    bystander->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (bystander->poller < 0 || bystander->timer < 0) rd_client_fail("epoll or timer");
    watch(bystander, bystander->timer, NULL);
    for (unsigned i = 0; i < RD_BYSTANDERS; i++) {
        rd_bystander_conn *conn = &bystander->conns[i];
        conn_open(conn, port, tls);
        watch(bystander, conn->fd, conn);
    }
}

void rd_bystander_begin(rd_bystander *bystander, unsigned per_second, const char *request,
                        uint64_t body_bytes) {
    bystander->request = request;
    bystander->body_bytes = body_bytes;
    bystander->answered = bystander->errors = 0;
    memset(&bystander->latency, 0, sizeof bystander->latency);
    bystander->interval_ns = 1000000000u / per_second;
    bystander->next_ns = rd_client_now_ns();
    bystander->stop_ns = UINT64_MAX;
    struct itimerspec ticks = {.it_interval = timespec_of(bystander->interval_ns),
                               .it_value = timespec_of(bystander->next_ns)};
    timerfd_settime(bystander->timer, TFD_TIMER_ABSTIME, &ticks, NULL);
}

static void conn_close(rd_bystander_conn *conn) {
    if (conn->tls) rd_tls_client_end(conn->tls);
    conn->tls = NULL;
    close(conn->fd);
    conn->fd = -1;
}

static void conn_lost(rd_bystander *bystander, rd_bystander_conn *conn) {
    bystander->errors++;
    conn_close(conn);
}

static void conn_read(rd_bystander *bystander, rd_bystander_conn *conn) {
    size_t room = sizeof conn->bytes - conn->len, used;
    char *at = conn->bytes + conn->len;
    ssize_t got = conn->tls ? rd_tls_client_receive(conn->tls, at, room, MSG_DONTWAIT)
                            : recv(conn->fd, at, room, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return; /* a ticket */
    if (got <= 0 || !conn->asked) {
        conn_lost(bystander, conn);
        return;
    }
    conn->len += (size_t)got;
    rd_load_answer_progress progress =
        rd_load_answer_take(&conn->answer, &bystander->known, conn->bytes, conn->len, &used);
    if (progress == RD_HEAD_CUT) return;
    conn->len = 0;
    if (progress == RD_MORE) return;
    if (progress == RD_NO_ANSWER || conn->answer.head.status != 200 ||
        conn->answer.body_bytes != bystander->body_bytes) {
        conn_lost(bystander, conn);
        return;
    }
    conn->asked = false;
    bystander->answered++;
    rd_latency_add(&bystander->latency, rd_client_now_ns() - conn->due_ns);
}

static rd_bystander_conn *conn_free(rd_bystander *bystander) {
    for (unsigned i = 0; i < RD_BYSTANDERS; i++)
        if (bystander->conns[i].fd >= 0 && !bystander->conns[i].asked) return &bystander->conns[i];
    return NULL;
}

static void send_what_is_due(rd_bystander *bystander, uint64_t now) {
    while (bystander->next_ns <= now && bystander->next_ns < bystander->stop_ns) {
        rd_bystander_conn *conn = conn_free(bystander);
        if (!conn) return;
        conn->asked = true;
        conn->due_ns = bystander->next_ns;
        bystander->next_ns += bystander->interval_ns;
        size_t len = strlen(bystander->request);
        ssize_t sent = conn->tls
                           ? rd_tls_client_send(conn->tls, bystander->request, len)
                           : send(conn->fd, bystander->request, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent != (ssize_t)len) conn_lost(bystander, conn);
    }
}

void rd_bystander_turn(rd_bystander *bystander) {
    struct epoll_event events[RD_BYSTANDERS];
    uint64_t ticks;
    int ready = epoll_wait(bystander->poller, events, RD_BYSTANDERS, 0);
    for (int i = 0; i < ready; i++) {
        if (events[i].data.ptr)
            conn_read(bystander, events[i].data.ptr);
        else if (read(bystander->timer, &ticks, sizeof ticks) < 0)
            continue; /* another reader took the tick before; the clock says what is due */
    }
    send_what_is_due(bystander, rd_client_now_ns());
}

static unsigned on_their_way(const rd_bystander *bystander) {
    unsigned count = 0;
    for (unsigned i = 0; i < RD_BYSTANDERS; i++)
        count += bystander->conns[i].fd >= 0 && bystander->conns[i].asked;
    return count;
}

void rd_bystander_end(rd_bystander *bystander) {
    uint64_t now = rd_client_now_ns(), patience = now + RD_CLIENT_PATIENCE_NS;
    bystander->stop_ns = now;
    while (now < patience && (bystander->next_ns < bystander->stop_ns || on_their_way(bystander))) {
        rd_bystander_turn(bystander);
        now = rd_client_now_ns();
    }
    bystander->errors += on_their_way(bystander);
    while (bystander->next_ns < bystander->stop_ns) {
        bystander->next_ns += bystander->interval_ns;
        bystander->errors++;
    }
    timerfd_settime(bystander->timer, 0, &(struct itimerspec){0}, NULL);
}

void rd_bystander_close(rd_bystander *bystander) {
    for (unsigned i = 0; i < RD_BYSTANDERS; i++)
        if (bystander->conns[i].fd >= 0) conn_close(&bystander->conns[i]);
    close(bystander->timer);
    close(bystander->poller);
}

/* SPDX-License-Identifier: MIT
 *
 * A connection that downloads, see download_client_conn.h. */
#include "download_client_conn.h"

#include "client_base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* At once: few enough bytes that the bystander does not wait for this client. */
enum { RECV_BYTES = 262144 };

static char receive_buf[RECV_BYTES];

void rd_errand_set(rd_errand *errand, const char *path, uint64_t body_bytes) {
    snprintf(errand->request, sizeof errand->request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
             path);
    errand->body_bytes = body_bytes;
    errand->failed = 0;
    errand->why = "";
    memset(&errand->known, 0, sizeof errand->known);
}

void rd_errand_fail(rd_errand *errand, const char *why) {
    if (errand->failed++ == 0) errand->why = why;
}

static void download_fail(rd_errand *errand, rd_download *download, const char *why) {
    rd_errand_fail(errand, why);
    rd_download_end(download);
}

static void download_ask(rd_errand *errand, rd_download *download) {
    size_t len = strlen(errand->request);
    ssize_t sent = send(download->fd, errand->request, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != (ssize_t)len) download_fail(errand, download, "a request was not taken");
}

static void download_open(rd_errand *errand, rd_download *download, int receive_bytes) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = download};
    download->fd = rd_client_connect(errand->port, receive_bytes);
    download->answer.stage = RD_HEAD;
    download->held_len = 0;
    if (download->fd < 0) {
        rd_errand_fail(errand, "a connection was refused");
        return;
    }
    if (epoll_ctl(errand->poller, EPOLL_CTL_ADD, download->fd, &event) < 0)
        rd_client_fail("epoll_ctl");
    download_ask(errand, download);
}

void rd_download_begin(rd_errand *errand, rd_download *download, int receive_bytes) {
    memset(download, 0, sizeof *download);
    download_open(errand, download, receive_bytes);
}

static void answer_done(rd_errand *errand, rd_download *download) {
    const rd_load_answer *answer = &download->answer;
    if (answer->head.status != 200) {
        download_fail(errand, download, "an answer had another status than 200");
    } else if (answer->body_bytes != errand->body_bytes) {
        download_fail(errand, download, "an answer had the wrong length");
    } else {
        download->answers++;
        download->bytes += answer->body_bytes;
        if (!answer->head.closes) {
            download_ask(errand, download);
            return;
        }
        rd_download_end(download);
        download_open(errand, download, 0);
    }
}

static void bytes_take(rd_errand *errand, rd_download *download, size_t len) {
    size_t used;
    rd_load_answer_progress progress =
        rd_load_answer_take(&download->answer, &errand->known, receive_buf, len, &used);
    if (progress == RD_DONE && used == len) {
        answer_done(errand, download);
    } else if (progress == RD_HEAD_CUT && len < RD_HEAD_ROOM) {
        memcpy(download->held, receive_buf, len);
        download->held_len = len;
    } else if (progress != RD_MORE) {
        download_fail(errand, download, "what came is no answer");
    }
}

static void connection_ended(rd_errand *errand, rd_download *download) {
    if (!rd_load_answer_ends_with_close(&download->answer)) {
        download_fail(errand, download, "a connection was closed before its answer was whole");
        return;
    }
    download->answer.head.closes = true;
    answer_done(errand, download);
}

/* The kernel discards bytes that are known to be body, so that the client costs little. */
void rd_download_turn(rd_errand *errand, rd_download *download) {
    size_t plain = rd_load_answer_plain_left(&download->answer), held = download->held_len;
    size_t room = sizeof receive_buf - held;
    if (download->fd < 0) return;
    if (plain > 0 && plain < room) room = plain;
    int flags = MSG_DONTWAIT | (plain > 0 ? MSG_TRUNC : 0);
    ssize_t got = recv(download->fd, receive_buf + held, room, flags);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        connection_ended(errand, download);
    } else if (plain > 0) {
        if (rd_load_answer_skip(&download->answer, (size_t)got) == RD_DONE)
            answer_done(errand, download);
    } else {
        memcpy(receive_buf, download->held, held);
        download->held_len = 0;
        bytes_take(errand, download, held + (size_t)got);
    }
}

uint64_t rd_download_bytes(const rd_download *download) {
    bool on_its_way = download->fd >= 0 && download->answer.stage != RD_HEAD;
    return download->bytes + (on_its_way ? download->answer.body_bytes : 0);
}

void rd_download_end(rd_download *download) {
    if (download->fd >= 0) rd_client_abort(download->fd);
    download->fd = -1;
}

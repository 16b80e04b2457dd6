/* SPDX-License-Identifier: MIT
 *
 * Sends lines, receives answers; see errands.h.
 */
#include "control/errands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "control/reply.h"

#define ANSWER_BYTES_MAX (16u << 20)

/* A request that waits for the process. */
typedef struct rd_errand {
    rd_list in_waiting;
    rd_timer timer;
    rd_request *request;
    uint64_t id;
} rd_errand;

static void end_errand(rd_errand *errand) {
    rd_list_unlink(&errand->in_waiting);
    if (rd_timer_is_armed(&errand->timer)) rd_timer_cancel(&errand->timer);
    rd_request_unref(errand->request);
    rd_free(errand);
}

static void on_no_answer(rd_timer *timer) {
    rd_errand *errand = RD_CONTAINER(timer, rd_errand, timer);
    rd_reply_error(errand->request, 504, "the process did not answer: Ruby may be stuck");
    end_errand(errand);
}

void rd_errands_give_up(rd_errands *errands) {
    while (!rd_list_is_empty(&errands->waiting)) {
        rd_errand *errand = RD_CONTAINER(errands->waiting.next, rd_errand, in_waiting);
        rd_reply_error(errand->request, 503, "the server is stopping");
        end_errand(errand);
    }
}

static bool tell_process(rd_errands *errands, uint64_t id, const char *verb) {
    char line[64];
    int len = snprintf(line, sizeof(line), "%" PRIu64 " %s\n", id, verb);
    if (errands->process.fd < 0) return false;
    return send(errands->process.fd, line, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len;
}

void rd_errands_ask(rd_errands *errands, rd_request *request, const char *verb) {
    if (!tell_process(errands, ++errands->last_id, verb)) {
        rd_reply_error(request, 503, "the process accepts no more requests");
        return;
    }
    rd_errand *errand = rd_alloc_zero(sizeof(*errand));
    errand->request = request;
    errand->id = errands->last_id;
    rd_request_ref(request);
    rd_timer_init(&errand->timer, on_no_answer);
    rd_timer_set(&errands->loop->timers, &errand->timer,
                 errands->loop->now_ms + (uint64_t)errands->timeout_ms);
    rd_list_append(&errands->waiting, &errand->in_waiting);
}

static void take_answer(rd_errands *errands, uint64_t id, int status, const char *bytes,
                        size_t len) {
    for (rd_list *node = errands->waiting.next; node != &errands->waiting; node = node->next) {
        rd_errand *errand = RD_CONTAINER(node, rd_errand, in_waiting);
        if (errand->id != id) continue;
        rd_buffer text = {0};
        rd_buffer_append(&text, bytes, len);
        rd_reply(errand->request, status, RD_REPLY_JSON, &text);
        rd_buffer_clear(&text);
        end_errand(errand);
        return;
    }
}

/* Takes one whole answer from the received bytes. Returns false when there is none yet. */
static bool take_next_answer(rd_errands *errands, bool *broken) {
    char line[64];
    uint64_t id;
    unsigned status, len;
    const char *bytes = rd_buffer_ptr(&errands->answers);
    size_t come = rd_buffer_len(&errands->answers);
    const char *end = come > 0 ? memchr(bytes, '\n', come) : NULL;
    if (end == NULL) {
        *broken = come >= sizeof(line);
        return false;
    }
    size_t line_len = (size_t)(end - bytes);
    *broken = true;
    if (line_len >= sizeof(line)) return false;
    memcpy(line, bytes, line_len);
    line[line_len] = '\0';
    char *next;
    id = strtoull(line, &next, 10);
    status = (unsigned)strtoul(next, &next, 10);
    len = (unsigned)strtoul(next, &next, 10);
    if (*next != '\0') return false;
    if (len > ANSWER_BYTES_MAX || status < 200 || status > 599) return false;
    *broken = false;
    if (come < line_len + 1 + len) return false;
    take_answer(errands, id, (int)status, bytes + line_len + 1, len);
    rd_buffer_consume(&errands->answers, line_len + 1 + len);
    return true;
}

static void forget_process(rd_errands *errands) {
    rd_loop_remove(errands->loop, &errands->process);
    close(errands->process.fd);
    errands->process.fd = -1;
    rd_errands_give_up(errands);
}

static void on_process(rd_source *source, unsigned ready) {
    rd_errands *errands = RD_CONTAINER(source, rd_errands, process);
    char room[16384];
    bool broken = false;
    (void)ready;
    ssize_t len = recv(source->fd, room, sizeof(room), MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (len > 0) {
        rd_buffer_append(&errands->answers, room, (size_t)len);
        while (take_next_answer(errands, &broken)) {
        }
    }
    if (len <= 0 || broken) forget_process(errands);
}

bool rd_errands_tell(rd_errands *errands, const char *verb) {
    return tell_process(errands, 0, verb);
}

int rd_errands_open(rd_errands *errands, rd_loop *loop, int64_t timeout_ms, int *process_fd) {
    int fds[2];
    *errands = (rd_errands){.loop = loop, .timeout_ms = timeout_ms};
    rd_list_init(&errands->waiting);
    errands->process = (rd_source){.fd = -1, .on_ready = on_process};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return -1;
    errands->process.fd = fds[0];
    if (rd_loop_add(loop, &errands->process, RD_READABLE) != 0) {
        close(fds[0]);
        close(fds[1]);
        errands->process.fd = -1;
        return -1;
    }
    *process_fd = fds[1];
    return 0;
}

void rd_errands_close(rd_errands *errands) {
    rd_errands_give_up(errands);
    if (errands->process.fd >= 0) forget_process(errands);
    rd_buffer_clear(&errands->answers);
}

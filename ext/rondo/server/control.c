/* SPDX-License-Identifier: MIT
 *
 * The thread, its pages and its questions to the process; see control.h. Everything but start and
 * stop happens under the lock of its own loop.
 */
#include "server/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "server/accept_queue.h"
#include "server/metrics.h"
#include "server/server.h"
#include "server/token.h"
#include "server/verbs.h"

#define ANSWER_BYTES_MAX (16u << 20)
#define TEXT             "text/plain; charset=utf-8"
#define JSON             "application/json"

/* A request that waits for the process. */
typedef struct rd_question {
    rd_list in_control;
    rd_timer timer;
    rd_control *control;
    rd_request *request;
    uint64_t id;
} rd_question;

struct rd_control {
    rd_server *server;
    rd_report report;
    char *token, *versions, *about;
    uint32_t verbs;
    int64_t answer_timeout_ms;
    bool is_public; /* some listener is reachable from elsewhere */
    bool running;
    pthread_t thread;
    rd_source process; /* our end of the socket to the process; fd -1 once that is gone */
    rd_buffer answers;
    rd_list questions;
    uint64_t last_id;
    rd_accept_queue *queues;
};

/* ---- answering ---- */

static void answer_with(rd_request *request, const rd_response_head *head, const char *bytes) {
    const rd_responder *responder = request->responder;
    if (request->conn == NULL || responder->start(request, head) != 0) return;
    if (head->length > 0) responder->write(request, bytes, (size_t)head->length);
    responder->finish(request);
}

static void answer(rd_request *request, int status, const char *type, const rd_buffer *text) {
    const rd_field fields[] = {
        {RD_SLICE("content-type"), rd_slice_of(type, strlen(type))},
        {RD_SLICE("cache-control"), RD_SLICE("no-store")},
        {RD_SLICE("allow"), RD_SLICE("GET, HEAD, POST")},
    };
    rd_response_head head = {.status = status,
                             .fields = fields,
                             .count = status == 405 ? 3 : 2,
                             .length = (int64_t)rd_buffer_len(text)};
    answer_with(request, &head, rd_buffer_ptr(text));
}

static void answer_error(rd_request *request, int status, const char *why) {
    rd_buffer text = {0};
    rd_text_add(&text, "{ \"error\": ");
    rd_text_add_json(&text, why);
    rd_text_add(&text, " }\n");
    answer(request, status, JSON, &text);
    rd_buffer_clear(&text);
}

static void answer_ok(rd_request *request) {
    rd_buffer text = {0};
    rd_text_add(&text, "{ \"status\": \"ok\" }");
    answer(request, 200, JSON, &text);
    rd_buffer_clear(&text);
}

/* ---- questions to the process ---- */

static void end_question(rd_question *question) {
    rd_list_unlink(&question->in_control);
    if (rd_timer_is_armed(&question->timer)) rd_timer_cancel(&question->timer);
    rd_request_unref(question->request);
    rd_free(question);
}

static void on_no_answer(rd_timer *timer) {
    rd_question *question = RD_CONTAINER(timer, rd_question, timer);
    answer_error(question->request, 504, "the process did not answer: Ruby may be stuck");
    end_question(question);
}

static void give_questions_up(rd_control *control) {
    while (!rd_list_is_empty(&control->questions)) {
        rd_question *question = RD_CONTAINER(control->questions.next, rd_question, in_control);
        answer_error(question->request, 503, "the server stops");
        end_question(question);
    }
}

static bool tell_process(rd_control *control, uint64_t id, const char *verb) {
    char line[64];
    int len = snprintf(line, sizeof(line), "%" PRIu64 " %s\n", id, verb);
    if (control->process.fd < 0) return false;
    return send(control->process.fd, line, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len;
}

static void ask(rd_control *control, rd_request *request, const char *verb) {
    if (!tell_process(control, ++control->last_id, verb)) {
        answer_error(request, 503, "the process takes no more questions");
        return;
    }
    rd_loop *loop = &control->server->loop;
    rd_question *question = rd_alloc_zero(sizeof(*question));
    question->control = control;
    question->request = request;
    question->id = control->last_id;
    rd_request_ref(request);
    rd_timer_init(&question->timer, on_no_answer);
    rd_timer_set(&loop->timers, &question->timer,
                 loop->now_ms + (uint64_t)control->answer_timeout_ms);
    rd_list_append(&control->questions, &question->in_control);
}

static void take_answer(rd_control *control, uint64_t id, int status, const char *bytes,
                        size_t len) {
    for (rd_list *node = control->questions.next; node != &control->questions; node = node->next) {
        rd_question *question = RD_CONTAINER(node, rd_question, in_control);
        if (question->id != id) continue;
        rd_buffer text = {0};
        rd_buffer_append(&text, bytes, len);
        answer(question->request, status, JSON, &text);
        rd_buffer_clear(&text);
        end_question(question);
        return;
    }
}

/* Takes one whole answer out of what has come; false when there is none yet. */
static bool take_next_answer(rd_control *control, bool *broken) {
    char line[64];
    uint64_t id;
    unsigned status, len;
    const char *bytes = rd_buffer_ptr(&control->answers);
    size_t come = rd_buffer_len(&control->answers);
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
    if (sscanf(line, "%" SCNu64 " %u %u", &id, &status, &len) != 3) return false;
    if (len > ANSWER_BYTES_MAX || status < 200 || status > 599) return false;
    *broken = false;
    if (come < line_len + 1 + len) return false;
    take_answer(control, id, (int)status, bytes + line_len + 1, len);
    rd_buffer_consume(&control->answers, line_len + 1 + len);
    return true;
}

static void forget_process(rd_control *control) {
    rd_loop_remove(&control->server->loop, &control->process);
    close(control->process.fd);
    control->process.fd = -1;
    give_questions_up(control);
}

static void on_process(rd_source *source, unsigned ready) {
    rd_control *control = RD_CONTAINER(source, rd_control, process);
    char room[16384];
    bool broken = false;
    (void)ready;
    ssize_t len = recv(source->fd, room, sizeof(room), MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (len > 0) {
        rd_buffer_append(&control->answers, room, (size_t)len);
        while (take_next_answer(control, &broken)) {
        }
    }
    if (len <= 0 || broken) forget_process(control);
}

/* ---- pages ---- */

static void show_live(rd_control *control, rd_request *request) {
    rd_buffer text = {0};
    (void)control;
    rd_text_add(&text, "live\n");
    answer(request, 200, TEXT, &text);
    rd_buffer_clear(&text);
}

static void show_ready(rd_control *control, rd_request *request) {
    rd_buffer text = {0};
    unsigned ready = rd_report_count(&control->report, RD_SCORE_READY);
    unsigned all = rd_report_count(&control->report, RD_SCORE_STATE_COUNT);
    rd_text_add(&text, "%s: %u of %u\n", ready > 0 ? "ready" : "not ready", ready, all);
    answer(request, ready > 0 ? 200 : 503, TEXT, &text);
    rd_buffer_clear(&text);
}

static void measure_queues(rd_control *control) {
    for (size_t i = 0; i < control->report.queue_count; i++) {
        rd_accept_queue_measure(&control->queues[i]);
    }
}

static void show_stats(rd_control *control, rd_request *request) {
    rd_buffer text = {0};
    measure_queues(control);
    rd_report_stats(&control->report, &text);
    answer(request, 200, JSON, &text);
    rd_buffer_clear(&text);
}

static void show_metrics(rd_control *control, rd_request *request) {
    rd_buffer text = {0};
    measure_queues(control);
    rd_report_metrics(&control->report, &text);
    answer(request, 200, RD_METRICS_TYPE, &text);
    rd_buffer_clear(&text);
}

static void show_status(rd_control *control, rd_request *request) {
    (void)control;
    answer_ok(request);
}

typedef struct rd_page {
    const char *path;
    void (*show)(rd_control *control, rd_request *request);
    bool is_probe;
} rd_page;

static const rd_page pages[] = {
    {"live", show_live, true},        {"ready", show_ready, true},    {"stats", show_stats, false},
    {"metrics", show_metrics, false}, {"status", show_status, false},
};

static const rd_page *find_page(rd_slice path) {
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        rd_slice known = rd_slice_of(pages[i].path, strlen(pages[i].path));
        if (rd_slice_equal(known, path)) return &pages[i];
    }
    return NULL;
}

static void carry_out(rd_control *control, rd_request *request, int verb) {
    const rd_verb_info *row = &rd_verb_table[verb];
    if (!(control->verbs & 1u << verb)) {
        char why[80];
        snprintf(why, sizeof(why), "%s not available", row->path);
        answer_error(request, 404, why);
    } else if (row->answers) {
        ask(control, request, row->path);
    } else if (tell_process(control, 0, row->path)) {
        answer_ok(request);
    } else {
        answer_error(request, 503, "the process takes no more orders");
    }
}

/* ---- who may ---- */

/* A page of some site in a browser on this machine can send requests to it, too. */
static bool is_from_a_page(const rd_request *request) {
    const rd_head *head = &request->head;
    if (rd_head_has(head, RD_HEADER_ORIGIN) || rd_head_has(head, RD_HEADER_REFERER)) return true;
    const rd_header *site = rd_head_find(head, RD_HEADER_SEC_FETCH_SITE);
    return site != NULL &&
           !rd_slice_equal(rd_request_header_value(request, site), RD_SLICE("none"));
}

static bool is_allowed(const rd_control *control, const rd_request *request, bool probe) {
    if (probe && !control->is_public) return true;
    if (control->token == NULL) return !is_from_a_page(request);
    return rd_token_matches(control->token, request);
}

static bool is_method_known(const rd_request *request) {
    uint8_t method = request->head.method_id;
    return method == RD_METHOD_GET || method == RD_METHOD_HEAD || method == RD_METHOD_POST;
}

static void handle(rd_control *control, rd_request *request) {
    rd_slice path = rd_request_slice(request, request->head.path);
    if (path.len > 0 && path.ptr[0] == '/') path = rd_slice_of(path.ptr + 1, path.len - 1);
    const rd_page *page = find_page(path);
    int verb = page == NULL ? rd_verb_find(path.ptr, path.len) : -1;
    if (!is_allowed(control, request, page != NULL && page->is_probe)) {
        answer_error(request, 403, "wrong or missing token");
    } else if (page == NULL && verb < 0) {
        answer_error(request, 404, "Unsupported action");
    } else if (!is_method_known(request) ||
               (page == NULL && request->head.method_id == RD_METHOD_HEAD)) {
        answer_error(request, 405, "use GET or POST");
    } else if (page != NULL) {
        page->show(control, request);
    } else {
        carry_out(control, request, verb);
    }
}

/* ---- the thread ---- */

static void wait_in_poll(rd_server *server, int64_t timeout_us) {
    rd_loop_wait(&server->loop, timeout_us);
}

static void *run(void *argument) {
    rd_control *control = argument;
    rd_server *server = control->server;
    rd_loop_lock(&server->loop);
    while (!rd_server_is_done(server)) {
        rd_server_turn(server, wait_in_poll);
        for (rd_request *request; (request = rd_server_next_request(server)) != NULL;) {
            if (request->conn != NULL) handle(control, request);
            rd_request_unref(request);
        }
        if (rd_server_is_stopping(server)) give_questions_up(control);
    }
    rd_loop_unlock(&server->loop);
    return NULL;
}

int rd_control_start(rd_control *control) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&control->thread, NULL, run, control);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    control->running = code == 0;
    return -code;
}

void rd_control_stop(rd_control *control) {
    if (!control->running) return;
    rd_server_stop(control->server, RD_STOP_DRAIN);
    pthread_join(control->thread, NULL);
    control->running = false;
}

/* ---- making one ---- */

/* Few clients, small requests: tighter than what the public meets, by the same rules. */
static void take_settings(rd_settings *settings) {
    rd_settings_init(settings);
    settings->max_head_bytes = 16384;
    settings->max_body_bytes = 4096;
    settings->max_connections = 256;
    settings->head_timeout_ms = 5000;
    settings->body_timeout_ms = 5000;
    settings->keep_alive_timeout_ms = 20000;
    settings->write_timeout_ms = 10000;
    settings->drain_timeout_ms = 1000;
    settings->fresh_grace_ms = 0;
    settings->linger_timeout_ms = 200;
    settings->brief_wait_us = 0;
    settings->backlog = 64;
}

static char *copy(const char *text) {
    if (text == NULL) return NULL;
    size_t len = strlen(text) + 1;
    char *own = rd_alloc(len);
    memcpy(own, text, len);
    return own;
}

static int open_process(rd_control *control, int *process_fd) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return -1;
    rd_loop *loop = &control->server->loop;
    control->process = (rd_source){.fd = fds[0], .on_ready = on_process};
    rd_loop_lock(loop);
    int added = rd_loop_add(loop, &control->process, RD_READABLE);
    rd_loop_unlock(loop);
    if (added != 0) {
        close(fds[0]);
        close(fds[1]);
        control->process.fd = -1;
        return -1;
    }
    *process_fd = fds[1];
    return 0;
}

static void free_parts(rd_control *control) {
    rd_free(control->token);
    rd_free(control->versions);
    rd_free(control->about);
    rd_free(control->queues);
    rd_buffer_clear(&control->answers);
    rd_free(control);
}

rd_control *rd_control_new(const rd_control_options *options, int *process_fd) {
    rd_settings settings;
    take_settings(&settings);
    rd_control *control = rd_alloc_zero(sizeof(*control));
    rd_list_init(&control->questions);
    control->token = copy(options->token);
    control->versions = copy(options->versions);
    control->about = copy(options->about);
    control->verbs = options->verbs;
    control->answer_timeout_ms = options->answer_timeout_ms;
    control->report = (rd_report){.board = options->board,
                                  .versions = control->versions,
                                  .about = control->about,
                                  .cluster = options->cluster,
                                  .started_s = rd_clock_wall_seconds()};
    control->server = rd_server_new(&settings);
    if (control->server == NULL || open_process(control, process_fd) != 0) {
        int error = errno;
        if (control->server != NULL) rd_server_free(control->server);
        free_parts(control);
        errno = error;
        return NULL;
    }
    return control;
}

bool rd_control_is_public(const rd_listener *listener) {
    rd_address address;
    if (listener->port == 0) return false; /* a Unix socket */
    if (!rd_address_parse(&address, listener->host, strlen(listener->host))) return true;
    if (address.kind == RD_ADDRESS_V4) return address.bytes[0] != 127;
    static const uint8_t loopback[16] = {[15] = 1};
    return memcmp(address.bytes, loopback, sizeof(loopback)) != 0;
}

int rd_control_add_listener(rd_control *control, rd_listener *listener) {
    rd_loop *loop = &control->server->loop;
    control->is_public |= rd_control_is_public(listener);
    rd_loop_lock(loop);
    int added = rd_server_add_listener(control->server, listener);
    rd_loop_unlock(loop);
    return added;
}

void rd_control_watch(rd_control *control, const char *url, int fd, int slot) {
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    size_t count = control->report.queue_count + 1;
    control->queues = rd_realloc(control->queues, count * sizeof(rd_accept_queue));
    rd_accept_queue_init(&control->queues[count - 1], url, fd, slot);
    control->report.queues = control->queues;
    control->report.queue_count = count;
    rd_loop_unlock(loop);
}

void rd_control_unwatch(rd_control *control) {
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    control->report.queue_count = 0;
    rd_loop_unlock(loop);
}

void rd_control_keep_files(rd_control *control) {
    rd_loop *loop = &control->server->loop;
    rd_list *all = &control->server->listeners;
    rd_loop_lock(loop);
    for (rd_list *node = all->next; node != all; node = node->next) {
        rd_listener_keep_file(RD_CONTAINER(node, rd_listener, in_server));
    }
    rd_loop_unlock(loop);
}

/* ---- the end ---- */

void rd_control_free(rd_control *control) {
    rd_control_stop(control);
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    give_questions_up(control);
    if (control->process.fd >= 0) forget_process(control);
    rd_loop_unlock(loop);
    rd_server_free(control->server);
    free_parts(control);
}

/* ---- forks ---- */

void rd_control_hold(rd_control *control) {
    rd_loop_lock(&control->server->loop);
}

void rd_control_release(rd_control *control) {
    rd_loop_unlock(&control->server->loop);
}

/* Closes only: the poller is the parent's as well, and taking something out of it here would take
 * it out there. */
void rd_control_abandon(rd_control *control) {
    rd_list *listeners = &control->server->listeners, *conns = &control->server->conns.conns;
    for (rd_list *node = listeners->next; node != listeners; node = node->next) {
        close(RD_CONTAINER(node, rd_listener, in_server)->source.fd);
    }
    for (rd_list *node = conns->next; node != conns; node = node->next) {
        close(RD_CONTAINER(node, rd_conn, in_set)->source.fd);
    }
    if (control->process.fd >= 0) close(control->process.fd);
    control->running = false;
    rd_control_release(control);
}

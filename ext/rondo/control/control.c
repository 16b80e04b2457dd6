/* SPDX-License-Identifier: MIT
 *
 * The thread and its pages; see control.h. Who may see them is in access.h, the live part of the
 * status page in live.h. Everything but start
 * and stop happens under the lock of its own loop.
 */
#include "control/control.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "base/text.h"
#include "system/thread_start.h"
#include "control/access.h"
#include "control/commands.h"
#include "control/metrics.h"
#include "control/reply.h"
#include "control/live.h"
#include "request/query.h"
#include "server/server.h"
#include "control/verbs.h"

struct rd_control {
    rd_server *server;
    rd_report report;
    char *token, *versions, *about, *page, *page_policy;
    uint32_t verbs;
    bool is_public;  /* some listener is reachable from other machines */
    bool is_leaving; /* the server stops soon, and should get no new clients */
    bool running;
    uint64_t refusal_said_ms; /* 0: no refusal was said yet */
    pthread_t thread;
    rd_commands commands;
    rd_certificate_list certificates;
    rd_live *live; /* NULL: there is no server */
};

#define WATCH_S_MOST     60
#define REFUSAL_QUIET_MS 60000
#define CONFIRM_MS_MOST  30000

/* ---- pages ---- */

static void show_live(rd_control *control, rd_request *request) {
    rd_buffer text = {0};
    uint64_t within = rd_query_number(request, "within") * 1000;
    bool stuck = within > 0 && rd_report_is_stuck(&control->report, within);
    rd_text_add(&text, stuck ? "stuck: no worker has returned from the application\n" : "live\n");
    rd_reply(request, stuck ? 503 : 200, RD_REPLY_TEXT, &text);
    rd_buffer_clear(&text);
}

static void show_ready(rd_control *control, rd_request *request) {
    rd_buffer text = {0};
    const unsigned ready = rd_report_count(&control->report, RD_SCORE_READY);
    const unsigned all = rd_report_count(&control->report, RD_SCORE_STATE_COUNT);
    const bool takes_clients = ready > 0 && !control->is_leaving;
    rd_text_add(&text, "%s: %u of %u%s\n", takes_clients ? "ready" : "not ready", ready, all,
                control->is_leaving ? ", and the server is about to stop" : "");
    rd_reply(request, takes_clients ? 200 : 503, RD_REPLY_TEXT, &text);
    rd_buffer_clear(&text);
}

/* With `watch=SECONDS` the processes write their views for that long; with `past=1` there is also
 * what the status page shows of the last minutes. */
static void show_stats(rd_control *control, rd_request *request) {
    rd_buffer text = {0};
    uint64_t seconds = rd_query_number(request, "watch");
    if (seconds > WATCH_S_MOST) seconds = WATCH_S_MOST;
    if (seconds > 0) rd_report_watch(&control->report, seconds * 1000);
    rd_report_measure(&control->report);
    rd_report_stats(&control->report, &text);
    if (rd_query_number(request, "past") > 0) rd_live_add_past(control->live, &text);
    rd_reply(request, 200, RD_REPLY_JSON, &text);
    rd_buffer_clear(&text);
}

static void show_metrics(rd_control *control, rd_request *request) {
    rd_buffer text = {0};
    rd_report_measure(&control->report);
    rd_report_metrics(&control->report, &text);
    rd_reply(request, 200, RD_METRICS_TYPE, &text);
    rd_buffer_clear(&text);
}

static void show_page(rd_control *control, rd_request *request) {
    if (control->page == NULL) {
        rd_reply_error(request, 404, "Unsupported action");
    } else {
        rd_reply_page(request, control->page, control->page_policy);
    }
}

static void show_events(rd_control *control, rd_request *request) {
    rd_live_show(control->live, request);
}

static void show_status(rd_control *control, rd_request *request) {
    (void)control;
    rd_reply_ok(request);
}

typedef struct rd_page {
    const char *path;
    void (*show)(rd_control *control, rd_request *request);
    bool is_probe;
} rd_page;

static const rd_page pages[] = {
    {"", show_page, false},         {"events", show_events, false},
    {"live", show_live, true},      {"ready", show_ready, true},
    {"stats", show_stats, false},   {"metrics", show_metrics, false},
    {"status", show_status, false},
};

static const rd_page *find_page(rd_slice path) {
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        rd_slice known = rd_slice_of(pages[i].path, strlen(pages[i].path));
        if (rd_slice_equal(known, path)) return &pages[i];
    }
    return NULL;
}

/* With a misspelt `confirm` nobody would wait for the engine. Returns false if it was refused. */
static bool knows_parameters(rd_request *request) {
    static const char *const known[] = {"token", "confirm", NULL};
    char why[120], shown[64];
    rd_slice name;
    size_t len = 0;
    if (!rd_query_find_other(request, known, &name)) return true;
    for (; len < name.len && len < sizeof(shown) - 1; len++) {
        shown[len] = (char)(name.ptr[len] > ' ' && name.ptr[len] <= '~' ? name.ptr[len] : '?');
    }
    shown[len] = '\0';
    snprintf(why, sizeof(why), "unknown parameter %s; there is confirm", shown);
    rd_reply_error(request, 400, why);
    return false;
}

/* How long a request waits for the engine, by `confirm=`: 0 if it does not. Returns false if it was
 * refused. */
static bool take_confirm(rd_request *request, int verb, int64_t *ms) {
    rd_slice text;
    *ms = 0;
    if (verb != RD_VERB_PUBLISH) return true;
    if (!knows_parameters(request)) return false;
    if (!rd_query_find(request, "confirm", &text)) return true;
    *ms = rd_query_seconds(text);
    if (*ms > 0 && *ms <= CONFIRM_MS_MOST) return true;
    rd_reply_error(request, 400, "confirm must be seconds, from 0.001 to 30");
    return false;
}

static void ask(rd_control *control, rd_request *request, int verb) {
    int64_t more_ms;
    if (!take_confirm(request, verb, &more_ms)) return;
    rd_commands_ask(&control->commands, request, rd_verb_table[verb].path, more_ms);
}

/* The process gets it all the same, and says so in the log. Returns whether it was refused. */
static bool refuse_beginning(const rd_control *control, rd_request *request, int verb) {
    const uint32_t beginnings = 1u << RD_VERB_RESTART | 1u << RD_VERB_PHASED_RESTART |
                                1u << RD_VERB_REFORK | 1u << RD_VERB_WORKER_COUNT_UP |
                                1u << RD_VERB_WORKER_COUNT_DOWN;
    char why[120];
    if (!control->is_leaving || !(beginnings & 1u << verb)) return false;
    snprintf(why, sizeof(why), "%s is refused: this server stops", rd_verb_table[verb].path);
    rd_reply_error(request, 503, why);
    return true;
}

static void carry_out(rd_control *control, rd_request *request, int verb) {
    const rd_verb_info *row = &rd_verb_table[verb];
    if (!(control->verbs & 1u << verb)) {
        char why[120];
        const bool is_free = control->verbs & 1u << RD_VERB_STOP; /* else only numbers are shown */
        snprintf(why, sizeof(why), "%s not available%s", row->path,
                 is_free ? ": the server runs without workers" : "");
        rd_reply_error(request, 404, why);
    } else if (row->answers) {
        ask(control, request, verb);
    } else if (!rd_commands_send(&control->commands, row->path)) {
        rd_reply_error(request, 503, "the process no longer takes commands");
    } else if (!refuse_beginning(control, request, verb)) {
        rd_reply_ok(request);
    }
}

/* ---- requests ---- */

/* A person opens the page in a browser, and has not told the browser the token yet. */
static bool is_page_of_browser(const rd_control *control, rd_slice path,
                               const rd_request *request) {
    if (path.len > 0 || control->page == NULL) return false;
    const rd_header *accept = rd_head_find(&request->head, RD_HEADER_ACCEPT);
    return accept != NULL &&
           rd_slice_starts_with(rd_request_header_value(request, accept), RD_SLICE("text/html"));
}

/* Whoever tries tokens fills no log. */
static void refuse(rd_control *control, rd_request *request, const char *why) {
    const uint64_t now_ms = control->server->loop.now_ms, said_ms = control->refusal_said_ms;
    control->report.refused++;
    if (said_ms == 0 || now_ms - said_ms >= REFUSAL_QUIET_MS) {
        control->refusal_said_ms = now_ms;
        (void)rd_commands_send(&control->commands, "refused");
    }
    rd_reply_error(request, 403, why);
}

static void handle(rd_control *control, rd_request *request) {
    rd_slice path = rd_request_slice(request, request->head.path);
    if (path.len > 0 && path.ptr[0] == '/') path = rd_slice_of(path.ptr + 1, path.len - 1);
    const rd_page *page = find_page(path);
    int verb = page == NULL ? rd_verb_find(path.ptr, path.len) : -1;
    const bool is_open = page != NULL && page->is_probe && !control->is_public;
    const char *why = is_open ? NULL : rd_access_refusal(control->token, request, page != NULL);
    const char *methods =
        verb == RD_VERB_PUBLISH ? "POST" : rd_access_methods(control->token, request, verb >= 0);
    if (why != NULL && control->token != NULL && is_page_of_browser(control, path, request)) {
        rd_reply_ask_password(request);
    } else if (why != NULL) {
        refuse(control, request, why);
    } else if (page == NULL && verb < 0) {
        rd_reply_error(request, 404, "Unsupported action");
    } else if (!rd_access_has_method(request, methods)) {
        rd_reply_use(request, methods);
    } else if (page != NULL) {
        page->show(control, request);
    } else {
        carry_out(control, request, verb);
    }
}

/* ---- the thread ---- */

static void wait_in_poll(rd_server *server, int64_t timeout_us) {
    rd_loop_wait(&server->loop, &server->lead.found, timeout_us);
}

static void *run(void *argument) {
    rd_control *control = argument;
    rd_server *server = control->server;
    rd_loop_lock(&server->loop);
    while (!rd_server_is_done(server)) {
        rd_server_turn(server, wait_in_poll, true);
        rd_request *request = NULL;
        while ((request = rd_server_next_request(server, request)) != NULL) {
            if (request->conn != NULL) handle(control, request);
        }
        if (rd_server_is_stopping(server)) {
            rd_commands_give_up(&control->commands);
            rd_live_end(control->live);
        }
    }
    rd_loop_unlock(&server->loop);
    return NULL;
}

int rd_control_start(rd_control *control) {
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    rd_live_begin(control->live);
    rd_loop_unlock(loop);
    int code = rd_thread_start(&control->thread, run, control);
    control->running = code == 0;
    return -code;
}

void rd_control_stop(rd_control *control) {
    if (!control->running) return;
    rd_server_stop(control->server, RD_STOP_DRAIN);
    pthread_join(control->thread, NULL);
    control->running = false;
}

/* ---- bodies ---- */

#define BODY_MAX    4096
#define PUBLISH_MAX (1 << 20)
#define BODIES_MAX  (32 << 20) /* of all clients */
#define BODY_RATE   32768      /* bytes a second: a megabyte in 32 s */

/* Only those who may publish may send a long body. */
static int64_t body_limit(void *owner, const rd_request *request) {
    const rd_control *control = owner;
    const rd_slice path = rd_request_slice(request, request->head.path);
    if (!rd_slice_equal(path, RD_SLICE("/publish"))) return BODY_MAX;
    const bool may = rd_access_refusal(control->token, request, false) == NULL;
    return may && (control->verbs & 1u << RD_VERB_PUBLISH) ? PUBLISH_MAX : BODY_MAX;
}

static bool append_body(const rd_body *body, rd_buffer *bytes) {
    char room[16384];
    for (uint64_t at = 0; at < body->size;) {
        const ssize_t len = rd_body_read(body, at, room, sizeof(room));
        if (len <= 0) return false;
        rd_buffer_append(bytes, room, (size_t)len);
        at += (uint64_t)len;
    }
    return true;
}

bool rd_control_body(rd_control *control, uint64_t id, rd_buffer *bytes) {
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    const rd_body *body = rd_commands_body(&control->commands, id);
    const bool is_there = body != NULL && append_body(body, bytes);
    rd_loop_unlock(loop);
    return is_there;
}

/* ---- creating one ---- */

/* Few clients and small requests: stricter limits than those for the public, by the same rules. */
static void take_settings(rd_settings *settings) {
    rd_settings_init(settings);
    settings->max_head_bytes = 16384;
    settings->body_memory_bytes = PUBLISH_MAX; /* so bodies need no files */
    settings->total_input_bytes = BODIES_MAX;
    settings->total_body_bytes = 1;
    settings->max_parked_bodies = 0; /* no request is handled before its body is complete */
    settings->body_min_rate = BODY_RATE;
    settings->body_min_rate_after_ms = 5000;
    settings->max_connections = 256;
    settings->max_streams = 256; /* each has some memory of its own, beside total_input_bytes */
    settings->head_timeout_ms = 5000;
    settings->body_timeout_ms = 5000;
    settings->keep_alive_timeout_ms = 20000;
    settings->write_timeout_ms = 10000;
    settings->drain_timeout_ms = 1000;
    settings->idle_grace_ms = 0;
    settings->linger_timeout_ms = 200;
    settings->brief_wait_us = 0;
    settings->backlog = 64;
}

static int open_commands(rd_control *control, int64_t timeout_ms, int *process_fd) {
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    int opened = rd_commands_open(&control->commands, loop, timeout_ms, process_fd);
    rd_loop_unlock(loop);
    return opened;
}

static void free_parts(rd_control *control) {
    rd_free(control->token);
    rd_free(control->versions);
    rd_free(control->about);
    rd_free(control->page);
    rd_free(control->page_policy);
    rd_free(control->report.queues);
    rd_certificate_list_clear(&control->certificates);
    rd_free(control);
}

rd_control *rd_control_new(const rd_control_options *options, int *process_fd) {
    rd_settings settings;
    take_settings(&settings);
    rd_control *control = rd_alloc_zero(sizeof(*control));
    control->token = rd_alloc_text(options->token);
    control->versions = rd_alloc_text(options->versions);
    control->about = rd_alloc_text(options->about);
    control->page = rd_alloc_text(options->page);
    control->page_policy = rd_alloc_text(options->page_policy);
    control->verbs = options->verbs;
    control->report =
        (rd_report){.board = options->board,
                    .versions = control->versions,
                    .about = control->about,
                    .certificates = &control->certificates,
                    .cluster = options->cluster,
                    .room = options->room > 0 ? options->room : options->board->row_count,
                    .started_s = rd_clock_wall_seconds()};
    control->server = rd_server_new(&settings);
    if (control->server == NULL ||
        open_commands(control, options->answer_timeout_ms, process_fd) != 0) {
        int error = errno;
        if (control->server != NULL) rd_server_free(control->server);
        free_parts(control);
        errno = error;
        return NULL;
    }
    control->server->http.body_limit = (rd_body_limit){.most = body_limit, .owner = control};
    control->live = rd_live_new(&control->report, &control->server->loop);
    return control;
}

int rd_control_add_listener(rd_control *control, rd_listener *listener) {
    rd_loop *loop = &control->server->loop;
    control->is_public |= rd_access_is_public(listener);
    rd_loop_lock(loop);
    int added = rd_server_add_listener(control->server, listener);
    rd_loop_unlock(loop);
    return added;
}

void rd_control_add_queue(rd_control *control, const char *url, int fd, int slot) {
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    size_t count = control->report.queue_count + 1;
    control->report.queues = rd_realloc(control->report.queues, count * sizeof(rd_accept_queue));
    rd_accept_queue_init(&control->report.queues[count - 1], url, fd, slot);
    control->report.queue_count = count;
    rd_loop_unlock(loop);
}

void rd_control_clear_queues(rd_control *control) {
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    control->report.queue_count = 0;
    rd_loop_unlock(loop);
}

void rd_control_show_certificates(rd_control *control, rd_certificate_list *list) {
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    rd_certificate_list_clear(&control->certificates);
    control->certificates = *list;
    rd_loop_unlock(loop);
    *list = (rd_certificate_list){0};
}

void rd_control_leave(rd_control *control) {
    rd_loop *loop = &control->server->loop;
    rd_loop_lock(loop);
    control->is_leaving = true;
    rd_loop_unlock(loop);
}

void rd_control_keep_files(rd_control *control) {
    rd_loop *loop = &control->server->loop;
    rd_list *all = &control->server->accepting.listeners;
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
    rd_commands_close(&control->commands);
    rd_live_free(control->live);
    rd_loop_unlock(loop);
    rd_server_free(control->server);
    free_parts(control);
}

/* ---- forks ---- */

void rd_control_hold(rd_control *control) {
    rd_server_hold(control->server);
}

void rd_control_release(rd_control *control) {
    rd_server_release(control->server);
}

void rd_control_abandon(rd_control *control) {
    if (control->commands.process.fd >= 0) close(control->commands.process.fd);
    control->running = false;
    rd_server_abandon(control->server);
}

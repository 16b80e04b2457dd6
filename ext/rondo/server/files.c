/* SPDX-License-Identifier: MIT
 *
 * Requests for the static folder; see files.h.
 */
#include "server/files.h"

#include <errno.h>

#include "base/apart.h"
#include "server/server.h"

#define ANSWERS_PER_TURN 256

/* If connections may use all descriptors that the limit leaves, some of these go to kept files. */
static void share_descriptors(rd_server *server, rd_file_cache *cache) {
    cache->ledger = &server->conns.ledger;
    if (server->settings.max_connections > 0) return;
    if (cache->most_open > server->accepting.limit / 4)
        cache->most_open = server->accepting.limit / 4;
    server->accepting.limit -= cache->most_open;
}

/* ---- openings ---- */

static void on_opened(void *owner, rd_file_opening *opening) {
    rd_server *server = owner;
    rd_list_append(&server->files.opened, &opening->in_list);
}

int rd_files_open(rd_server *server, const char *folder, bool alone) {
    rd_static *files = rd_static_new(&server->loop, folder, &server->settings, alone);
    if (files == NULL) return -1;
    share_descriptors(server, &files->cache);
    files->cache.on_opened = on_opened;
    files->cache.owner = server;
    rd_static_free(server->files.folder);
    server->files.folder = files;
    return 0;
}

/* ---- waiting for openings ---- */

/* When the request has waited too long, in milliseconds. */
static uint64_t late_at(const rd_server *server, const rd_request *request) {
    return request->times.ready_ns / 1000000 + (uint64_t)server->settings.queue_timeout_ms;
}

static void expect_late(rd_server *server, uint64_t at_ms) {
    if (rd_timer_is_armed(&server->files.timer) && server->files.timer.due <= at_ms) return;
    rd_timer_set(&server->loop.timers, &server->files.timer, at_ms);
}

/* A file is answered at once: no seat of this line is ever taken. */
static void place_line(rd_server *server, rd_line *line) {
    rd_line_place(line, &server->files.found, &server->files.found);
}

/* The request waits in the line of its connection's descriptor, see request/line.h. */
static void wait_for_answer(rd_server *server, rd_request *request) {
    rd_lines *lines = rd_conn_lines(request->conn);
    rd_line *line = request->queued.line = lines != NULL ? &lines->files : NULL;
    rd_request_ref(request);
    request->queued.place = RD_PLACE_FILES;
    if (line == NULL) {
        rd_list_append(&server->files.found, &request->queued.standing.node);
    } else {
        rd_request_join_line(request, line);
        place_line(server, line);
    }
}

/* The first requests have waited longest. `left`: how many more may be answered in this turn. The
 * others are answered in the next turn. */
static void answer_late(rd_server *server, rd_list *waiting, int *left) {
    for (; !rd_list_is_empty(waiting); --*left) {
        rd_request *request = RD_CONTAINER(waiting->next, rd_request, in_queue);
        if (*left == 0 || late_at(server, request) > server->loop.now_ms) {
            expect_late(server, late_at(server, request));
            return;
        }
        rd_list_unlink(&request->in_queue);
        request->file_error = ETIMEDOUT;
        server->counts.dropped++;
        wait_for_answer(server, request);
    }
}

static void on_late(rd_timer *timer) {
    rd_server *server = RD_CONTAINER(timer, rd_server, files.timer);
    rd_list *in_flight = &server->files.folder->cache.in_flight;
    int left = ANSWERS_PER_TURN;
    for (rd_list *node = in_flight->next; node != in_flight; node = node->next) {
        answer_late(server, &RD_CONTAINER(node, rd_file_opening, in_list)->waiting, &left);
    }
    answer_late(server, &server->files.later, &left);
}

void rd_files_init(rd_server *server) {
    rd_files_queue *files = &server->files;
    rd_list_init(&files->found);
    rd_list_init(&files->opened);
    rd_list_init(&files->later);
    rd_timer_init(&files->timer, on_late);
}

/* ---- requests ---- */

/* A request that waits for an opening has no reference: if its client leaves, it is freed. */
static bool place(rd_server *server, rd_request *request, rd_static_take take,
                  rd_file_opening *opening) {
    switch (take) {
    case RD_STATIC_NOT:
        return false;
    case RD_STATIC_READY:
        wait_for_answer(server, request);
        return true;
    case RD_STATIC_WAITS:
        rd_list_append(&opening->waiting, &request->in_queue);
        break;
    case RD_STATIC_LATER:
        rd_list_append(&server->files.later, &request->in_queue);
        break;
    }
    if (server->settings.queue_timeout_ms > 0) expect_late(server, late_at(server, request));
    return true;
}

RD_APART static bool ask(rd_server *server, rd_request *request) {
    rd_file_opening *opening = NULL;
    const rd_static_take take =
        rd_static_ask(server->files.folder, request, server->loop.now_ms, &opening);
    return place(server, request, take, opening);
}

bool rd_files_take(rd_server *server, rd_request *request) {
    if (server->files.folder == NULL) return false;
    rd_file_cache *cache = &server->files.folder->cache;
    request->times.ready_ns = server->loop.now_ns;
    cache->has_line = !rd_list_is_empty(&server->files.later);
    const bool is_taken = ask(server, request);
    cache->has_line = false;
    return is_taken;
}

/* Takes up one request that has waited for this opening. */
static void take_up_opened(rd_server *server, rd_file_opening *opened) {
    rd_list *node = rd_list_shift(&opened->waiting);
    if (node == NULL) {
        rd_list_unlink(&opened->in_list);
        rd_file_opening_free(opened);
        return;
    }
    rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
    rd_file_opening *opening = NULL;
    const rd_static_take take =
        rd_static_opened(server->files.folder, request, opened, server->loop.now_ms, &opening);
    if (!place(server, request, take, opening)) rd_queue_add(server, request);
}

static bool may_open(const rd_server *server) {
    return server->files.folder->cache.openings.count < RD_FILE_OPENINGS_MAX;
}

/* Makes one waiting request ready. False: there is none. */
static bool take_up(rd_server *server) {
    if (!rd_list_is_empty(&server->files.opened)) {
        take_up_opened(server, RD_CONTAINER(server->files.opened.next, rd_file_opening, in_list));
        return true;
    }
    if (rd_list_is_empty(&server->files.later) || !may_open(server)) return false;
    rd_request *request = RD_CONTAINER(rd_list_shift(&server->files.later), rd_request, in_queue);
    if (!ask(server, request)) rd_queue_add(server, request);
    return true;
}

bool rd_files_wait(const rd_server *server) {
    if (server->files.folder == NULL) return false;
    return !rd_list_is_empty(&server->files.found) || !rd_list_is_empty(&server->files.opened) ||
           (!rd_list_is_empty(&server->files.later) && may_open(server));
}

static void leave_line(rd_server *server, rd_request *request) {
    if (request->queued.line == NULL) {
        rd_list_unlink(&request->queued.standing.node);
    } else {
        rd_list_unlink(&request->in_queue);
        place_line(server, request->queued.line);
    }
    request->queued.place = RD_PLACE_NONE;
}

void rd_files_leave(rd_server *server, rd_request *request) {
    leave_line(server, request);
    rd_static_let_go(request);
    rd_request_unref(request);
}

static void answer(rd_server *server, rd_request *request) {
    leave_line(server, request);
    rd_static_answer(server->files.folder, request);
    rd_static_let_go(request);
    rd_request_unref(request);
}

/* Answers as many requests of the line as it has seats, then the next line has its turn. Returns
 * how many were answered. */
static int answer_line(rd_server *server, rd_line *line, int most) {
    rd_lines *lines = RD_CONTAINER(line, rd_lines, files);
    int count = 0;
    rd_lines_ref(lines);
    rd_list_unlink(&line->standing.node);
    for (; count < most && (uint32_t)count < line->seats; count++) {
        if (rd_list_is_empty(&line->waiting)) break;
        answer(server, RD_CONTAINER(line->waiting.next, rd_request, in_queue));
    }
    place_line(server, line);
    rd_lines_unref(lines);
    return count;
}

/* Answers the first entry: a request that is a line by itself, or a line. */
static int answer_first(rd_server *server, int most) {
    rd_request *request = rd_standing_first(server->files.found.next);
    if (request->queued.line != NULL) return answer_line(server, request->queued.line, most);
    answer(server, request);
    return 1;
}

/* After an answer, the connection's next request waits behind those of other connections. */
void rd_files_answer(rd_server *server) {
    if (!rd_files_wait(server)) return;
    for (int left = ANSWERS_PER_TURN; left > 0 && take_up(server); left--) {
    }
    for (int left = ANSWERS_PER_TURN; left > 0 && !rd_list_is_empty(&server->files.found);) {
        left -= answer_first(server, left);
    }
    rd_conn_set_flush(&server->conns);
}

/* ---- the end ---- */

void rd_files_clear(rd_server *server) {
    while (!rd_list_is_empty(&server->files.found)) {
        rd_files_leave(server, rd_standing_first(server->files.found.next));
    }
    for (rd_list *node; (node = rd_list_shift(&server->files.opened)) != NULL;) {
        rd_file_opening_free(RD_CONTAINER(node, rd_file_opening, in_list));
    }
    if (rd_timer_is_armed(&server->files.timer)) rd_timer_cancel(&server->files.timer);
}

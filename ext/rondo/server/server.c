/* SPDX-License-Identifier: MIT
 *
 * A server's parts, what protocols tell it, its listeners and the way to a stop; see server.h.
 */
#include "server/server.h"

#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "base/error.h"
#include "loop/disk.h"
#include "protocol/protocols.h"
#include "server/budgets.h"
#include "server/files.h"
#include "server/retire.h"

#define ROOM_MADE    8     /* at a time */
#define ROOM_MS      100   /* between two looks for connections that could make room */
#define SPARE_MS     1000  /* without a word from them */
#define RECOVERED_MS 10000 /* without a connection that found no descriptor, and the like */
#define TOLD_MS      1000  /* between two lines about the same */

/* ---- what protocols tell ---- */

static rd_server *server_of(rd_handler *handler) {
    return RD_CONTAINER(handler, rd_server, handler);
}

static void on_request(rd_handler *handler, rd_request *request) {
    rd_server *server = server_of(handler);
    if (!rd_files_take(server, request)) rd_queue_add(server, request);
}

static void on_event(rd_handler *handler, rd_event_source *source) {
    rd_events_add(server_of(handler), source);
}

static void on_left(rd_handler *handler, rd_request *request) {
    if (request->queued.place == RD_PLACE_FILES) {
        rd_files_leave(request);
    } else {
        rd_queue_leave(server_of(handler), request);
    }
}

static void keep_refusal(rd_server *server, const rd_address *peer, int code) {
    if (server->refusal_count < RD_REFUSALS_KEPT) {
        server->refusals[server->refusal_count++] = (rd_refusal){*peer, code};
    }
}

/* Whether `told_ms`, when the log was last told (0: never), is long ago; then it is now. */
static bool is_due(const rd_server *server, uint64_t *told_ms) {
    const uint64_t now = server->loop.now_ms;
    if (*told_ms != 0 && now - *told_ms < TOLD_MS) return false;
    *told_ms = now;
    return true;
}

/* A full budget refuses many, and a file that shrinks cuts all answers that send it: one line says
 * so for all of them. */
static bool is_told(rd_server *server, int code) {
    if (code == RD_ERR_FILE_CUT) return is_due(server, &server->told_file_cut_ms);
    const rd_ledger_kind budget = rd_budget_of(code);
    return budget == RD_LEDGER_KINDS ||
           rd_ledger_tells(&server->conns.ledger, budget, server->loop.now_ms);
}

static void on_refused(rd_handler *handler, const rd_conn *conn, int code) {
    rd_server *server = server_of(handler);
    const bool is_request =
        rd_error_class(code) != RD_ERROR_FRAME && rd_budget_of(code) != RD_LEDGER_SUBSCRIPTIONS;
    if (is_request) server->refused++;
    if (is_told(server, code)) keep_refusal(server, &conn->peer, code);
}

static void on_cut(rd_conn *conn, int code) {
    rd_server *server = RD_CONTAINER(conn->set, rd_server, conns);
    if (is_told(server, code)) keep_refusal(server, &conn->peer, code);
}

/* Deadlines move on with all that a client does. */
bool rd_server_is_silent(const rd_server *server, const rd_request *request, uint64_t for_ms) {
    const rd_conn *conn = request->conn;
    if (conn == NULL) return true;
    const rd_settings *settings = &server->settings;
    const bool reads = conn->write_deadline != UINT64_MAX;
    const uint64_t deadline = reads ? conn->write_deadline : conn->deadline;
    const int64_t timeout_ms = reads ? settings->write_timeout_ms : settings->body_timeout_ms;
    if (deadline == UINT64_MAX) return false; /* it is not the client who is late */
    return deadline - (uint64_t)timeout_ms + for_ms <= server->loop.now_ms;
}

/* The log hears of one a second at most: a flood of such clients must not become one of lines. */
void rd_server_give_up(rd_server *server, rd_request *request) {
    if (request->conn == NULL) return;
    server->given_up++;
    if (is_due(server, &server->told_given_up_ms)) {
        keep_refusal(server, &request->conn->peer, RD_ERR_GIVEN_UP);
    }
    request->responder->give_up(request);
}

/* ---- making one ---- */

static void on_room_due(rd_timer *timer);

static void on_drain_over(rd_timer *timer) {
    rd_server *server = RD_CONTAINER(timer, rd_server, drain_timer);
    rd_server_stop(server, RD_STOP_NOW);
}

static char *copy(const char *text) {
    const size_t size = strlen(text) + 1;
    return memcpy(rd_alloc(size), text, size);
}

rd_server *rd_server_new(const rd_settings *settings) {
    rd_server *server = rd_alloc_zero(sizeof(*server));
    server->settings = *settings;
    if (rd_loop_init(&server->loop, settings->poll_only != 0) != 0) {
        rd_free(server);
        return NULL;
    }
    rd_conn_set_init(&server->conns, &server->loop, &server->settings);
    server->conns.takes_turns = true;
    server->conns.offer = rd_protocol_offer;
    server->handler = (rd_handler){on_request, on_refused, on_event, on_left};
    server->http.handler = &server->handler;
    server->http.settings = &server->settings;
    rd_head_limits_init(&server->http.limits, settings);
    rd_sections_init(&server->http.sections);
    rd_pubsub_init(&server->pubsub, &server->conns, &server->http);
    server->conns.shared = &server->http;
    server->conns.on_cut = on_cut;
    server->http.ledger = server->http.requests.ledger = &server->conns.ledger;
    server->body_folder = copy(rd_spool_folder());
    server->http.requests.folder = server->body_folder;
    rd_budgets_init(server);
    rd_list_init(&server->listeners);
    rd_queue_init(&server->queue);
    rd_list_init(&server->events);
    rd_list_init(&server->for_files);
    rd_list_init(&server->files_opened);
    rd_list_init(&server->files_later);
    rd_list_init(&server->calls);
    atomic_init(&server->phase, RD_PHASE_APPLICATION); /* nobody leads yet */
    atomic_init(&server->turns, 0);
    server->may_hold = true;
    server->score = &server->own_score;
    server->next_call_due_ns = UINT64_MAX;
    rd_siblings_init(&server->siblings);
    rd_timer_init(&server->drain_timer, on_drain_over);
    rd_timer_init(&server->room_timer, on_room_due);
    rd_timer_init(&server->files_timer, rd_files_on_late);
    atomic_init(&server->stop_wanted, RD_STOP_NOT);
    return server;
}

void rd_server_set_proxies(rd_server *server, rd_network *networks, size_t count) {
    rd_free(server->proxies);
    server->proxies = networks;
    server->http.proxies = networks;
    server->http.proxy_count = count;
}

/* ---- listeners ---- */

static void look_again(rd_server *server) {
    rd_timer_set(&server->loop.timers, &server->room_timer, server->loop.now_ms + ROOM_MS);
}

static bool somebody_waits(rd_server *server) {
    RD_EACH_LISTENER(server, listener, node) {
        struct pollfd queue = {.fd = listener->source.fd, .events = POLLIN};
        if (poll(&queue, 1, 0) > 0) return true;
    }
    return false;
}

/* Closes some whose last answer was sent before then. Whether there were any. */
static bool close_lingering(rd_server *server, uint64_t since_ms) {
    unsigned left = ROOM_MADE;
    rd_list *node = server->conns.conns.next;
    while (left > 0 && node != &server->conns.conns) {
        rd_conn *conn = RD_CONTAINER(node, rd_conn, in_set);
        node = node->next;
        if (conn->state != RD_CONN_LINGERING || conn->lingers_since > since_ms) continue;
        rd_conn_close(conn);
        left--;
    }
    return left < ROOM_MADE;
}

/* Closes some that have said nothing since then; true when there are any of the kind at all. */
static bool close_spare(rd_server *server, bool kept, uint64_t since_ms) {
    bool any = false;
    rd_list *node = server->conns.conns.next;
    for (unsigned left = ROOM_MADE; left > 0 && node != &server->conns.conns;) {
        rd_conn *conn = RD_CONTAINER(node, rd_conn, in_set);
        node = node->next;
        if (!rd_conn_is_open(conn) || conn->out.bytes > 0) continue;
        if (!rd_conn_is_spare(conn, kept, UINT64_MAX / 2)) continue;
        any = true;
        if (!rd_conn_is_spare(conn, kept, since_ms)) continue;
        rd_conn_finish(conn, false);
        left--;
    }
    return any;
}

/* At the limit connections that nobody uses make room for new ones, a few at a time: those that
 * linger, then those that never said anything, and only when there are none, those that are kept
 * for later. */
static void on_room_due(rd_timer *timer) {
    rd_server *server = RD_CONTAINER(timer, rd_server, room_timer);
    if (!server->accept_paused || server->stopping != RD_STOP_NOT) return;
    look_again(server);
    if (!somebody_waits(server)) return;
    uint64_t since_ms = server->loop.now_ms - SPARE_MS;
    if (close_lingering(server, since_ms)) return;
    if (!close_spare(server, false, since_ms)) close_spare(server, true, since_ms);
}

/* At the limit new connections wait in the kernel's queue instead of being turned away. */
void rd_server_limit_accepting(rd_server *server) {
    bool full = server->conns.count >= server->connection_limit ||
                rd_ledger_lacks_descriptors(&server->conns.ledger);
    if (full == server->accept_paused) return;
    server->accept_paused = full;
    if (full) look_again(server);
    RD_EACH_LISTENER(server, listener, node) rd_listener_pause(listener, full);
}

static void on_accept(rd_listener *listener, int fd, const rd_address *peer) {
    rd_server *server = listener->owner;
    server->accepted++;
    if (rd_handover_accepted(server, fd, peer, rd_listener_name_of(listener))) return;
    const rd_protocol *protocol = rd_protocol_begin(&server->conns, listener->transport, peer);
    rd_conn *conn = rd_conn_open(&server->conns, fd, listener->transport, protocol, peer);
    atomic_store_explicit(&server->score->connections, server->conns.count, memory_order_relaxed);
    rd_conn_read_now(conn);
    rd_server_limit_accepting(server);
}

/* The log is told when it begins, and again only after it was over for a while: with descriptors
 * that come and go, each connection would be a new beginning. */
static void note_scarcity(rd_server *server, uint64_t *last_ms, int code) {
    const uint64_t before = *last_ms, now = server->loop.now_ms;
    *last_ms = now;
    if (before != 0 && now - before < RECOVERED_MS) return;
    keep_refusal(server, &(rd_address){.kind = RD_ADDRESS_NONE}, code);
}

static void on_busy(rd_listener *listener) {
    rd_server *server = listener->owner;
    server->dropped++;
    note_scarcity(server, &server->no_descriptor_ms, RD_ERR_NO_DESCRIPTOR);
}

void rd_server_check_disk(rd_server *server) {
    if (!rd_disk_take_failure(&server->loop)) return;
    note_scarcity(server, &server->no_thread_ms, RD_ERR_NO_DISK_THREAD);
}

int rd_server_add_listener(rd_server *server, rd_listener *listener) {
    listener->owner = server;
    listener->on_accept = on_accept;
    listener->on_busy = on_busy;
    listener->busy = rd_protocol_busy();
    listener->accepts_per_turn = (int)server->settings.accepts_per_turn;
    if (rd_listener_start(listener, &server->loop) != 0) return -1;
    rd_list_append(&server->listeners, &listener->in_server);
    rd_listener_names_add(&server->listener_names, listener);
    /* Siblings may count on it before its first turn. */
    atomic_store_explicit(&server->score->listening, 1, memory_order_relaxed);
    return 0;
}

static void end_listeners(rd_server *server, int most) {
    RD_EACH_LISTENER(server, listener, node) rd_listener_end(listener, most);
}

/* ---- stopping ---- */

void rd_server_each_conn(rd_server *server, void (*visit)(rd_conn *conn)) {
    rd_list all;
    rd_list_take(&all, &server->conns.conns);
    for (rd_list *node; (node = rd_list_shift(&all)) != NULL;) {
        rd_list_append(&server->conns.conns, node);
        visit(RD_CONTAINER(node, rd_conn, in_set));
    }
}

/* An answer that is cut off must not look whole: where nothing else tells, a reset does. */
static void end_now(rd_conn *conn) {
    if (conn->settled || conn->out.bytes > 0) {
        rd_conn_reset(conn);
    } else {
        rd_conn_close(conn);
    }
}

void rd_server_carry_out_stop(rd_server *server) {
    int wanted = rd_retire_stop_due(server);
    if (server->stopping >= wanted) return;
    bool first = server->stopping == RD_STOP_NOT;
    server->stopping = wanted;
    if (first) {
        end_listeners(server, wanted == RD_STOP_DRAIN ? (int)server->settings.backlog : 0);
        server->conns.stopping = true;
    }
    if (wanted == RD_STOP_NOW) {
        server->conns.moving = false;
        rd_server_each_conn(server, end_now);
    } else if (first) {
        rd_departure_begin(server);
        uint64_t due = server->loop.now_ms + (uint64_t)server->settings.drain_timeout_ms;
        rd_timer_set(&server->loop.timers, &server->drain_timer, due);
    }
}

void rd_server_stop(rd_server *server, int how) {
    int before = atomic_load(&server->stop_wanted);
    while (before < how && !atomic_compare_exchange_weak(&server->stop_wanted, &before, how)) {
    }
    rd_loop_wakeup(&server->loop);
}

static bool is_in_use(const rd_conn *conn) {
    return conn->state == RD_CONN_OPEN || conn->state == RD_CONN_FINISHING;
}

bool rd_server_is_done(const rd_server *server) {
    if (server->stopping == RD_STOP_NOT || server->http.requests.live > 0) return false;
    if (rd_siblings_expect(server) || rd_events_live(server)) return false;
    for (rd_list *node = server->conns.conns.next; node != &server->conns.conns;
         node = node->next) {
        if (is_in_use(RD_CONTAINER(node, rd_conn, in_set))) return false;
    }
    return true;
}

/* ---- the end ---- */

void rd_server_free(rd_server *server) {
    rd_loop_lock(&server->loop);
    end_listeners(server, 0);
    rd_siblings_clear(server);
    rd_server_each_conn(server, rd_conn_close);
    rd_queue_clear(&server->queue);
    rd_events_clear(server);
    rd_pubsub_clear(&server->pubsub);
    if (rd_timer_is_armed(&server->drain_timer)) rd_timer_cancel(&server->drain_timer);
    if (rd_timer_is_armed(&server->room_timer)) rd_timer_cancel(&server->room_timer);
    rd_loop_unlock(&server->loop);
    const bool is_over = rd_disk_stop(&server->loop);
    rd_files_clear(server);
    if (is_over) { /* else a thread still looks at these folders */
        rd_static_free(server->files);
        rd_free(server->body_folder);
    }
    rd_loop_clear(&server->loop);
    rd_conn_set_clear(&server->conns);
    rd_listener_names_clear(&server->listener_names);
    rd_request_pool_clear(&server->http.requests);
    rd_sections_clear(&server->http.sections);
    rd_protocols_clear(&server->http);
    rd_free(server->proxies);
    rd_free(server);
}

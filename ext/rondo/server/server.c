/* SPDX-License-Identifier: MIT
 *
 * The parts of a server, what protocols tell it, its beginning and end, forks; see server.h.
 */
#include "server/server.h"

#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "base/error.h"
#include "loop/disk.h"
#include "http2/http2.h"
#include "protocol/protocols.h"
#include "server/budgets.h"
#include "server/files.h"
#include "server/stop.h"
#include "transport/deferred.h"
#include "transport/layer.h"
#include "transport/parting.h"

/* ---- what protocols tell ---- */

static rd_server *server_of(rd_handler *handler) {
    return RD_CONTAINER(handler, rd_server, handler);
}

static void on_request(rd_handler *handler, rd_request *request) {
    rd_server *server = server_of(handler);
    if (!rd_files_take(server, request)) rd_queue_add(server, request);
}

/* The same with several sites: the static folder is that of site 0. */
static void on_request_of_site(rd_handler *handler, rd_request *request) {
    request->site = request->conn->origin.site;
    if (request->site == 0) {
        on_request(handler, request);
    } else {
        rd_queue_add(server_of(handler), request);
    }
}

void rd_server_begin_sites(rd_server *server) {
    server->handler.on_request = on_request_of_site;
}

static void on_event(rd_handler *handler, rd_event_source *source) {
    rd_events_add(server_of(handler), source);
}

static void on_withdrawn(rd_handler *handler, rd_event_source *source) {
    rd_events_withdraw(server_of(handler), source);
}

static void on_left(rd_handler *handler, rd_request *request) {
    rd_server *server = server_of(handler);
    switch (request->queued.place) {
    case RD_PLACE_FILES:
        rd_files_leave(server, request);
        break;
    case RD_PLACE_FORWARDED:
        rd_forward_leave(server, request);
        break;
    default:
        rd_queue_leave(server, request);
    }
}

static void on_held(rd_handler *handler, rd_lines *lines, bool is_held) {
    rd_queue_hold(server_of(handler), &lines->calls, is_held);
}

static bool is_request(int code) {
    if (rd_incident_is_handshake(code)) return rd_error_class(code) == RD_ERROR_PEER;
    return rd_error_class(code) != RD_ERROR_FRAME && rd_budget_of(code) != RD_LEDGER_SUBSCRIPTIONS;
}

static void on_refused(rd_handler *handler, rd_conn *conn, int code) {
    rd_server *server = server_of(handler);
    const char *reason = conn->layered ? rd_layer_reason(conn) : NULL;
    if (is_request(code)) server->counts.refused++;
    rd_incidents_add_reason(server, &conn->peer, code, reason);
}

static rd_server *server_with(rd_conn_set *conns) {
    return RD_CONTAINER(conns, rd_server, conns);
}

static void on_layer_refused(rd_conn *conn, int code) {
    on_refused(&server_with(conn->set)->handler, conn, code);
}

static bool is_cut_answer(int code) {
    return code == RD_ERR_FILE_CUT || code == RD_ERR_ANSWER_SHORT || code == RD_ERR_ANSWER_LONG;
}

static void on_cut(rd_conn *conn, int code) {
    rd_server *server = server_with(conn->set);
    if (is_cut_answer(code)) server->counts.cut++;
    if (code == RD_ERR_REPLY_CUT && server->stop.state == RD_STOP_NOW) return;
    rd_incidents_add(server, &conn->peer, code);
}

/* ---- making one ---- */

/* Endless tasks must leave a place for requests, unless there is only one. */
static void init_tasks(rd_server *server) {
    const uint32_t places = rd_settings_places(&server->settings);
    rd_tasks_init(&server->tasks, &server->loop, places > 1 ? places - 1 : 1);
    server->tasks.ready_count = &server->events.ready_count;
    server->tasks.score = &server->score;
}

static void init_parts(rd_server *server) {
    rd_accept_init(server);
    rd_queue_init(&server->queue);
    rd_calls_init(&server->calls);
    rd_list_init(&server->events.waiting);
    init_tasks(server);
    rd_files_init(server);
    rd_outgoings_init(&server->outgoings, &server->conns, &server->accepting.limit);
    rd_siblings_init(&server->siblings, rd_handover_receive);
    rd_stop_init(server);
    rd_onlook_init(server);
    atomic_init(&server->lead.phase, RD_PHASE_APPLICATION); /* there is no leader yet */
    atomic_init(&server->lead.turns, 0);
    server->lead.may_hold = true;
}

rd_server *rd_server_new(const rd_settings *settings) {
    rd_server *server = rd_alloc_zero(sizeof(*server));
    server->settings = *settings;
    if (rd_loop_init(&server->loop, settings->poll_only != 0) != 0) {
        rd_free(server);
        return NULL;
    }
    rd_conn_set_init(&server->conns, &server->loop, &server->settings);
    server->conns.shares_sending = true;
    server->http.http2 = settings->http2 ? rd_http2_protocol() : NULL;
    server->conns.offer = server->http.http2 != NULL ? rd_protocol_offer_http2 : rd_protocol_offer;
    server->handler =
        (rd_handler){on_request, on_refused, on_event, on_left, on_held, on_withdrawn};
    server->http.handler = &server->handler;
    server->http.settings = &server->settings;
    rd_head_limits_init(&server->http.limits, settings);
    rd_sections_init(&server->http.sections);
    rd_date_init(&server->http.date);
    rd_pubsub_init(&server->pubsub, &server->conns, &server->http);
    server->conns.shared = &server->http;
    server->conns.on_cut = on_cut;
    server->conns.on_refused = on_layer_refused;
    server->http.ledger = server->http.requests.ledger = &server->conns.ledger;
    rd_endpoint_set_limits(&server->http);
    server->body_folder = rd_alloc_text(rd_spool_folder());
    server->http.requests.spools.folder = server->body_folder;
    rd_budgets_init(server);
    server->score = &server->own_score;
    init_parts(server);
    return server;
}

/* ---- the end ---- */

void rd_server_free(rd_server *server) {
    rd_loop_lock(&server->loop);
    server->score = &server->own_score; /* at the end of Ruby the scoreboard may be gone already */
    rd_onlook_end(server);
    rd_accept_end(server, 0);
    rd_siblings_clear(server);
    rd_outgoings_stop(&server->outgoings);
    rd_parting_end(&server->conns);
    rd_conn_set_each(&server->conns, rd_conn_close);
    rd_deferred_finish(&server->conns);
    rd_queue_clear(&server->queue);
    rd_events_clear(server);
    rd_tasks_end(&server->tasks);
    rd_pubsub_clear(&server->pubsub);
    if (rd_timer_is_armed(&server->stop.timer)) rd_timer_cancel(&server->stop.timer);
    rd_loop_unlock(&server->loop);
    const bool is_over = rd_disk_stop(&server->loop);
    rd_files_clear(server);
    if (is_over) { /* if not, a thread still uses these folders */
        rd_static_free(server->files.folder);
        rd_free(server->body_folder);
    }
    rd_disk_stop(&server->loop); /* files that were kept are closed by a thread as well */
    rd_loop_clear(&server->loop);
    rd_conn_set_clear(&server->conns);
    rd_request_pool_clear(&server->http.requests);
    rd_sections_clear(&server->http.sections);
    rd_protocols_clear(&server->http);
    rd_accept_clear(server);
    rd_free(server);
}

/* ---- around a fork ---- */

void rd_server_hold(rd_server *server) {
    rd_loop_lock(&server->loop);
}

void rd_server_release(rd_server *server) {
    rd_loop_unlock(&server->loop);
}

void rd_server_abandon(rd_server *server) {
    rd_request_pool_abandon(&server->http.requests);
    RD_EACH_LISTENER(server, listener, node) rd_listener_abandon(listener);
    rd_parting_end(&server->conns);
    rd_conn_set_abandon(&server->conns);
    rd_dialer_abandon(&server->outgoings.dialer);
    if (server->pubsub.link != NULL) rd_conn_set_abandon(&server->pubsub.link->conns);
    rd_server_release(server);
}

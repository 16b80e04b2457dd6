/* SPDX-License-Identifier: MIT
 *
 * Accepting, and making room for it; see accept.h.
 */
#include "server/accept.h"

#include <poll.h>

#include "base/alloc.h"
#include "base/error.h"
#include "protocol/protocols.h"
#include "server/server.h"

#define ROOM_MADE 8    /* connections that make room at a time */
#define ROOM_MS   100  /* between two searches for connections that can make room */
#define SPARE_MS  1000 /* of silence, before a connection is spare */

/* ---- room ---- */

static void look_again(rd_server *server) {
    rd_timer_set(&server->loop.timers, &server->accepting.timer, server->loop.now_ms + ROOM_MS);
}

static bool somebody_waits(rd_server *server) {
    RD_EACH_LISTENER(server, listener, node) {
        struct pollfd queue = {.fd = listener->source.fd, .events = POLLIN};
        if (poll(&queue, 1, 0) > 0) return true;
    }
    return false;
}

/* Closes a few connections whose last answer was sent before since_ms. True if there were any. */
static bool close_lingering(rd_server *server, uint64_t since_ms) {
    unsigned left = ROOM_MADE;
    rd_list *node = server->conns.conns.next;
    while (left > 0 && node != &server->conns.conns) {
        rd_conn *conn = RD_CONTAINER(node, rd_conn, in_set);
        node = node->next;
        if (conn->state != RD_CONN_LINGERING || conn->stall->lingers_since_ms > since_ms) continue;
        rd_conn_close(conn);
        left--;
    }
    return left < ROOM_MADE;
}

/* Closes a few spare connections that have been silent since since_ms. True if there is any spare
 * connection of this kind, silent for that long or not. */
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

/* At the limit, unused connections make room for new ones, a few at a time: first those that
 * linger, then those that never sent anything. Kept-alive connections are closed only when there
 * are none of the others. */
static void on_room_due(rd_timer *timer) {
    rd_server *server = RD_CONTAINER(timer, rd_server, accepting.timer);
    if (!server->accepting.paused || server->stop.state != RD_STOP_NOT) return;
    look_again(server);
    if (!somebody_waits(server)) return;
    uint64_t since_ms = server->loop.now_ms - SPARE_MS;
    if (close_lingering(server, since_ms)) return;
    if (!close_spare(server, false, since_ms)) close_spare(server, true, since_ms);
}

/* At the limit, new connections wait in the kernel's queue; they are not rejected. */
void rd_accept_limit(rd_server *server) {
    bool full = server->conns.count >= server->accepting.limit ||
                rd_ledger_lacks_descriptors(&server->conns.ledger);
    if (full == server->accepting.paused) return;
    server->accepting.paused = full;
    if (full) look_again(server);
    RD_EACH_LISTENER(server, listener, node) rd_listener_pause(listener, full);
}

/* ---- listeners ---- */

static bool on_accept(rd_listener *listener, int fd, const rd_address *peer) {
    rd_server *server = listener->owner;
    server->counts.accepted++;
    if (rd_handover_accepted(server, fd, peer, rd_listener_name_of(listener))) return false;
    const rd_protocol *protocol = rd_protocol_begin(&server->conns, listener->transport, peer);
    rd_conn *conn = rd_conn_open(&server->conns, fd, listener->transport, protocol, peer);
    conn->origin.site = listener->site;
    atomic_store_explicit(&server->score->connections, server->conns.count, memory_order_relaxed);
    rd_conn_read_now(conn);
    rd_accept_limit(server);
    return rd_conn_is_open(conn) && conn->awaits_answer;
}

/* A raw connection stays in the worker that accepted it. */
static bool on_accept_raw(rd_listener *listener, int fd, const rd_address *peer) {
    rd_server *server = listener->owner;
    server->counts.accepted++;
    rd_conn *conn =
        rd_protocol_open_raw(&server->conns, fd, listener->transport, peer, listener->maker);
    atomic_store_explicit(&server->score->connections, server->conns.count, memory_order_relaxed);
    rd_conn_read_now(conn);
    rd_accept_limit(server);
    return false;
}

static void on_busy(rd_listener *listener) {
    rd_server *server = listener->owner;
    server->counts.dropped++;
    rd_incidents_add(server, NULL, RD_ERR_NO_DESCRIPTOR);
}

int rd_server_add_listener(rd_server *server, rd_listener *listener) {
    listener->owner = server;
    listener->on_accept = listener->is_raw ? on_accept_raw : on_accept;
    listener->on_busy = on_busy;
    listener->busy = listener->is_raw ? RD_SLICE("") : rd_protocol_busy();
    listener->accepts_per_turn = (int)server->settings.accepts_per_turn;
    if (rd_listener_start(listener, &server->loop) != 0) return -1;
    server->accepting.is_secure |= !listener->transport->is_plain;
    rd_list_append(&server->accepting.listeners, &listener->in_server);
    rd_listener_names_add(&server->accepting.names, listener);
    /* Siblings may send connections before the first turn of this server. */
    atomic_store_explicit(&server->score->listening, 1, memory_order_relaxed);
    return 0;
}

/* What waits for a raw listener stays in the kernel's queue: another process may have the socket,
 * and this one would only close the connections. */
void rd_accept_end(rd_server *server, int most) {
    RD_EACH_LISTENER(server, listener, node) {
        rd_listener_end(listener, listener->is_raw ? 0 : most);
    }
}

void rd_server_set_proxies(rd_server *server, rd_network *networks, size_t count) {
    rd_free(server->accepting.proxies);
    server->accepting.proxies = networks;
    server->http.proxies = networks;
    server->http.proxy_count = count;
}

void rd_accept_init(rd_server *server) {
    rd_list_init(&server->accepting.listeners);
    rd_timer_init(&server->accepting.timer, on_room_due);
}

void rd_accept_clear(rd_server *server) {
    rd_timer *timer = &server->accepting.timer;
    if (rd_timer_is_armed(timer)) rd_timer_cancel(timer);
    rd_listener_names_clear(&server->accepting.names);
    rd_free(server->accepting.proxies);
}

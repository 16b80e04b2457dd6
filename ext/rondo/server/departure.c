/* SPDX-License-Identifier: MIT
 *
 * Moving and announcing; see departure.h.
 */
#include "server/departure.h"

#include <unistd.h>

#include "server/server.h"
#include "transport/parting.h"

#define LOOKED_AT_PER_TURN 256
#define MOVED_PER_TURN     32

static void notify_if_it_stays(rd_conn *conn) {
    if (!rd_conn_may_move(conn)) rd_conn_shut_down(conn);
}

/* The rest of the time is for clients that take long to answer a Close. */
static uint64_t spread_ms(const rd_server *server) {
    const int64_t wanted = server->settings.drain_spread_ms,
                  most = server->settings.drain_timeout_ms * 3 / 4;
    if (server->stop.in_one_go) return 0;
    return (uint64_t)(wanted < most ? wanted : most);
}

void rd_departure_begin(rd_server *server) {
    rd_departure *departure = &server->departure;
    rd_parting_begin(&server->conns, spread_ms(server));
    departure->due_ms = server->loop.now_ms + (uint64_t)server->settings.drain_timeout_ms / 2;
    server->conns.moving = rd_siblings_are_there(server);
    rd_conn_set_each(&server->conns, server->conns.moving ? notify_if_it_stays : rd_conn_shut_down);
}

static void announce(rd_server *server) {
    server->conns.moving = false;
    server->departure.left = 0;
    rd_conn_set_each(&server->conns, rd_conn_shut_down);
}

static bool move(rd_server *server, rd_conn *conn, const rd_packed *packed) {
    int64_t to = rd_siblings_lightest(server, rd_siblings_load_of, server->accepting.limit);
    const int flags = RD_HANDOVER_IDLE | (packed->begun ? 0 : RD_HANDOVER_NEW);
    if (to < 0 || !rd_handover_give(server, to, conn, packed, flags, packed->left_ms)) return false;
    rd_conn_close(conn); /* the other worker has a copy of the descriptor */
    return true;
}

/* A connection stays if its state does not fit into one message. */
static bool can_leave(rd_conn *conn, rd_packed *packed) {
    return rd_conn_pack(conn, false, packed) && rd_packed_len(packed) <= RD_HANDOVER_BYTES_MAX;
}

/* Moves the next connection of the round. If it cannot move, it goes to the end of the list. */
static bool look_at_next(rd_server *server) {
    rd_list *node = rd_list_shift(&server->conns.conns);
    rd_conn *conn = RD_CONTAINER(node, rd_conn, in_set);
    rd_packed packed;
    rd_list_append(&server->conns.conns, node);
    server->departure.left--;
    if (server->departure.first == NULL) server->departure.first = node;
    if (!can_leave(conn, &packed)) return false;
    if (move(server, conn, &packed)) {
        if (server->departure.first == node) server->departure.first = NULL;
        return true;
    }
    server->departure.blocked = true;
    return false;
}

/* Connections that wait for their end are counted, but not in the list. */
static bool has_come_round(rd_server *server) {
    const rd_list *all = &server->conns.conns;
    return rd_list_is_empty(all) || all->next == server->departure.first;
}

static void move_some(rd_server *server) {
    rd_departure *departure = &server->departure;
    if (departure->left == 0 || departure->left > server->conns.count) {
        departure->left = server->conns.count;
        departure->first = NULL;
    }
    for (int looked_at = 0, moved = 0; looked_at < LOOKED_AT_PER_TURN; looked_at++) {
        if (has_come_round(server)) departure->left = 0;
        if (departure->left == 0 || departure->blocked || moved == MOVED_PER_TURN) break;
        moved += look_at_next(server);
    }
    if (departure->blocked) departure->left = 0; /* the next round begins where this one ended */
}

/* This worker reads the inbox of its slot until it has left it. Until then nothing moves, because
 * the worker would receive what it sends to its successor. */
void rd_departure_continue(rd_server *server) {
    server->departure.blocked = rd_siblings_expect(server);
    if (!rd_siblings_are_there(server) || server->loop.now_ms >= server->departure.due_ms) {
        announce(server);
    } else if (!server->departure.blocked) {
        move_some(server);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * The life of a connection, and what it waits for; see conn.h. conn_send.c sends. conn_read.c reads
 * and handles readiness and deadlines.
 */
#include "transport/conn_parts.h"

#include <assert.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/apart.h"
#include "transport/progress.h"

void rd_conn_set_state(rd_conn *conn, rd_conn_state state) {
    static const uint8_t ways[] = {
        [RD_CONN_OPEN] = 1 << RD_CONN_FINISHING | 1 << RD_CONN_CLOSED,
        [RD_CONN_FINISHING] = 1 << RD_CONN_LINGERING | 1 << RD_CONN_CLOSED,
        [RD_CONN_LINGERING] = 1 << RD_CONN_CLOSED,
        [RD_CONN_CLOSED] = 0,
    };
    assert(ways[conn->state] & 1 << state);
    (void)ways;
    conn->state = (uint8_t)state;
}

/* ---- the set ---- */

void rd_conn_set_clear(rd_conn_set *set) {
    rd_chunk_pool_clear(&set->chunks);
    rd_indexes_clear(&set->indexes);
}

/* ---- deadlines ---- */

static uint64_t earliest(const rd_conn *conn) {
    const uint64_t due = conn->deadlines.protocol;
    if (conn->stall == NULL) return due;
    const uint64_t write = conn->stall->deadline_ms, look = rd_progress_due(conn);
    const uint64_t sooner = write < look ? write : look;
    return sooner < due ? sooner : due;
}

RD_APART static void set_timer(rd_conn *conn, uint64_t due) {
    assert(conn->state != RD_CONN_CLOSED); /* its disposal may be in the same place */
    rd_timer_set(&conn->set->loop->timers, &conn->deadlines.timer, due);
}

void rd_conn_arm(rd_conn *conn) {
    uint64_t due = earliest(conn);
    if (due == UINT64_MAX) return;
    if (rd_timer_is_armed(&conn->deadlines.timer) && conn->deadlines.timer.due <= due) return;
    set_timer(conn, due);
}

void rd_conn_set_deadline(rd_conn *conn, uint64_t at_ms) {
    if (conn->deadlines.protocol == at_ms) return; /* often: it is a time of the same turn */
    conn->deadlines.protocol = at_ms;
    rd_conn_arm(conn);
}

/* ---- opening ---- */

static void free_conn(rd_disposal *disposal) {
    rd_free(RD_CONTAINER(disposal, rd_conn, disposal));
}

static size_t rounded(size_t size) {
    return (size + RD_CONN_ROOM_UNIT - 1) / RD_CONN_ROOM_UNIT * RD_CONN_ROOM_UNIT;
}

static void init_layer(rd_conn *conn) {
    rd_layer *layer = rd_conn_layer(conn);
    layer->conn = conn;
    rd_list_init(&layer->in_line);
    conn->set->layers.count++;
}

static rd_conn *new_conn(rd_conn_set *set, int fd, const rd_transport *transport,
                         const rd_protocol *protocol, const rd_address *peer) {
    const size_t room = rounded(protocol->state_size);
    const size_t layer = transport->is_plain ? 0 : sizeof(rd_layer) + transport->state_size;
    assert(room / RD_CONN_ROOM_UNIT <= UINT8_MAX);
    rd_conn *conn = rd_alloc_zero(sizeof(*conn) + room + layer);
    conn->source = (rd_source){.fd = fd, .interest = RD_READABLE, .on_ready = set->on_ready};
    conn->room = (uint8_t)(room / RD_CONN_ROOM_UNIT);
    conn->layered = !transport->is_plain;
    conn->origin.secure = transport->is_secure;
    conn->set = set;
    conn->transport = transport;
    conn->protocol = protocol;
    conn->deadlines.protocol = UINT64_MAX;
    conn->refs = 1;
    conn->peer = *peer;
    rd_list_init(&conn->in_dirty);
    rd_list_init(&conn->in_set);
    rd_timer_init(&conn->deadlines.timer, set->on_timer);
    if (conn->layered) init_layer(conn);
    conn->index = rd_indexes_acquire(&set->indexes);
    return conn;
}

static void join_set(rd_conn *conn) {
    rd_list_append(&conn->set->conns, &conn->in_set);
    rd_ledger_add(&conn->set->ledger, RD_LEDGER_DESCRIPTORS, 1);
}

rd_conn *rd_conn_open(rd_conn_set *set, int fd, const rd_transport *transport,
                      const rd_protocol *protocol, const rd_address *peer) {
    rd_conn *conn = new_conn(set, fd, transport, protocol, peer);
    join_set(conn);
    set->count++;
    protocol->on_open(conn);
    return conn;
}

rd_conn *rd_conn_open_inner(rd_conn *outer, int fd, const rd_protocol *protocol) {
    rd_conn *conn = new_conn(outer->set, fd, &rd_transport_tcp, protocol, &outer->peer);
    join_set(conn);
    conn->uncounted = conn->patient = true;
    protocol->on_open(conn);
    return conn;
}

rd_conn *rd_conn_open_forwarded(rd_conn_set *set, int fd, bool secure, const rd_protocol *protocol,
                                const rd_address *peer) {
    rd_conn *conn = new_conn(set, fd, &rd_transport_tcp, protocol, peer);
    join_set(conn);
    conn->origin.secure = secure;
    conn->uncounted = conn->read_eof = true;
    protocol->on_open(conn);
    return conn;
}

rd_conn *rd_conn_open_carried(rd_conn *carrier, const rd_transport *transport,
                              const rd_protocol *protocol) {
    assert(rd_conn_is_open(carrier) && !transport->is_plain);
    rd_conn *conn = new_conn(carrier->set, -1, transport, protocol, &carrier->peer);
    conn->uncounted = true;
    conn->origin = carrier->origin;
    rd_list_append(&carrier->set->carried, &conn->in_set);
    rd_conn_layer(conn)->carrier = carrier;
    rd_conn_ref(carrier);
    protocol->on_open(conn);
    return conn;
}

void rd_conn_mark_dirty(rd_conn *conn) {
    if (conn->state == RD_CONN_CLOSED || rd_list_is_linked(&conn->in_dirty)) return;
    rd_list_append(&conn->set->dirty, &conn->in_dirty);
}

void rd_conn_switch(rd_conn *conn, const rd_protocol *protocol) {
    assert(rd_conn_is_open(conn) && protocol->state_size <= (size_t)conn->room * RD_CONN_ROOM_UNIT);
    memset(rd_conn_state_of(conn), 0, protocol->state_size);
    conn->protocol = protocol;
    conn->deadlines.protocol = UINT64_MAX;
    conn->awaits_answer = conn->notify_drained = conn->read_paused = false;
    rd_conn_mark_dirty(conn); /* the flush tells the poller: the new state must not be closed yet */
}

void rd_conn_ref(rd_conn *conn) {
    conn->refs++;
}

void rd_conn_unref(rd_conn *conn) {
    assert(conn->refs > 0);
    if (--conn->refs > 0) return;
    assert(conn->state == RD_CONN_CLOSED);
    conn->disposal.free = free_conn;
    rd_loop_free_later(conn->set->loop, &conn->disposal);
}

/* ---- interest ---- */

RD_APART void rd_conn_change_interest(rd_conn *conn, unsigned interest) {
    if (conn->state == RD_CONN_CLOSED) return;
    if (rd_loop_set_interest(conn->set->loop, &conn->source, interest) != 0) rd_conn_close(conn);
}

void rd_conn_ensure_registered(rd_conn *conn) {
    if (conn->state == RD_CONN_CLOSED || conn->source.registered || conn->source.fd < 0) return;
    if (rd_loop_add(conn->set->loop, &conn->source, rd_conn_wanted_interest(conn)) != 0) {
        rd_conn_close(conn);
    }
}

void rd_conn_pause_reading(rd_conn *conn) {
    conn->read_paused = true;
    if (conn->source.registered) rd_conn_update_interest(conn);
}

void rd_conn_leave_loop(rd_conn *conn) {
    rd_loop_remove(conn->set->loop, &conn->source);
}

void rd_conn_rejoin_loop(rd_conn *conn) {
    rd_conn_ensure_registered(conn);
}

/* ---- the end ---- */

void rd_conn_drop_input(rd_conn *conn) {
    rd_buffer_clear(&conn->input);
    rd_conn_count_input(conn);
}

void rd_conn_finish(rd_conn *conn, bool linger) {
    if (conn->state != RD_CONN_OPEN) return;
    rd_conn_set_state(conn, RD_CONN_FINISHING);
    conn->wants_linger = linger;
    conn->deadlines.protocol = UINT64_MAX;
    rd_conn_drop_input(conn);
    conn->read_paused = true;
    rd_conn_mark_dirty(conn);
}

static void leave_layer(rd_conn *conn) {
    rd_layer *layer = rd_conn_layer(conn);
    rd_list_unlink(&layer->in_line);
    conn->set->layers.count--;
    rd_ledger_recount(&conn->set->ledger, RD_LEDGER_INPUT, &layer->ahead_counted, 0);
    if (layer->is_admitted) rd_ledger_release(&conn->set->ledger, RD_LEDGER_HANDSHAKES, 1);
    layer->is_admitted = false;
}

static void leave(rd_conn *conn) {
    rd_conn_set *set = conn->set;
    rd_conn_set_state(conn, RD_CONN_CLOSED);
    rd_loop_remove(set->loop, &conn->source);
    if (rd_timer_is_armed(&conn->deadlines.timer)) rd_timer_cancel(&conn->deadlines.timer);
    if (rd_list_is_linked(&conn->in_dirty)) rd_list_unlink(&conn->in_dirty);
    if (conn->layered) leave_layer(conn);
    rd_list_unlink(&conn->in_set);
    rd_indexes_release(&set->indexes, conn->index);
    if (!conn->uncounted) set->count--;
    if (conn->source.fd >= 0) rd_ledger_release(&set->ledger, RD_LEDGER_DESCRIPTORS, 1);
}

void rd_conn_end_stall(rd_conn *conn) {
    if (conn->stall == NULL) return;
    rd_list_unlink(&conn->stall->in_set);
    rd_ledger_recount(&conn->set->ledger, RD_LEDGER_OUTPUT, &conn->stall->counted, 0);
    rd_free(conn->stall);
    conn->stall = NULL;
}

static void forget(rd_conn *conn) {
    rd_outq_clear(&conn->out, &conn->set->chunks);
    rd_conn_drop_input(conn);
    conn->protocol->on_close(conn); /* may ask for the write deadline */
    rd_conn_end_stall(conn);
    rd_conn *carrier = rd_conn_carrier(conn);
    rd_conn_unref(conn);
    if (carrier != NULL) rd_conn_unref(carrier);
}

RD_APART void rd_conn_close(rd_conn *conn) {
    if (conn->state == RD_CONN_CLOSED) return;
    leave(conn);
    conn->transport->close(conn);
    forget(conn);
}

void rd_conn_reset(rd_conn *conn) {
    if (conn->state == RD_CONN_CLOSED) return;
    conn->transport->reset(conn);
    rd_conn_close(conn);
}

static void abandon(rd_list *conns) {
    for (rd_list *node = conns->next; node != conns; node = node->next) {
        rd_conn *conn = RD_CONTAINER(node, rd_conn, in_set);
        if (conn->source.fd >= 0) close(conn->source.fd);
        conn->source.fd = -1;
        conn->source.registered = 0;
        conn->state = RD_CONN_CLOSED; /* from any state, without on_close */
    }
}

void rd_conn_set_each(rd_conn_set *set, void (*visit)(rd_conn *conn)) {
    rd_list all;
    rd_list_take(&all, &set->conns);
    for (rd_list *node; (node = rd_list_shift(&all)) != NULL;) {
        rd_list_append(&set->conns, node);
        visit(RD_CONTAINER(node, rd_conn, in_set));
    }
}

/* The child shares the poller with its parent: a removal here would also remove it there. */
void rd_conn_set_abandon(rd_conn_set *set) {
    abandon(&set->conns);
    abandon(&set->carried);
    while (rd_list_shift(&set->layers.deferred) != NULL) set->layers.count--;
}

int rd_conn_detach(rd_conn *conn) {
    assert(conn->state == RD_CONN_OPEN && !conn->layered);
    int fd = conn->source.fd;
    leave(conn);
    forget(conn);
    return fd;
}

/* SPDX-License-Identifier: MIT
 *
 * Calls to a transport that is not plain; see layer.h.
 */
#include "transport/layer.h"

#include "base/error.h"

#define RECORDS_OF_TURN 512
#define RECORDS_OF_READ 64
#define RECORDS_LEAST   4

/* ---- the handshake ---- */

static void stand_in_line(rd_conn *conn, rd_list *line) {
    rd_layer *layer = rd_conn_layer(conn);
    if (rd_layer_is_in_line(conn)) return;
    rd_list_unlink(&layer->in_line); /* of `shaking` */
    layer->awaits_peer = false;
    rd_list_append(line, &layer->in_line);
}

static void stand_for_handshake(rd_conn *conn) {
    rd_layers *layers = &conn->set->layers;
    const bool goes_on = rd_conn_layer(conn)->is_admitted;
    stand_in_line(conn, goes_on ? &layers->continuing : &layers->handshakes);
}

void rd_layer_hold(rd_conn *conn) {
    rd_conn_layer(conn)->held = conn->transport;
    conn->transport = &rd_transport_tcp;
}

bool rd_layer_begin(rd_conn *conn, const char *ahead, size_t len) {
    rd_layer *layer = rd_conn_layer(conn);
    rd_ledger *ledger = &conn->set->ledger;
    if (!rd_ledger_keep(ledger, RD_LEDGER_INPUT, &layer->ahead_counted, len)) return false;
    if (layer->held != NULL) conn->transport = layer->held;
    layer->held = NULL;
    layer->is_shaking = true;
    if (conn->transport->begin != NULL) conn->transport->begin(conn, ahead, len);
    stand_for_handshake(conn);
    return true;
}

bool rd_layer_may_read(rd_conn *conn) {
    if (!rd_conn_layer(conn)->is_shaking) return true;
    rd_conn_layer(conn)->is_quiet = conn->source.registered && rd_layer_is_in_line(conn);
    stand_for_handshake(conn);
    return false;
}

void rd_layer_refuse(rd_conn *conn, int code) {
    if (conn->set->on_refused != NULL) conn->set->on_refused(conn, code);
    if (conn->protocol->on_refused != NULL) conn->protocol->on_refused(conn, code);
    rd_conn_reset(conn);
}

/* The one whose peer has been silent longest makes room. Those in line wait for us. */
static bool make_room(rd_conn_set *set) {
    const rd_list *shaking = &set->layers.shaking;
    if (rd_list_is_empty(shaking)) return false;
    rd_conn *conn = RD_CONTAINER(shaking->next, rd_layer, in_line)->conn;
    rd_ledger_refuse(&set->ledger, RD_LEDGER_HANDSHAKES);
    rd_layer_refuse(conn, RD_ERR_HANDSHAKES_FULL);
    return true;
}

bool rd_layer_admit(rd_conn *conn) {
    rd_layer *layer = rd_conn_layer(conn);
    rd_ledger *ledger = &conn->set->ledger;
    while (!rd_ledger_has_room(ledger, RD_LEDGER_HANDSHAKES, 1)) {
        if (make_room(conn->set)) continue;
        stand_for_handshake(conn);
        return false;
    }
    rd_ledger_add(ledger, RD_LEDGER_HANDSHAKES, 1);
    layer->is_admitted = true;
    return true;
}

static void note_result(rd_conn *conn, int result) {
    rd_layer *layer = rd_conn_layer(conn);
    layer->is_shaking = result == 0;
    if (!layer->is_admitted) return;
    if (result != 0) {
        rd_ledger_release(&conn->set->ledger, RD_LEDGER_HANDSHAKES, 1);
        layer->is_admitted = false;
    } else if (!rd_list_is_linked(&layer->in_line)) {
        layer->awaits_peer = true;
        rd_list_append(&conn->set->layers.shaking, &layer->in_line);
    }
}

int rd_layer_handshake(rd_conn *conn) {
    rd_layer *layer = rd_conn_layer(conn);
    layer->is_quiet = false;
    int result = conn->transport->handshake == NULL ? 1 : conn->transport->handshake(conn);
    if (result >= 0 && !rd_layer_count_ahead(conn)) result = RD_ERR_INPUT_FULL;
    note_result(conn, result);
    if (result < 0) layer->has_finished = true; /* it has not begun, so it has no orderly end */
    return result;
}

bool rd_layer_is_shaking(rd_conn *conn) {
    return rd_conn_layer(conn)->is_shaking;
}

const char *rd_layer_reason(rd_conn *conn) {
    return conn->transport->reason == NULL ? NULL : conn->transport->reason(conn);
}

rd_slice rd_layer_agreed(rd_conn *conn) {
    return conn->transport->agreed == NULL ? RD_SLICE("") : conn->transport->agreed(conn);
}

bool rd_layer_is_in_line(rd_conn *conn) {
    const rd_layer *layer = rd_conn_layer(conn);
    return rd_list_is_linked(&layer->in_line) && !layer->awaits_peer;
}

/* ---- reading and writing ---- */

void rd_layer_note_pending(rd_conn *conn) {
    const rd_transport *transport = conn->transport;
    if (conn->state == RD_CONN_CLOSED || !rd_conn_reads(conn)) return;
    if (transport->has_pending == NULL || rd_conn_layer(conn)->is_shaking) return;
    if (transport->has_pending(conn)) stand_in_line(conn, &conn->set->layers.pending);
}

unsigned rd_layer_records(const rd_conn *conn) {
    const rd_layers *layers = &conn->set->layers;
    if (layers->turn != conn->set->loop->turns) return RECORDS_OF_READ;
    if (layers->records + RECORDS_LEAST > RECORDS_OF_TURN) return RECORDS_LEAST;
    const unsigned left = RECORDS_OF_TURN - layers->records;
    return left < RECORDS_OF_READ ? left : RECORDS_OF_READ;
}

void rd_layer_count_records(rd_conn *conn, unsigned count) {
    rd_layers *layers = &conn->set->layers;
    if (layers->turn != conn->set->loop->turns) layers->records = 0;
    layers->turn = conn->set->loop->turns;
    layers->records += count;
}

static size_t read_ahead(rd_conn *conn) {
    return conn->transport->read_ahead == NULL ? 0 : conn->transport->read_ahead(conn);
}

bool rd_layer_count_ahead(rd_conn *conn) {
    rd_ledger *ledger = &conn->set->ledger;
    size_t *counted = &rd_conn_layer(conn)->ahead_counted;
    if (conn->state == RD_CONN_CLOSED) return true;
    if (rd_conn_is_open(conn)) {
        return rd_ledger_keep(ledger, RD_LEDGER_INPUT, counted, read_ahead(conn));
    }
    rd_ledger_recount(ledger, RD_LEDGER_INPUT, counted, read_ahead(conn));
    return true;
}

bool rd_layer_is_at_rest(rd_conn *conn) {
    const rd_layer *layer = rd_conn_layer(conn);
    if (layer->held != NULL || layer->is_shaking || rd_conn_unsent(conn) > 0) return false;
    if (read_ahead(conn) > 0) return false;
    return conn->transport->has_pending == NULL || !conn->transport->has_pending(conn);
}

int rd_layer_flush(rd_conn *conn) {
    return conn->transport->flush == NULL ? 0 : conn->transport->flush(conn);
}

bool rd_layer_has_finished(rd_conn *conn) {
    return rd_conn_layer(conn)->has_finished;
}

void rd_layer_finish(rd_conn *conn) {
    rd_layer *layer = rd_conn_layer(conn);
    if (layer->has_finished || layer->is_shaking) return;
    layer->has_finished = true;
    if (conn->transport->finish != NULL) conn->transport->finish(conn);
}

void rd_layer_cut(rd_conn *conn) {
    rd_conn_layer(conn)->has_finished = true;
}

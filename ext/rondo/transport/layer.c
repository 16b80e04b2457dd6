/* SPDX-License-Identifier: MIT
 *
 * Calls to a transport that is not plain; see layer.h.
 */
#include "transport/layer.h"

#include "base/error.h"

/* ---- the handshake ---- */

static void stand_in_line(rd_conn *conn, rd_list *line) {
    rd_layer *layer = rd_conn_layer(conn);
    if (!rd_list_is_linked(&layer->in_line)) rd_list_append(line, &layer->in_line);
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
    stand_in_line(conn, &conn->set->handshakes);
    return true;
}

bool rd_layer_may_read(rd_conn *conn) {
    if (!rd_conn_layer(conn)->is_shaking) return true;
    stand_in_line(conn, &conn->set->handshakes);
    return false;
}

int rd_layer_handshake(rd_conn *conn) {
    rd_layer *layer = rd_conn_layer(conn);
    int result = conn->transport->handshake == NULL ? 1 : conn->transport->handshake(conn);
    if (result >= 0 && !rd_layer_count_ahead(conn)) result = RD_ERR_INPUT_FULL;
    layer->is_shaking = result == 0;
    if (result < 0) layer->has_finished = true; /* it has not begun, so it has no orderly end */
    return result;
}

bool rd_layer_is_shaking(rd_conn *conn) {
    return rd_conn_layer(conn)->is_shaking;
}

bool rd_layer_is_in_line(rd_conn *conn) {
    return rd_list_is_linked(&rd_conn_layer(conn)->in_line);
}

/* ---- reading and writing ---- */

void rd_layer_note_pending(rd_conn *conn) {
    const rd_transport *transport = conn->transport;
    if (conn->state == RD_CONN_CLOSED || !rd_conn_reads(conn)) return;
    if (transport->has_pending == NULL || rd_conn_layer(conn)->is_shaking) return;
    if (transport->has_pending(conn)) stand_in_line(conn, &conn->set->pending);
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

void rd_layer_finish(rd_conn *conn) {
    rd_layer *layer = rd_conn_layer(conn);
    if (layer->has_finished || layer->is_shaking) return;
    layer->has_finished = true;
    if (conn->transport->finish != NULL) conn->transport->finish(conn);
}

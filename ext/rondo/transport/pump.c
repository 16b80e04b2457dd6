/* SPDX-License-Identifier: MIT
 *
 * One protocol for both ends. Each end knows the other; see pump.h.
 */
#include "transport/pump.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "system/socket.h"

typedef struct rd_pump {
    rd_conn *other;    /* NULL: it is closed */
    rd_pump_head head; /* says for the other end what this one's bytes begin with; NULL: nothing */
    bool ends;         /* nothing more comes for this end: half-close when all is sent */
    bool has_ended;    /* it is half-closed */
} rd_pump;

static rd_pump *pump_of(rd_conn *conn) {
    return rd_conn_state_of(conn);
}

static bool is_over(rd_conn *conn) {
    return conn->read_eof && pump_of(conn)->has_ended;
}

/* Ends the output of this end. When it has nothing more to read or to write, it is closed, which
 * also ends the other one. */
static void end_output(rd_conn *conn) {
    rd_pump *pump = pump_of(conn);
    if (!rd_conn_is_open(conn)) return;
    pump->ends = true;
    if (pump->has_ended || conn->out.bytes > 0) {
        conn->notify_drained = !pump->has_ended;
        return;
    }
    pump->has_ended = rd_conn_end_output(conn);
    if (is_over(conn)) rd_conn_finish(conn, false);
}

static void pass(rd_conn *conn, const char *bytes, size_t len) {
    rd_conn *other = pump_of(conn)->other;
    if (other == NULL || pump_of(other)->ends) return;
    rd_outq_copy(&other->out, &conn->set->chunks, bytes, len);
    rd_conn_mark_dirty(other);
    if (other->out.bytes <= (size_t)conn->set->settings->output_high_bytes) return;
    other->above_high = true;
    rd_conn_pause_reading(conn);
}

/* The client's connection cannot say what the application wrote. */
static void refuse(rd_conn *client, int code) {
    if (client->set->on_cut != NULL) client->set->on_cut(client, code);
    rd_conn_reset(client);
}

/* That the client has gone ends this end, too. */
static void take_head(rd_conn *conn, const char *bytes, size_t len) {
    rd_pump *pump = pump_of(conn);
    rd_buffer *input = &conn->input;
    if (pump->other == NULL) return;
    rd_buffer_append(input, bytes, len);
    const int used = rd_conn_count_input(conn)
                         ? pump->head(pump->other, rd_buffer_ptr(input), rd_buffer_len(input))
                         : RD_ERR_INPUT_FULL;
    if (used < 0) refuse(pump->other, used);
    if (used <= 0 || !rd_conn_is_open(conn)) return;
    pump->head = NULL;
    rd_buffer_consume(input, (size_t)used);
    pass(conn, rd_buffer_ptr(input), rd_buffer_len(input));
    rd_conn_drop_input(conn);
}

static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    if (pump_of(conn)->head != NULL) {
        take_head(conn, bytes, len);
    } else {
        pass(conn, bytes, len);
    }
}

static void on_eof(rd_conn *conn) {
    rd_conn *other = pump_of(conn)->other;
    if (pump_of(conn)->head != NULL && other != NULL) {
        refuse(other, RD_ERR_TAKEN_HEAD);
        return;
    }
    rd_conn_mark_dirty(conn); /* its patience is over: the flush sets the deadline */
    if (other != NULL) end_output(other);
    if (rd_conn_is_open(conn) && is_over(conn)) rd_conn_finish(conn, false);
}

static void on_drained(rd_conn *conn) {
    rd_conn *other = pump_of(conn)->other;
    if (pump_of(conn)->ends && conn->out.bytes == 0) {
        end_output(conn);
    } else if (other != NULL && rd_conn_is_open(other) && other->read_paused) {
        rd_conn_resume_reading(other);
    }
}

static void on_close(rd_conn *conn) {
    rd_conn *other = pump_of(conn)->other;
    if (other == NULL) return;
    pump_of(other)->other = NULL;
    rd_conn_finish(other, other->layered);
}

static bool is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    (void)conn, (void)kept, (void)since_ms;
    return false;
}

/* The server stops: for the application, the client's input has ended. */
static void on_shutdown(rd_conn *conn) {
    if (!conn->layered || conn->read_eof) return;
    conn->read_eof = true;
    rd_conn_pause_reading(conn);
    on_eof(conn);
}

static void on_nothing(rd_conn *conn) {
    (void)conn;
}

static const rd_protocol pump = {
    .state_size = sizeof(rd_pump),
    .on_open = on_nothing,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_drained = on_drained,
    .on_timeout = on_nothing,
    .on_close = on_close,
    .is_spare = is_spare,
    .on_shutdown = on_shutdown,
};

static void connect_ends(rd_conn *conn, rd_conn *inner) {
    pump_of(conn)->other = inner;
    pump_of(inner)->other = conn;
}

/* The client's end may have come before, and comes only once. The application's end may be closed
 * already: nothing could watch it. */
static void begin_reading(rd_conn *conn) {
    rd_conn *other = pump_of(conn)->other;
    if (other == NULL) return;
    if (conn->read_eof) {
        end_output(other);
    } else if (!conn->read_paused) {
        rd_conn_resume_reading(conn);
    }
}

/* What was read ahead of the client. */
static void pass_input(rd_conn *conn) {
    pass(conn, rd_buffer_ptr(&conn->input), rd_buffer_len(&conn->input));
    rd_conn_drop_input(conn);
}

int rd_pump_begin(rd_conn *conn, rd_pump_head head) {
    int pair[2];
    if (rd_socket_pair(pair, false) != 0) return -1;
    conn->protocol->on_close(conn);
    rd_conn_switch(conn, &pump);
    rd_conn *inner = rd_conn_open_inner(conn, pair[0], &pump);
    connect_ends(conn, inner);
    pump_of(inner)->head = head;
    pass_input(conn);
    rd_conn_read_now(inner);
    begin_reading(conn);
    return pair[1];
}

void rd_pump_join(rd_conn *conn, rd_conn *inner) {
    conn->protocol->on_close(conn);
    rd_conn_switch(conn, &pump);
    rd_conn_switch(inner, &pump);
    connect_ends(conn, inner);
    pass_input(conn);
    begin_reading(conn);
}

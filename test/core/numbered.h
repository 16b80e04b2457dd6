/* SPDX-License-Identifier: MIT
 *
 * A protocol for tests that carries many connections on one descriptor; docs/ADDING_A_PROTOCOL.md
 * goes through it. Every message has a kind, a number and a length before its bytes:
 *
 *   kind (1 byte) │ number (2) │ length (2, both big-endian) │ bytes
 *
 *   d   bytes of the connection with that number; the client's first one opens it
 *   w   the client takes so many bytes more of it: a number of 4 bytes; NUMBERED_WINDOW before
 *   e   it ends, with nothing behind the header: closed
 *   r   the same from the server: cut off
 *
 * A number is a carried connection that speaks HTTP/1.1, or what it was switched to.
 */
#ifndef NUMBERED_H
#define NUMBERED_H

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "request/line.h"
#include "protocol/protocols.h"
#include "transport/conn.h"

enum {
    NUMBERED_HEADER = 5,
    NUMBERED_WINDOW = 16384,
    NUMBERED_PART = 4096,    /* bytes of a message from the server at most */
    NUMBERED_OUT_MAX = 65536 /* waiting for the carrier's socket; then the numbers wait too */
};

static uint32_t numbered_seats = 6;

/* State of the carrier, behind its connection. */
typedef struct rd_numbered {
    rd_lines *lines;
    rd_list numbers; /* of rd_numbered_share */
} rd_numbered;

/* State of a number, behind the layer of its connection. */
typedef struct rd_numbered_share {
    rd_list in_carrier;
    rd_conn *conn;
    rd_buffer came; /* and not handed out yet */
    uint32_t window;
    uint16_t number;
    bool was_reset;
} rd_numbered_share;

static inline rd_numbered *numbered_of(rd_conn *carrier) {
    return rd_conn_state_of(carrier);
}

static inline rd_numbered_share *numbered_share_of(rd_conn *conn) {
    return rd_conn_transport_state(conn);
}

static void numbered_put_header(char *header, char kind, unsigned number, size_t len) {
    header[0] = kind;
    header[1] = (char)(number >> 8);
    header[2] = (char)number;
    header[3] = (char)(len >> 8);
    header[4] = (char)len;
}

static inline unsigned numbered_u16(const char *bytes) {
    return (unsigned)(uint8_t)bytes[0] << 8 | (uint8_t)bytes[1];
}

/* ---- the transport of a number: its carrier ---- */

static ssize_t numbered_read(rd_conn *conn, char *bytes, size_t len) {
    rd_buffer *came = &numbered_share_of(conn)->came;
    const size_t there = rd_buffer_len(came), part = there < len ? there : len;
    if (part == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(bytes, rd_buffer_ptr(came), part);
    rd_buffer_consume(came, part);
    return (ssize_t)part;
}

/* How many bytes its client and the carrier's queue take now. */
static size_t numbered_room(rd_conn *conn) {
    const rd_numbered_share *share = numbered_share_of(conn);
    rd_conn *carrier = rd_conn_carrier(conn);
    if (!rd_conn_is_open(carrier)) return 0;
    if (carrier->out.bytes >= NUMBERED_OUT_MAX) {
        carrier->notify_drained = true; /* on_drained lets the numbers continue */
        return 0;
    }
    return share->window < NUMBERED_PART ? share->window : NUMBERED_PART;
}

static void numbered_send(rd_conn *carrier, char kind, unsigned number, const char *bytes,
                          size_t len) {
    char header[NUMBERED_HEADER];
    numbered_put_header(header, kind, number, len);
    rd_outq_copy(&carrier->out, &carrier->set->chunks, header, sizeof(header));
    if (len > 0) rd_outq_copy(&carrier->out, &carrier->set->chunks, bytes, len);
    rd_conn_mark_dirty(carrier);
}

static ssize_t numbered_send_part(rd_conn *conn, const char *bytes, size_t len) {
    rd_numbered_share *share = numbered_share_of(conn);
    share->window -= (uint32_t)len;
    numbered_send(rd_conn_carrier(conn), 'd', share->number, bytes, len);
    return (ssize_t)len;
}

static ssize_t numbered_write(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    ssize_t sent = 0;
    (void)more;
    for (int i = 0; i < count; i++) {
        const char *bytes = iov[i].iov_base;
        for (size_t left = iov[i].iov_len, part; left > 0; left -= part, bytes += part) {
            part = numbered_room(conn);
            if (part > left) part = left;
            if (part == 0) {
                errno = EAGAIN;
                return sent > 0 ? sent : -1;
            }
            sent += numbered_send_part(conn, bytes, part);
        }
    }
    return sent;
}

static ssize_t numbered_send_file(rd_conn *conn, int fd, off_t offset, size_t len) {
    char bytes[NUMBERED_PART];
    const size_t room = numbered_room(conn);
    if (room == 0) {
        errno = EAGAIN;
        return -1;
    }
    const ssize_t got = pread(fd, bytes, len < room ? len : room, offset);
    return got > 0 ? numbered_send_part(conn, bytes, (size_t)got) : got;
}

static void numbered_shutdown_write(rd_conn *conn) {
    (void)conn; /* a carried connection never lingers */
}

/* A carrier with nothing left to do ends with its last number. */
static void numbered_end_if_over(rd_conn *carrier) {
    const bool is_over = carrier->read_eof || carrier->set->stopping;
    if (is_over && rd_list_is_empty(&numbered_of(carrier)->numbers)) rd_conn_finish(carrier, false);
}

static void numbered_close(rd_conn *conn) {
    rd_numbered_share *share = numbered_share_of(conn);
    rd_conn *carrier = rd_conn_carrier(conn);
    rd_list_unlink(&share->in_carrier);
    rd_buffer_clear(&share->came);
    if (!rd_conn_is_open(carrier)) return;
    numbered_send(carrier, share->was_reset ? 'r' : 'e', share->number, NULL, 0);
    numbered_end_if_over(carrier);
}

static void numbered_reset(rd_conn *conn) {
    numbered_share_of(conn)->was_reset = true;
}

/* More arrived while reading was paused. */
static bool numbered_has_pending(rd_conn *conn) {
    return rd_buffer_len(&numbered_share_of(conn)->came) > 0;
}

static uint32_t numbered_count_unread(rd_conn *conn) {
    (void)conn;
    return 0;
}

static const rd_transport numbered_transport = {
    .state_size = sizeof(rd_numbered_share),
    .scheme = "http",
    .read = numbered_read,
    .write = numbered_write,
    .send_file = numbered_send_file,
    .shutdown_write = numbered_shutdown_write,
    .close = numbered_close,
    .reset = numbered_reset,
    .count_unread = numbered_count_unread,
    .has_pending = numbered_has_pending,
};

/* ---- the carrier ---- */

static rd_numbered_share *numbered_find(rd_conn *carrier, unsigned number) {
    const rd_list *numbers = &numbered_of(carrier)->numbers;
    for (rd_list *node = numbers->next; node != numbers; node = node->next) {
        rd_numbered_share *share = RD_CONTAINER(node, rd_numbered_share, in_carrier);
        if (share->number == number) return share;
    }
    return NULL;
}

static rd_numbered_share *numbered_open(rd_conn *carrier, unsigned number) {
    const rd_protocol *protocol = rd_protocol_find(RD_SLICE("http/1.1"));
    rd_conn *conn = rd_conn_open_carried(carrier, &numbered_transport, protocol);
    rd_conn_layer(conn)->lines = numbered_of(carrier)->lines;
    rd_numbered_share *share = numbered_share_of(conn);
    share->conn = conn;
    share->number = (uint16_t)number;
    share->window = NUMBERED_WINDOW;
    rd_list_append(&numbered_of(carrier)->numbers, &share->in_carrier);
    return share;
}

static void numbered_on_bytes(rd_conn *carrier, unsigned number, const char *bytes, size_t len) {
    rd_numbered_share *share = numbered_find(carrier, number);
    if (share == NULL) {
        if (carrier->set->stopping) return;
        share = numbered_open(carrier, number);
    }
    rd_buffer_append(&share->came, bytes, len);
    if (!share->conn->read_paused) rd_conn_read_now(share->conn);
}

static void numbered_on_message(rd_conn *carrier, char kind, unsigned number, const char *bytes,
                                size_t len) {
    rd_numbered_share *share = numbered_find(carrier, number);
    if (kind == 'd') {
        numbered_on_bytes(carrier, number, bytes, len);
    } else if (share != NULL && kind == 'w' && len == 4) {
        share->window += numbered_u16(bytes) << 16 | numbered_u16(bytes + 2);
        rd_conn_mark_dirty(share->conn);
    } else if (share != NULL && kind == 'e') {
        rd_conn_close(share->conn);
    }
}

/* The bytes are in the buffer that all connections read into, and the numbers read into it too. So
 * they are copied first. */
static void numbered_on_data(rd_conn *carrier, const char *bytes, size_t len) {
    rd_buffer_append(&carrier->input, bytes, len);
    while (rd_conn_is_open(carrier) && rd_buffer_len(&carrier->input) >= NUMBERED_HEADER) {
        const char *header = rd_buffer_ptr(&carrier->input);
        const size_t whole = NUMBERED_HEADER + numbered_u16(header + 3);
        if (rd_buffer_len(&carrier->input) < whole) break;
        numbered_on_message(carrier, header[0], numbered_u16(header + 1), header + NUMBERED_HEADER,
                            whole - NUMBERED_HEADER);
        if (rd_conn_is_open(carrier)) rd_buffer_consume(&carrier->input, whole);
    }
    rd_conn_count_input(carrier);
}

static void numbered_on_open(rd_conn *carrier) {
    rd_numbered *numbered = numbered_of(carrier);
    numbered->lines = rd_lines_new(numbered_seats);
    rd_list_init(&numbered->numbers);
}

static void numbered_on_eof(rd_conn *carrier) {
    numbered_end_if_over(carrier);
}

/* A visit may close the number it visits, but no other. */
static void numbered_each(rd_conn *carrier, void (*visit)(rd_conn *conn)) {
    rd_list *numbers = &numbered_of(carrier)->numbers;
    for (rd_list *node = numbers->next, *next; node != numbers; node = next) {
        next = node->next;
        visit(RD_CONTAINER(node, rd_numbered_share, in_carrier)->conn);
    }
}

static void numbered_go_on(rd_conn *conn) {
    if (conn->out.bytes > 0) rd_conn_mark_dirty(conn);
}

static void numbered_on_drained(rd_conn *carrier) {
    numbered_each(carrier, numbered_go_on);
}

static void numbered_on_timeout(rd_conn *carrier) {
    (void)carrier; /* it has no deadline of its own */
}

static void numbered_on_close(rd_conn *carrier) {
    numbered_each(carrier, rd_conn_close);
    rd_lines_unref(numbered_of(carrier)->lines);
}

static bool numbered_is_spare(rd_conn *carrier, bool kept, uint64_t since_ms) {
    (void)carrier, (void)kept, (void)since_ms;
    return false;
}

static void numbered_on_shutdown(rd_conn *carrier) {
    numbered_each(carrier, rd_conn_shut_down);
    if (rd_conn_is_open(carrier)) numbered_end_if_over(carrier);
}

static const rd_protocol numbered_protocol = {
    .state_size = sizeof(rd_numbered),
    .on_open = numbered_on_open,
    .on_data = numbered_on_data,
    .on_eof = numbered_on_eof,
    .on_drained = numbered_on_drained,
    .on_timeout = numbered_on_timeout,
    .on_close = numbered_on_close,
    .is_spare = numbered_is_spare,
    .on_shutdown = numbered_on_shutdown,
};

#endif

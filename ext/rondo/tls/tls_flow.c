/* SPDX-License-Identifier: MIT
 *
 * Ciphertext between the socket and OpenSSL; see tls_flow.h.
 */
#include "tls/tls_flow.h"

#include <assert.h>
#include <errno.h>

#include <openssl/err.h>

#include "base/alloc.h"

/* ---- OpenSSL's end of the flow ---- */

static int take_in(BIO *bio, char *bytes, int len) {
    rd_tls_flow *flow = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (flow->came_len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    const size_t part = flow->came_len < (size_t)len ? flow->came_len : (size_t)len;
    memcpy(bytes, flow->came, part);
    flow->came += part;
    flow->came_len -= part;
    return (int)part;
}

static void make_room(rd_tls_flow *flow, size_t len) {
    while (flow->out_capacity - flow->out_len < len) flow->out_capacity *= 2;
    flow->out = rd_realloc(flow->out, flow->out_capacity);
}

static int put_out(BIO *bio, const char *bytes, int len) {
    rd_tls_flow *flow = BIO_get_data(bio);
    if (flow->out_capacity - flow->out_len < (size_t)len) make_room(flow, (size_t)len);
    memcpy(flow->out + flow->out_len, bytes, (size_t)len);
    flow->out_len += (size_t)len;
    return len;
}

static long control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

void rd_tls_flow_init(rd_tls_context *context) {
    context->flow = (rd_tls_flow){.out = rd_alloc(RD_TLS_GATHERED),
                                  .out_capacity = RD_TLS_GATHERED,
                                  .plain = rd_alloc(RD_TLS_GATHERED)};
    context->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rondo");
    BIO_meth_set_read(context->method, take_in);
    BIO_meth_set_write(context->method, put_out);
    BIO_meth_set_ctrl(context->method, control);
}

void rd_tls_flow_clear(rd_tls_context *context) {
    BIO_meth_free(context->method);
    rd_free(context->flow.out);
    rd_free(context->flow.plain);
}

/* Cheaper than to clear an empty queue, which ERR_clear_error() does entry by entry. */
static void clear_errors(void) {
    if (ERR_peek_error() != 0) ERR_clear_error();
}

/* Whether the keeper has done nothing for a while, and has no part of a record in its buffers. */
static bool gives_up(const rd_tls_keeper *keeper, uint64_t now_ms) {
    if (keeper->tls == NULL) return true;
    return now_ms - keeper->used_ms >= RD_TLS_KEPT_IDLE_MS && SSL_free_buffers(keeper->tls->ssl);
}

/* One place is looked at for each call without one. */
static bool find_keeper(rd_tls_flow *flow, rd_tls *tls, uint64_t now_ms) {
    const uint32_t index = flow->next_keeper++ % RD_TLS_KEPT;
    rd_tls_keeper *keeper = &flow->keepers[index];
    if (!gives_up(keeper, now_ms)) return false;
    if (keeper->tls != NULL) keeper->tls->keeper = 0;
    keeper->tls = tls;
    tls->keeper = (uint16_t)(index + 1);
    return true;
}

static void keep_or_free_buffers(rd_tls_flow *flow) {
    rd_tls *tls = rd_tls_of(flow->conn);
    const uint64_t now_ms = flow->conn->set->loop->now_ms;
    if (tls->keeper == 0 && !find_keeper(flow, tls, now_ms)) {
        SSL_free_buffers(tls->ssl);
    } else {
        flow->keepers[tls->keeper - 1].used_ms = now_ms;
    }
}

void rd_tls_give_up_keeper(rd_conn *conn) {
    rd_tls *tls = rd_tls_of(conn);
    if (tls->keeper > 0) rd_tls_flow_of(conn)->keepers[tls->keeper - 1].tls = NULL;
    tls->keeper = 0;
}

rd_tls_flow *rd_tls_enter(rd_conn *conn, const char *came, size_t len) {
    rd_tls_flow *flow = rd_tls_flow_of(conn);
    assert(flow->came_len == 0);
    clear_errors();
    flow->conn = conn;
    flow->came = came;
    flow->came_len = len;
    return flow;
}

void rd_tls_leave(rd_tls_flow *flow, bool worked) {
    flow->came_len = 0;
    keep_or_free_buffers(flow);
    if (!worked) clear_errors();
}

ssize_t rd_tls_receive(rd_conn *conn, char *bytes, size_t size) {
    rd_buffer *ahead = &rd_tls_of(conn)->ahead;
    const size_t kept = rd_buffer_len(ahead);
    if (kept == 0) return rd_transport_tcp.read(conn, bytes, size);
    const size_t len = kept < size ? kept : size;
    memcpy(bytes, rd_buffer_ptr(ahead), len);
    rd_buffer_consume(ahead, len);
    return (ssize_t)len;
}

/* ---- what is encrypted and not sent ---- */

size_t rd_tls_unsent(rd_conn *conn) {
    return rd_buffer_len(&rd_tls_of(conn)->unsent);
}

int rd_tls_flush(rd_conn *conn) {
    rd_tls *tls = rd_tls_of(conn);
    tls->is_held = false;
    while (rd_buffer_len(&tls->unsent) > 0) {
        const struct iovec iov = {rd_buffer_ptr(&tls->unsent), rd_buffer_len(&tls->unsent)};
        const ssize_t sent = rd_transport_tcp.write(conn, &iov, 1, false);
        if (sent < 0) return -1;
        rd_buffer_consume(&tls->unsent, (size_t)sent);
    }
    return 0;
}

void rd_tls_keep_out(rd_conn *conn, bool held) {
    rd_tls_flow *flow = rd_tls_flow_of(conn);
    if (flow->out_len == 0) return;
    rd_buffer_append(&rd_tls_of(conn)->unsent, flow->out, flow->out_len);
    flow->out_len = 0;
    rd_tls_of(conn)->is_held = held;
}

bool rd_tls_send_out(rd_conn *conn) {
    rd_tls_flow *flow = rd_tls_flow_of(conn);
    if (flow->out_len == 0) return true;
    const struct iovec iov = {flow->out, flow->out_len};
    const ssize_t sent = rd_transport_tcp.write(conn, &iov, 1, false);
    if (sent == (ssize_t)flow->out_len) {
        flow->out_len = 0;
        return true;
    }
    if (sent > 0) {
        rd_buffer_append(&rd_tls_of(conn)->unsent, flow->out + sent, flow->out_len - (size_t)sent);
        flow->out_len = 0;
    }
    rd_tls_keep_out(conn, false);
    return false;
}

bool rd_tls_begin_out(rd_conn *conn) {
    rd_tls *tls = rd_tls_of(conn);
    rd_tls_flow *flow = rd_tls_flow_of(conn);
    const size_t len = rd_buffer_len(&tls->unsent);
    assert(flow->out_len == 0);
    if (len == 0) return true;
    if (!tls->is_held || len > flow->out_capacity) return rd_tls_flush(conn) == 0;
    memcpy(flow->out, rd_buffer_ptr(&tls->unsent), len);
    flow->out_len = len;
    rd_buffer_clear(&tls->unsent);
    tls->is_held = false;
    return true;
}

/* SPDX-License-Identifier: MIT
 *
 * The transport of TLS connections: reading, writing, the end; see tls.h.
 */
#include "tls/tls.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/layer.h"
#include "tls/tls_handshake.h"
#include "tls/tls_identity.h"
#include "tls/tls_shown.h"

/* ---- writing ---- */

/* The bytes that go into the next record. Several pieces are joined, because each record costs the
 * peer and the network more than a copy. */
static rd_slice next_piece(const struct iovec *iov, int count, size_t done, char *room) {
    size_t len = 0;
    while (count > 0 && done >= iov->iov_len) {
        done -= iov->iov_len;
        iov++, count--;
    }
    const char *first = (char *)iov->iov_base + done;
    if (count == 1 || iov->iov_len - done >= RD_TLS_RECORD_BYTES) {
        const size_t left = iov->iov_len - done;
        return rd_slice_of(first, left < RD_TLS_RECORD_BYTES ? left : RD_TLS_RECORD_BYTES);
    }
    for (; count > 0 && len < RD_TLS_RECORD_BYTES; iov++, count--, done = 0) {
        const size_t left = iov->iov_len - done, free = RD_TLS_RECORD_BYTES - len;
        const size_t part = left < free ? left : free;
        memcpy(room + len, (char *)iov->iov_base + done, part);
        len += part;
    }
    return rd_slice_of(room, len);
}

static bool encrypt_piece(rd_tls *tls, rd_slice piece) {
    size_t written = 0;
    if (SSL_write_ex(tls->ssl, piece.ptr, piece.len, &written) == 1) {
        assert(written == piece.len);
        return true;
    }
    errno = EPROTO;
    return false;
}

/* Whether another record has to wait for those that were gathered. False: they fill the socket. */
static bool goes_on(rd_conn *conn) {
    const rd_tls_flow *flow = rd_tls_flow_of(conn);
    return flow->out_len + RD_TLS_RECORD_MAX <= RD_TLS_GATHERED || rd_tls_send_out(conn);
}

static ssize_t encrypt_all(rd_conn *conn, const struct iovec *iov, int count, size_t len) {
    rd_tls_flow *flow = rd_tls_enter(conn, NULL, 0);
    size_t taken = 0;
    bool works = true;
    while (works && taken < len && goes_on(conn)) {
        const rd_slice piece = next_piece(iov, count, taken, flow->plain);
        works = encrypt_piece(rd_tls_of(conn), piece);
        if (works) taken += piece.len;
    }
    rd_tls_leave(flow, works);
    return works || taken > 0 ? (ssize_t)taken : -1;
}

static ssize_t tls_write(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    size_t len = 0;
    if (rd_tls_of(conn)->ssl == NULL) return rd_transport_tcp.write(conn, iov, count, more);
    if (!rd_tls_begin_out(conn)) return -1;
    for (int i = 0; i < count; i++) len += iov[i].iov_len;
    const ssize_t taken = encrypt_all(conn, iov, count, len);
    if (more) rd_tls_keep_out(conn, true);
    rd_tls_send_out(conn);
    return taken;
}

/* A part of a file, at most as much as is gathered. What pread(2) returns. */
static ssize_t encrypt_file(rd_conn *conn, int fd, off_t offset, size_t len) {
    rd_tls_flow *flow = rd_tls_enter(conn, NULL, 0);
    const size_t most = (RD_TLS_GATHERED - flow->out_len) / RD_TLS_RECORD_MAX * RD_TLS_RECORD_BYTES;
    const ssize_t got = pread(fd, flow->plain, len < most ? len : most, offset);
    bool works = true;
    for (ssize_t at = 0; works && at < got; at += RD_TLS_RECORD_BYTES) {
        const size_t left = (size_t)(got - at),
                     part = left < RD_TLS_RECORD_BYTES ? left : RD_TLS_RECORD_BYTES;
        works = encrypt_piece(rd_tls_of(conn), rd_slice_of(flow->plain + at, part));
    }
    rd_tls_leave(flow, works);
    return works ? got : -1;
}

static ssize_t tls_send_file(rd_conn *conn, int fd, off_t offset, size_t len) {
    if (rd_tls_of(conn)->ssl == NULL) return rd_transport_tcp.send_file(conn, fd, offset, len);
    if (!rd_tls_begin_out(conn)) return -1;
    ssize_t got = 1;
    size_t taken = 0;
    for (bool takes = goes_on(conn); takes && got > 0 && taken < len;
         takes = rd_tls_send_out(conn)) {
        got = encrypt_file(conn, fd, offset + (off_t)taken, len - taken);
        if (got > 0) taken += (size_t)got;
    }
    if (taken > 0 || got <= 0) return taken > 0 ? (ssize_t)taken : got;
    errno = EAGAIN; /* what was held fills the socket */
    return -1;
}

/* ---- reading ---- */

static void note_result(rd_tls *tls) {
    const int error = SSL_get_error(tls->ssl, 0);
    if (error == SSL_ERROR_ZERO_RETURN) tls->has_ended = true;
    if (error == SSL_ERROR_SSL || error == SSL_ERROR_SYSCALL) tls->has_failed = true;
}

/* What came in one read may be thousands of records. Those beyond a share of the turn stay as they
 * are. */
static void keep_rest(rd_conn *conn, const rd_tls_flow *flow, size_t came_len, bool is_kept) {
    rd_buffer *ahead = &rd_tls_of(conn)->ahead;
    if (is_kept) {
        rd_buffer_consume(ahead, came_len - flow->came_len);
    } else if (flow->came_len > 0) {
        rd_buffer_append(ahead, flow->came, flow->came_len);
    }
}

/* Decrypts what came: its plain text always fits, see tls_read(). What the peer gets for it (an
 * alert, new keys) is sent with the next flush. `is_kept`: it lies in `ahead`. */
static size_t decrypt(rd_conn *conn, rd_slice came, bool is_kept, char *bytes, size_t size) {
    rd_tls *tls = rd_tls_of(conn);
    rd_tls_flow *flow = rd_tls_enter(conn, came.ptr, came.len);
    const unsigned most = rd_layer_records(conn);
    unsigned count = 0;
    size_t len = 0, part;
    bool has_more = !tls->has_failed;
    while (has_more && count < most && SSL_read_ex(tls->ssl, bytes + len, size - len, &part) == 1) {
        len += part;
        count++;
        has_more = !tls->has_failed && (flow->came_len > 0 || SSL_has_pending(tls->ssl));
    }
    if (has_more && count < most && !tls->has_failed) note_result(tls);
    rd_layer_count_records(conn, count);
    keep_rest(conn, flow, came.len, is_kept);
    rd_tls_leave(flow, !tls->has_failed);
    if (flow->out_len > 0) {
        rd_tls_keep_out(conn, false);
        rd_conn_mark_dirty(conn);
    }
    return len;
}

/* The connection is closed next. Its peer is told why, if the socket takes it. */
static ssize_t fail(rd_conn *conn) {
    rd_tls_flush(conn);
    errno = EPROTO;
    return -1;
}

/* The ciphertext lies in the same buffer, behind a gap for a record. OpenSSL copies a record before
 * it is decrypted, and keeps no more than the beginning of one from one call to the next. So the
 * plain text never reaches what is not decrypted yet. */
static ssize_t tls_read(rd_conn *conn, char *bytes, size_t len) {
    rd_tls *tls = rd_tls_of(conn);
    const size_t room = len - RD_TLS_RECORD_MAX, kept = rd_buffer_len(&tls->ahead);
    assert(len > (size_t)2 * RD_TLS_RECORD_MAX);
    if (tls->ssl == NULL) return rd_transport_tcp.read(conn, bytes, len);
    if (tls->has_failed) return fail(conn);
    if (tls->has_ended) return 0;
    rd_slice came = rd_slice_of(rd_buffer_ptr(&tls->ahead), kept < room ? kept : room);
    if (kept == 0) {
        const ssize_t got = rd_transport_tcp.read(conn, bytes + RD_TLS_RECORD_MAX, room);
        if (got <= 0) return got;
        came = rd_slice_of(bytes + RD_TLS_RECORD_MAX, (size_t)got);
    }
    const size_t got = decrypt(conn, came, kept > 0, bytes, len);
    if (got > 0) return (ssize_t)got;
    if (tls->has_failed) return fail(conn);
    if (tls->has_ended) return 0;
    errno = EAGAIN;
    return -1;
}

static bool has_pending(rd_conn *conn) {
    const rd_tls *tls = rd_tls_of(conn);
    return rd_buffer_len(&tls->ahead) > 0 || tls->has_ended || tls->has_failed;
}

/* OpenSSL keeps the beginning of a record in a buffer for a whole one. */
static size_t read_ahead(rd_conn *conn) {
    const rd_tls *tls = rd_tls_of(conn);
    const bool has_part = tls->ssl != NULL && SSL_has_pending(tls->ssl);
    return rd_buffer_len(&tls->ahead) + (has_part ? RD_TLS_RECORD_MAX : 0);
}

/* ---- the end ---- */

static void finish(rd_conn *conn) {
    if (rd_tls_of(conn)->ssl == NULL || rd_tls_of(conn)->has_failed) return;
    rd_tls_flow *flow = rd_tls_enter(conn, NULL, 0);
    SSL_shutdown(rd_tls_of(conn)->ssl);
    rd_tls_leave(flow, false);
    rd_tls_keep_out(conn, false);
}

static void shutdown_write(rd_conn *conn) {
    rd_transport_tcp.shutdown_write(conn);
}

static void reset(rd_conn *conn) {
    rd_transport_tcp.reset(conn);
}

static void tls_close(rd_conn *conn) {
    rd_tls *tls = rd_tls_of(conn);
    rd_tls_end(conn);
    rd_buffer_clear(&tls->ahead);
    rd_buffer_clear(&tls->unsent);
    rd_transport_tcp.close(conn);
}

static uint32_t count_unread(rd_conn *conn) {
    return rd_transport_tcp.count_unread(conn);
}

const rd_transport rd_tls_transport = {
    .scheme = "https",
    .is_secure = true,
    .read = tls_read,
    .write = tls_write,
    .send_file = tls_send_file,
    .shutdown_write = shutdown_write,
    .close = tls_close,
    .reset = reset,
    .count_unread = count_unread,
    .state_size = sizeof(rd_tls),
    .begin = rd_tls_begin,
    .handshake = rd_tls_handshake,
    .agreed = rd_tls_agreed,
    .reason = rd_tls_failure,
    .identify = rd_tls_identify,
    .stands_for = rd_tls_stands_for,
    .unsent = rd_tls_unsent,
    .flush = rd_tls_flush,
    .has_pending = has_pending,
    .read_ahead = read_ahead,
    .finish = finish,
};

/* SPDX-License-Identifier: MIT
 *
 * Records, the handshake and the end of the transport for tests; see xor_transport.h.
 */
#include "xor_transport.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"

#define UNSENT_MAX    65536
#define MESSAGE_BYTES 5 /* of a handshake, without names */

typedef enum step { FIRST_MESSAGE, SECOND_MESSAGE, RECORDS } step;

typedef struct xor_state {
    rd_buffer came;   /* the raw input: handshake, then records */
    rd_buffer unsent; /* the raw output */
    size_t record;    /* bytes left of the record that is being handed out */
    rd_slice agreed;
    uint8_t step;
    bool has_ended; /* the last record has come */
} xor_state;

static xor_state *state_of(rd_conn *conn) {
    return rd_conn_transport_state(conn);
}

/* Whether bytes came. If not, errno says why; 0 is the end. */
static bool receive(rd_conn *conn) {
    char bytes[XOR_RECORD_MAX];
    const ssize_t got = rd_transport_tcp.read(conn, bytes, sizeof(bytes));
    if (got == 0) errno = 0;
    if (got > 0) rd_buffer_append(&state_of(conn)->came, bytes, (size_t)got);
    return got > 0;
}

static void begin(rd_conn *conn, const char *ahead, size_t len) {
    rd_buffer_append(&state_of(conn)->came, ahead, len);
}

/* ---- sending ---- */

static size_t count_unsent(rd_conn *conn) {
    return rd_buffer_len(&state_of(conn)->unsent);
}

static int flush(rd_conn *conn) {
    rd_buffer *unsent = &state_of(conn)->unsent;
    while (rd_buffer_len(unsent) > 0) {
        const struct iovec iov = {rd_buffer_ptr(unsent), rd_buffer_len(unsent)};
        const ssize_t sent = rd_transport_tcp.write(conn, &iov, 1, false);
        if (sent < 0) return -1;
        rd_buffer_consume(unsent, (size_t)sent);
    }
    return 0;
}

static void add_record(rd_buffer *unsent, const char *bytes, size_t len) {
    const char head[] = {(char)(len >> 8), (char)(len & 0xff)};
    rd_buffer_append(unsent, head, sizeof(head));
    rd_buffer_append(unsent, bytes, len);
    char *added = rd_buffer_ptr(unsent) + rd_buffer_len(unsent) - len;
    for (size_t i = 0; i < len; i++) added[i] = (char)(added[i] ^ XOR_BYTE);
}

/* How many bytes the next record may have; 0 and errno if none fit now. */
static size_t room(rd_conn *conn) {
    if (count_unsent(conn) >= UNSENT_MAX && flush(conn) != 0) return 0;
    const size_t left = UNSENT_MAX - count_unsent(conn);
    return left < XOR_RECORD_MAX ? left : XOR_RECORD_MAX;
}

static ssize_t xor_write(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    size_t taken = 0;
    (void)more;
    for (int i = 0; i < count; i++) {
        for (size_t at = 0, part; at < iov[i].iov_len; at += part, taken += part) {
            const size_t left = iov[i].iov_len - at, most = room(conn);
            if (most == 0) return taken > 0 ? (ssize_t)taken : -1;
            part = left < most ? left : most;
            add_record(&state_of(conn)->unsent, (char *)iov[i].iov_base + at, part);
        }
    }
    return (ssize_t)taken;
}

static ssize_t xor_send_file(rd_conn *conn, int fd, off_t offset, size_t len) {
    char bytes[XOR_RECORD_MAX];
    const size_t most = room(conn);
    if (most == 0) return -1;
    const ssize_t got = pread(fd, bytes, len < most ? len : most, offset);
    if (got > 0) add_record(&state_of(conn)->unsent, bytes, (size_t)got);
    return got;
}

static void finish(rd_conn *conn) {
    add_record(&state_of(conn)->unsent, NULL, 0);
}

/* ---- the handshake ---- */

static bool is_named(rd_slice wanted, const char *names, size_t len) {
    for (size_t at = 0, name; at < len; at += 1 + name) {
        name = (unsigned char)names[at];
        if (at + 1 + name > len) return false;
        if (rd_slice_equal(wanted, rd_slice_of(names + at + 1, name))) return true;
    }
    return false;
}

/* The first of our names that the peer names, too, if the protocol wants one. */
static rd_slice choose(const rd_conn *conn, const char *names, size_t len) {
    const rd_conn_set *set = conn->set;
    rd_slice none = {0}, offered;
    if (conn->protocol->is_silent) return none;
    for (size_t i = 0; set->offer != NULL && (offered = set->offer(i)).len > 0; i++) {
        if (is_named(offered, names, len)) return offered;
    }
    return none;
}

static void answer(rd_conn *conn, const char *message, const rd_slice *name) {
    rd_buffer *unsent = &state_of(conn)->unsent;
    rd_buffer_append(unsent, message, MESSAGE_BYTES);
    if (name == NULL) return;
    const char len = (char)name->len;
    rd_buffer_append(unsent, &len, 1);
    rd_buffer_append(unsent, name->ptr, name->len);
}

/* How many bytes the message at the front has; 0: it is incomplete, < 0: it is invalid. */
static int message_length(const rd_buffer *came, const char *expected, bool has_names) {
    const size_t len = rd_buffer_len(came);
    const char *bytes = rd_buffer_ptr(came);
    if (len > 0 && memcmp(bytes, expected, len < MESSAGE_BYTES ? len : MESSAGE_BYTES) != 0) {
        return RD_ERR_HANDSHAKE;
    }
    if (!has_names) return len < MESSAGE_BYTES ? 0 : MESSAGE_BYTES;
    if (len < MESSAGE_BYTES + 1) return 0;
    const size_t whole = MESSAGE_BYTES + 1 + (unsigned char)bytes[MESSAGE_BYTES];
    return len < whole ? 0 : (int)whole;
}

/* One message and its answer: > 0 if the message was there. */
static int go_on(rd_conn *conn) {
    xor_state *state = state_of(conn);
    const bool is_second = state->step == SECOND_MESSAGE;
    const int len = message_length(&state->came, is_second ? "XOR?2" : "XOR?1", is_second);
    if (len < 0) answer(conn, "XOR!0", NULL);
    if (len <= 0) return len;
    if (is_second) {
        const char *names = rd_buffer_ptr(&state->came) + MESSAGE_BYTES + 1;
        state->agreed = choose(conn, names, (size_t)len - MESSAGE_BYTES - 1);
    }
    answer(conn, is_second ? "XOR!2" : "XOR!1", is_second ? &state->agreed : NULL);
    rd_buffer_consume(&state->came, (size_t)len);
    state->step++;
    return len;
}

static int handshake(rd_conn *conn) {
    const xor_state *state = state_of(conn);
    int result = 1;
    while (result > 0 && state->step != RECORDS) {
        result = go_on(conn);
        if (result == 0 && receive(conn))
            result = 1;
        else if (result == 0 && errno != EAGAIN)
            result = RD_ERR_CLOSED;
    }
    if (flush(conn) != 0 && errno != EAGAIN) return RD_ERR_CLOSED;
    return result > 0 ? 1 : result;
}

static rd_slice agreed(rd_conn *conn) {
    return state_of(conn)->agreed;
}

/* ---- reading ---- */

static size_t length_of_record(const xor_state *state) {
    const unsigned char *bytes = (const unsigned char *)rd_buffer_ptr(&state->came);
    return (size_t)bytes[0] << 8 | bytes[1];
}

static bool has_whole_record(const xor_state *state) {
    const size_t len = rd_buffer_len(&state->came);
    return len >= 2 && len >= 2 + length_of_record(state);
}

static bool has_pending(rd_conn *conn) {
    const xor_state *state = state_of(conn);
    return state->record > 0 || (!state->has_ended && has_whole_record(state));
}

static size_t read_ahead(rd_conn *conn) {
    return rd_buffer_len(&state_of(conn)->came);
}

static void begin_record(xor_state *state) {
    state->record = length_of_record(state);
    rd_buffer_consume(&state->came, 2);
    state->has_ended = state->record == 0;
}

static ssize_t hand_out(xor_state *state, char *bytes, size_t len) {
    size_t most = len < XOR_PIECE ? len : XOR_PIECE;
    if (most > state->record) most = state->record;
    const char *from = rd_buffer_ptr(&state->came);
    for (size_t i = 0; i < most; i++) bytes[i] = (char)(from[i] ^ XOR_BYTE);
    rd_buffer_consume(&state->came, most);
    state->record -= most;
    return (ssize_t)most;
}

/* An end without a last record is an end as well. */
static ssize_t xor_read(rd_conn *conn, char *bytes, size_t len) {
    xor_state *state = state_of(conn);
    while (state->record == 0 && !state->has_ended) {
        if (has_whole_record(state)) {
            begin_record(state);
        } else if (!receive(conn)) {
            return errno == 0 ? 0 : -1;
        }
    }
    return state->record == 0 ? 0 : hand_out(state, bytes, len);
}

/* ---- the end ---- */

static void shutdown_write(rd_conn *conn) {
    rd_transport_tcp.shutdown_write(conn);
}

static void xor_close(rd_conn *conn) {
    rd_buffer_clear(&state_of(conn)->came);
    rd_buffer_clear(&state_of(conn)->unsent);
    rd_transport_tcp.close(conn);
}

static void reset(rd_conn *conn) {
    rd_transport_tcp.reset(conn);
}

static uint32_t count_unread(rd_conn *conn) {
    return rd_transport_tcp.count_unread(conn);
}

#define XOR_FUNCTIONS                                                                              \
    .scheme = "http", .read = xor_read, .write = xor_write, .send_file = xor_send_file,            \
    .shutdown_write = shutdown_write, .close = xor_close, .reset = reset,                          \
    .count_unread = count_unread, .state_size = sizeof(xor_state), .begin = begin,                 \
    .handshake = handshake, .agreed = agreed, .unsent = count_unsent, .flush = flush,              \
    .has_pending = has_pending, .read_ahead = read_ahead, .finish = finish

const rd_transport rd_transport_xor = {XOR_FUNCTIONS};
const rd_transport rd_transport_xor_moving = {XOR_FUNCTIONS, .can_move = true};

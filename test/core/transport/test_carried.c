/* SPDX-License-Identifier: MIT
 *
 * Connections that another one carries (transport/conn.c): they read and write through it, end with
 * it, count neither as connections nor as descriptors, and have indexes, deadlines and watermarks
 * of their own. The transport here hands out what the test puts into its state, and writes to the
 * carrier.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "conn_notes.h"
#include "hand_clock.h"
#include "transport/deferred.h"

typedef struct share {
    const char *came; /* or NULL: nothing to read */
    size_t room;      /* how many more bytes it puts into the carrier's queue */
    bool has_ended;   /* the other side sends no more */
} share;

static struct { unsigned closes, resets, ends; } heard;

static int peer;

static share *share_of(rd_conn *conn) {
    return rd_conn_transport_state(conn);
}

static ssize_t share_read(rd_conn *conn, char *bytes, size_t len) {
    share *state = share_of(conn);
    if (state->came == NULL) {
        errno = EAGAIN;
        return state->has_ended ? 0 : -1;
    }
    const size_t got = strlen(state->came);
    CHECK(got <= len);
    memcpy(bytes, state->came, got);
    state->came = NULL;
    return (ssize_t)got;
}

static ssize_t share_write(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    share *state = share_of(conn);
    rd_conn *carrier = rd_conn_carrier(conn);
    size_t sent = 0;
    (void)more;
    for (int i = 0; i < count && state->room > 0; i++) {
        const size_t part = iov[i].iov_len < state->room ? iov[i].iov_len : state->room;
        rd_outq_copy(&carrier->out, &carrier->set->chunks, iov[i].iov_base, part);
        state->room -= part;
        sent += part;
    }
    if (sent > 0) rd_conn_mark_dirty(carrier);
    errno = EAGAIN;
    return sent > 0 ? (ssize_t)sent : -1;
}

static void share_shutdown_write(rd_conn *conn) {
    heard.ends += conn != NULL;
}

static void share_close(rd_conn *conn) {
    CHECK(rd_conn_carrier(conn) != NULL);
    heard.closes++;
}

static void share_reset(rd_conn *conn) {
    heard.resets += conn != NULL;
}

static uint32_t share_count_unread(rd_conn *conn) {
    (void)conn;
    return 0;
}

static const rd_transport share_transport = {
    .state_size = sizeof(share),
    .scheme = "http",
    .read = share_read,
    .write = share_write,
    .shutdown_write = share_shutdown_write,
    .close = share_close,
    .reset = share_reset,
    .count_unread = share_count_unread,
};

static rd_conn *open_carrier(void) {
    int pair[2];
    const rd_address from = {.kind = RD_ADDRESS_V4, .port = 4711};
    memset(&told, 0, sizeof(told));
    memset(&heard, 0, sizeof(heard));
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    peer = pair[1];
    return rd_conn_open(&set, pair[0], &rd_transport_tcp, &notes, &from);
}

static rd_conn *open_carried(rd_conn *carrier) {
    rd_conn *conn = rd_conn_open_carried(carrier, &share_transport, &notes);
    share_of(conn)->room = SIZE_MAX;
    return conn;
}

static void turn(void) {
    rd_conn_set_flush(&set); /* flushes the carried connections, */
    rd_conn_set_flush(&set); /* then the bytes they gave their carriers */
    rd_loop_wait(&loop, &found, 0);
    rd_loop_process(&loop, &found);
}

static void queue(rd_conn *conn, const char *bytes, size_t len) {
    rd_outq_copy(&conn->out, &set.chunks, bytes, len);
    rd_conn_mark_dirty(conn);
}

static void check_sent(const char *expected) {
    char room[64];
    ssize_t got = recv(peer, room, sizeof(room), 0);
    CHECK_BYTES(room, got < 0 ? 0 : (size_t)got, expected);
}

static void end(rd_conn *carrier) {
    rd_conn_close(carrier);
    turn();
    CHECK_INT(set.count, 0);
    CHECK_INT(set.ledger.rows[RD_LEDGER_DESCRIPTORS].held, 0);
    CHECK(rd_list_is_empty(&set.conns) && rd_list_is_empty(&set.carried));
    close(peer);
}

static void test_it_counts_neither_as_connection_nor_as_descriptor(void) {
    rd_conn *carrier = open_carrier(), *one = open_carried(carrier), *two = open_carried(carrier);
    CHECK_INT(set.count, 1);
    CHECK_INT(set.ledger.rows[RD_LEDGER_DESCRIPTORS].held, 1);
    CHECK(one->index != two->index && one->index != carrier->index);
    CHECK_INT(one->peer.port, 4711);
    CHECK(rd_conn_carrier(one) == carrier && rd_conn_carrier(carrier) == NULL);
    CHECK_INT(told.opened, 3);
    rd_conn_close(one);
    CHECK_INT(set.count, 1);
    CHECK(rd_conn_is_open(carrier) && rd_conn_is_open(two));
    rd_conn_close(two);
    CHECK_INT(heard.closes, 2);
    end(carrier);
}

static void test_its_transport_has_zeroed_state_behind_that_of_the_protocol(void) {
    rd_conn *carrier = open_carrier();
    rd_conn *conn = rd_conn_open_carried(carrier, &share_transport, &notes);
    CHECK_INT(share_of(conn)->room, 0);
    memset(rd_conn_state_of(conn), 0xff, notes.state_size);
    CHECK_INT(share_of(conn)->room, 0);
    CHECK(rd_conn_carrier(conn) == carrier);
    rd_conn_close(conn);
    end(carrier);
}

static void test_it_reads_what_its_transport_has(void) {
    rd_conn *carrier = open_carrier(), *conn = open_carried(carrier);
    share_of(conn)->came = "hello";
    rd_conn_read_now(conn);
    rd_conn_read_now(conn); /* no more bytes: nothing happens */
    CHECK_BYTES(told.bytes, told.len, "hello");
    CHECK(!conn->source.registered);
    CHECK_INT(set.bytes_in, 0); /* bytes that the carrier reads count */
    share_of(conn)->has_ended = true;
    rd_conn_read_now(conn);
    CHECK_INT(told.eofs, 1);
    CHECK(rd_conn_is_open(conn) && rd_conn_is_open(carrier));
    rd_conn_close(conn);
    end(carrier);
}

static void test_it_writes_by_its_carrier(void) {
    const uint64_t before = set.bytes_out;
    rd_conn *carrier = open_carrier(), *one = open_carried(carrier), *two = open_carried(carrier);
    queue(one, "abc", 3);
    queue(two, "def", 3);
    turn();
    check_sent("abcdef");
    CHECK_INT(set.bytes_out - before, 6);
    rd_conn_close(one);
    rd_conn_close(two);
    end(carrier);
}

static void test_without_room_at_its_carrier_it_waits_and_has_a_deadline(void) {
    rd_conn *carrier = open_carrier(), *conn = open_carried(carrier);
    share_of(conn)->room = 2;
    queue(conn, "abcd", 4);
    turn();
    check_sent("ab");
    CHECK_INT(conn->out.bytes, 2);
    CHECK(rd_conn_write_deadline(conn) != UINT64_MAX);
    share_of(conn)->room = 2;
    rd_conn_mark_dirty(conn);
    turn();
    check_sent("cd");
    CHECK_INT(rd_conn_write_deadline(conn), UINT64_MAX);
    queue(conn, "e", 1);
    turn();
    pass_ms((uint64_t)settings.write_timeout_ms + 2);
    turn();
    CHECK_INT(heard.resets, 1);
    CHECK_INT(heard.closes, 1);
    CHECK(rd_conn_is_open(carrier));
    end(carrier);
}

static void test_its_deadline_is_its_own(void) {
    rd_conn *carrier = open_carrier(), *conn = open_carried(carrier);
    rd_conn_set_deadline(conn, loop.now_ms + 100);
    pass_ms(102);
    turn();
    CHECK_INT(told.timeouts, 1);
    rd_conn_close(conn);
    end(carrier);
}

static void test_it_ends_without_a_linger(void) {
    rd_conn *carrier = open_carrier(), *conn = open_carried(carrier);
    queue(conn, "bye", 3);
    rd_conn_finish(conn, true);
    turn();
    check_sent("bye");
    CHECK_INT(told.closed, 1);
    CHECK_INT(heard.closes, 1);
    CHECK_INT(heard.resets, 0);
    CHECK(rd_conn_is_open(carrier));
    end(carrier);
}

static void test_its_memory_and_its_carriers_last_as_long_as_somebody_refers_to_it(void) {
    rd_conn *carrier = open_carrier(), *conn = open_carried(carrier);
    rd_conn_ref(conn);
    rd_conn_close(conn);
    end(carrier);
    CHECK_INT(conn->state, RD_CONN_CLOSED);
    rd_conn_unref(conn);
    turn();
}

static void test_another_protocol_has_the_room_of_the_first(void) {
    static rd_protocol wide, narrow;
    wide = narrow = notes;
    wide.state_size = 100;
    rd_conn *carrier = open_carrier();
    rd_conn *conn = rd_conn_open_carried(carrier, &share_transport, &wide);
    share_of(conn)->room = 1;
    rd_conn_switch(conn, &narrow);
    rd_conn_switch(conn, &wide); /* it fits again */
    CHECK_INT(share_of(conn)->room, 1);
    rd_conn_close(conn);
    end(carrier);
}

static void test_in_a_forked_child_it_is_closed_as_well(void) {
    rd_conn *carrier = open_carrier(), *conn = open_carried(carrier);
    const pid_t child = fork();
    if (child == 0) {
        rd_conn_set_abandon(&set);
        _exit(rd_conn_is_open(conn) || rd_conn_is_open(carrier));
    }
    int status = -1;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK(rd_conn_is_open(conn));
    rd_conn_close(conn);
    end(carrier);
}

static void stand_again(rd_deferred *deferred) {
    rd_deferred_wait(&set, deferred);
}

/* What its parent has put off is not for the child. */
static void test_in_a_forked_child_nothing_is_put_off(void) {
    rd_deferred deferred;
    rd_deferred_init(&deferred, stand_again);
    rd_deferred_wait(&set, &deferred);
    const pid_t child = fork();
    if (child == 0) {
        rd_conn_set_abandon(&set);
        _exit(!rd_list_is_empty(&set.layers.deferred) || set.layers.count != 0);
    }
    int status = -1;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    rd_deferred_leave(&set, &deferred);
}

static void test_all(void) {
    test_it_counts_neither_as_connection_nor_as_descriptor();
    test_its_transport_has_zeroed_state_behind_that_of_the_protocol();
    test_it_reads_what_its_transport_has();
    test_it_writes_by_its_carrier();
    test_without_room_at_its_carrier_it_waits_and_has_a_deadline();
    test_its_deadline_is_its_own();
    test_it_ends_without_a_linger();
    test_its_memory_and_its_carriers_last_as_long_as_somebody_refers_to_it();
    test_another_protocol_has_the_room_of_the_first();
    test_in_a_forked_child_it_is_closed_as_well();
    test_in_a_forked_child_nothing_is_put_off();
}

int main(void) {
    return check_on_both_pollers(test_all);
}

/* SPDX-License-Identifier: MIT
 *
 * A set of connections on a loop of its own, and a protocol that only takes note of what it is
 * told.
 */
#ifndef TEST_CONN_NOTES_H
#define TEST_CONN_NOTES_H

#include <string.h>
#include <sys/socket.h>

#include "check.h"
#include "loop/disk.h"
#include "base/error.h"
#include "transport/conn.h"

static rd_loop loop;
static rd_ready_set found;
static rd_conn_set set;
static rd_settings settings;

static struct {
    unsigned opened, eofs, drained, timeouts, closed, files_cut;
    uint64_t write_deadline; /* when it was closed */
    char bytes[64];
    size_t len;
    void (*react)(rd_conn *conn); /* inside on_data */
} told;

static void note_open(rd_conn *conn) {
    (void)conn;
    told.opened++;
}

static void note_data(rd_conn *conn, const char *bytes, size_t len) {
    for (size_t i = 0; i < len && told.len < sizeof(told.bytes); i++) {
        told.bytes[told.len++] = bytes[i];
    }
    if (told.react != NULL) told.react(conn);
}

static void note_eof(rd_conn *conn) {
    told.eofs += conn != NULL;
}

static void note_drained(rd_conn *conn) {
    told.drained += conn != NULL;
}

static void note_timeout(rd_conn *conn) {
    CHECK(rd_conn_is_open(conn));
    told.timeouts++;
}

static void note_close(rd_conn *conn) {
    CHECK_INT(conn->state, RD_CONN_CLOSED);
    told.closed++;
    told.write_deadline = rd_conn_write_deadline(conn);
}

static void note_cut(rd_conn *conn, int code) {
    CHECK(rd_conn_is_open(conn));
    CHECK_INT(code, RD_ERR_FILE_CUT);
    told.files_cut++;
}

static const rd_protocol notes = {
    .state_size = 24,
    .on_open = note_open,
    .on_data = note_data,
    .on_eof = note_eof,
    .on_drained = note_drained,
    .on_timeout = note_timeout,
    .on_close = note_close,
    .on_shutdown = note_open,
};

/* One end is a connection with this protocol, and `peer` becomes the other one. */
__attribute__((unused)) static rd_conn *open_pair_with(const rd_transport *transport,
                                                       const rd_protocol *protocol, int *peer) {
    int pair[2];
    const rd_address nobody = {0};
    memset(&told, 0, sizeof(told));
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    *peer = pair[1];
    return rd_conn_open(&set, pair[0], transport, protocol, &nobody);
}

/* Runs the tests under the loop lock, with the one poller and with the other. */
static int check_on_both_pollers(void (*test_all)(void)) {
    rd_settings_init(&settings);
    for (int poll_only = 0; poll_only < 2; poll_only++) {
        CHECK_INT(rd_loop_init(&loop, poll_only == 1), 0);
        rd_conn_set_init(&set, &loop, &settings);
        set.on_cut = note_cut;
        rd_loop_lock(&loop);
        test_all();
        rd_loop_unlock(&loop);
        rd_conn_set_clear(&set);
        rd_disk_stop(&loop);
        rd_loop_clear(&loop);
    }
    return check_summary();
}

#endif

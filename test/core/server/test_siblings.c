/* SPDX-License-Identifier: MIT
 *
 * What a connection takes along to another worker, field by field, and what becomes of messages
 * about listeners and protocols that the other worker does not have. A connection that came by a
 * listener with another transport is opened with that transport there, and never as a plain one.
 */
#include "siblings_pair.h"
#include "transport/layer.h"

#define URL "https://127.0.0.1:443"

static rd_transport other; /* not plain; the bytes are those of TCP all the same */

static void begin(bool can_move) {
    other = rd_transport_tcp;
    other.scheme = "https";
    other.is_plain = false;
    other.is_secure = true;
    other.can_move = can_move;
    start();
}

/* Makes the server believe that it has such a listener. */
static void listen_at(rd_server *server, const char *url) {
    rd_listener listener = {.transport = &other};
    snprintf(listener.url, sizeof(listener.url), "%s", url);
    rd_listener_names_add(&server->accepting.names, &listener);
}

static void finish(void) {
    dialed = &rd_transport_tcp;
    dialed_name = RD_SLICE("");
    end();
}

static rd_conn *only_conn_of(rd_server *server) {
    CHECK_INT(server->conns.count, 1);
    return RD_CONTAINER(server->conns.conns.next, rd_conn, in_set);
}

static bool is_closed(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* ---- fields ---- */

static void check_packed(const rd_packed *packed, const char *text) {
    const rd_slice bytes = packed->parts[RD_PACKED_INPUT];
    CHECK_BYTES(bytes.ptr, bytes.len, text);
    CHECK_INT(rd_packed_len(packed), strlen(text));
}

static rd_handover took;
static char took_bytes[RD_HANDOVER_NAMES_MAX + RD_HANDOVER_BYTES_MAX];

/* The message in the inbox of B; B never learns of it. */
static void take_at_b(void) {
    int fd = -1;
    CHECK(rd_siblings_receive(servers[B], &took, took_bytes, &fd));
    CHECK(fd >= 0);
    close(fd);
}

static void stop_a(void) {
    rd_server_stop(servers[A], RD_STOP_DRAIN);
    for (int i = 0; i < 6; i++) serve(servers[A]);
}

/* A connection of A that has been served once and sent half a head, with peer and deadline known.
 */
static void dial_half(const char *half) {
    board.rows[B].connections = 100;
    int fd = dial();
    say(fd, GET("/first"));
    serve(servers[A]);
    hear(fd);
    say(fd, half);
    serve(servers[A]);
    board.rows[B].connections = 0;
    rd_conn *conn = only_conn_of(servers[A]);
    conn->peer = (rd_address){.kind = RD_ADDRESS_V4, .bytes = {192, 0, 2, 7}, .port = 99};
    conn->deadlines.protocol = servers[A]->loop.now_ms + 5000000;
}

static void check_common(uint32_t served) {
    CHECK_INT(took.header.peer.kind, RD_ADDRESS_V4);
    CHECK_INT(took.header.peer.bytes[3], 7);
    CHECK_INT(took.header.peer.port, 99);
    CHECK_INT(took.header.to, B);
    CHECK_INT(took.packed.served, served);
    CHECK(took.packed.begun);
}

static void test_fields_between_requests(void) {
    begin(true);
    dial_half("GET /half HT");
    stop_a();
    take_at_b();
    check_common(1);
    CHECK_INT(took.header.flags, RD_HANDOVER_IDLE);
    CHECK(took.packed.left_ms > 4000000 && took.packed.left_ms <= 5000000);
    check_packed(&took.packed, "GET /half HT");
    finish();
}

static void test_fields_of_a_request(void) {
    static const char *const text =
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /next";
    begin(true);
    board.rows[B].connections = 100;
    int fd = dial();
    only_conn_of(servers[A])->peer =
        (rd_address){.kind = RD_ADDRESS_V4, .bytes = {192, 0, 2, 7}, .port = 99};
    say(fd, text);
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    take_at_b();
    check_common(0);
    CHECK_INT(took.header.flags, 0);
    CHECK_INT(took.packed.left_ms, UINT32_MAX);
    check_packed(&took.packed, text);
    finish();
}

/* A worker of an older version reads messages of plain connections, because their format has not
 * changed. */
static void test_plain_messages_have_no_names(void) {
    begin(true);
    dial_half("");
    stop_a();
    take_at_b();
    CHECK_INT(took.header.magic, 0x52444831);
    CHECK_INT(took.header.names, 0);
    CHECK_INT(took.listener.len + took.protocol.len, 0);
    finish();
}

/* ---- listeners ---- */

static void dial_secure(void) {
    dialed = &other;
    dialed_name = RD_SLICE(URL);
}

static void test_accepted_connections_keep_their_transport(void) {
    begin(false);
    listen_at(servers[B], "https://127.0.0.1:8443");
    listen_at(servers[B], URL);
    dial_secure();
    dial();
    dial(); /* goes to B, though its transport cannot move: none of its bytes was read */
    CHECK_INT(servers[A]->counts.handed_out, 1);
    serve(servers[B]);
    CHECK(only_conn_of(servers[B])->transport == &other);
    CHECK(only_conn_of(servers[B])->origin.secure);
    say(clients[1], GET("/secure"));
    serve(servers[B]);
    CHECK_STR(hear(clients[1]), "B /secure 0");
    finish();
}

/* The name of the listener stays with a connection that is passed on again. */
static void test_passing_on(void) {
    begin(false);
    listen_at(servers[A], URL);
    dial_secure();
    dial();
    servers[B]->conns.count += 2;
    board.rows[B].connections = 0; /* this is no longer true, but A believes it */
    dial();
    serve(servers[B]);
    servers[B]->conns.count -= 2;
    CHECK_INT(servers[B]->counts.handed_out, 1);
    serve(servers[A]);
    CHECK_INT(servers[A]->conns.count, 2);
    CHECK_INT(servers[A]->counts.handed_in, 1);
    rd_conn *last = RD_CONTAINER(servers[A]->conns.conns.prev, rd_conn, in_set);
    CHECK(last->transport == &other);
    finish();
}

static void test_connections_in_the_middle_keep_their_transport(void) {
    begin(true);
    listen_at(servers[B], "https://127.0.0.1:8443"); /* any address will do */
    dial_secure();
    dial_half("GET /half HT");
    stop_a();
    CHECK(rd_server_is_done(servers[A]));
    serve(servers[B]);
    CHECK(only_conn_of(servers[B])->transport == &other);
    say(clients[0], "TP/1.1\r\nHost: a\r\n\r\n");
    serve(servers[B]);
    CHECK_STR(hear(clients[0]), "B /half 0");
    finish();
}

static void test_what_cannot_move_stays_and_is_served(void) {
    begin(false);
    listen_at(servers[B], URL);
    dial_secure();
    dial_half("GET /half HT");
    stop_a();
    CHECK_INT(servers[A]->counts.handed_out, 0);
    say(clients[0], "TP/1.1\r\nHost: a\r\n\r\n");
    serve(servers[A]);
    CHECK_STR(hear(clients[0]), "A /half 0");
    CHECK(strstr(got, "connection: close\r\n") != NULL);
    finish();
}

/* While other bytes come before those of its transport, it is read like a plain connection. */
static void test_a_transport_that_has_not_begun(void) {
    for (int can_move = 0; can_move < 2; can_move++) {
        begin(can_move);
        listen_at(servers[B], URL);
        dial_secure();
        dial_half("");
        rd_layer_hold(only_conn_of(servers[A]));
        CHECK(only_conn_of(servers[A])->transport == &rd_transport_tcp);
        stop_a();
        CHECK_INT(servers[A]->counts.handed_out, 0);
        CHECK_INT(servers[A]->conns.count, 1);
        finish();
    }
}

static size_t some_unsent(rd_conn *conn) {
    (void)conn;
    return 1;
}

static bool some_pending(rd_conn *conn) {
    (void)conn;
    return true;
}

static void test_bytes_that_a_transport_holds(void) {
    rd_packed packed;
    begin(true);
    dial_secure();
    dial_half("");
    rd_conn *conn = only_conn_of(servers[A]);
    CHECK(rd_conn_pack(conn, false, &packed));
    other.unsent = some_unsent;
    CHECK(!rd_conn_pack(conn, false, &packed));
    other.unsent = NULL;
    other.has_pending = some_pending;
    CHECK(!rd_conn_pack(conn, false, &packed));
    other.has_pending = NULL;
    CHECK(rd_conn_may_move(conn));
    other.can_move = false;
    CHECK(!rd_conn_may_move(conn) && !rd_conn_pack(conn, false, &packed));
    finish();
}

/* Of a request without its connection: what was read after it stays. */
static void test_fields_of_a_forward(void) {
    begin(false);
    dial_secure();
    board.rows[B].connections = 100;
    int fd = dial();
    only_conn_of(servers[A])->peer =
        (rd_address){.kind = RD_ADDRESS_V4, .bytes = {192, 0, 2, 7}, .port = 99};
    say(fd, GET("/alone") "GET /next");
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    take_at_b();
    check_common(0);
    CHECK_INT(took.header.flags, RD_HANDOVER_FORWARD);
    CHECK_INT(took.packed.left_ms, UINT32_MAX);
    check_packed(&took.packed, GET("/alone"));
    board.rows[A].busy = 0;
    finish();
}

/* Their requests do not; see test_forward.c. */
static void test_connections_that_cannot_move_stay(void) {
    begin(false);
    listen_at(servers[B], URL);
    dial_secure();
    board.rows[B].connections = 100;
    int fd = dial();
    say(fd, GET("/waits"));
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    CHECK_INT(servers[A]->counts.handed_out, 0);
    serve(servers[B]);
    serve(servers[B]);
    stand_in(servers[A]);
    CHECK_STR(hear(fd), "B /waits 0");
    CHECK_INT(servers[A]->conns.count, 1);
    board.rows[A].busy = 0;
    finish();
}

/* ---- listeners and protocols that the other worker does not have ---- */

/* Sends B one end of a pair, as A would; returns the other end. */
static int send_to_b(rd_slice listener, rd_slice protocol) {
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    rd_handover handover = {
        .header.peer.kind = RD_ADDRESS_UNIX, .listener = listener, .protocol = protocol};
    CHECK(rd_siblings_send(servers[A], B, pair[0], &handover));
    close(pair[0]);
    clients[client_count++] = pair[1];
    return pair[1];
}

static void refuse(rd_slice listener, rd_slice protocol) {
    begin(true);
    listen_at(servers[B], URL);
    int fd = send_to_b(listener, protocol);
    say(fd, GET("/"));
    serve(servers[B]);
    CHECK_INT(servers[B]->conns.count, 0);
    CHECK_INT(servers[B]->counts.dropped, 1);
    CHECK_INT(servers[B]->counts.handed_in, 0);
    CHECK_SAYS(recv(fd, got, sizeof(got), 0) <= 0, "%s", got);
    finish();
}

static void test_names_that_nobody_has(void) {
    refuse(RD_SLICE("https://127.0.0.1:444"), RD_SLICE(""));
    refuse(RD_SLICE("quic"), RD_SLICE(""));
    refuse(RD_SLICE(""), RD_SLICE("h9"));
    refuse(RD_SLICE(URL), RD_SLICE("h9"));
}

static void test_names_that_it_has(void) {
    begin(true);
    listen_at(servers[B], URL);
    int fd = send_to_b(RD_SLICE(URL), RD_SLICE("http/1.1"));
    say(fd, GET("/named"));
    serve(servers[B]);
    serve(servers[B]);
    CHECK_STR(hear(fd), "B /named 0");
    finish();
}

/* Names without their zero byte, more names than bytes, and a number that does not exist yet. */
static void test_broken_messages(void) {
    static const struct {
        uint32_t magic, len;
        uint16_t names;
    } rows[] = {
        {0x52444832, 8, 8}, {0x52444832, 8, 9}, {0x52444832, 8, 0}, {0x52444831, 8, 1},
        {0x52444833, 8, 0}, {0x52444832, 9, 1}, {0x52444831, 9, 0}, {0x52444831, UINT32_MAX, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(true);
        int pair[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        rd_handover_header header = {.magic = rows[i].magic,
                                     .len = rows[i].len,
                                     .names = rows[i].names,
                                     .to = B,
                                     .peer.kind = RD_ADDRESS_UNIX};
        char message[sizeof(header) + 8];
        memcpy(message, &header, sizeof(header));
        memcpy(message + sizeof(header), "12345678", 8);
        board.rows[B].arriving = 1; /* as each sender counts */
        send_descriptor(inboxes[B][1], pair[0], message, sizeof(message));
        close(pair[0]);
        serve(servers[B]);
        CHECK_INT(servers[B]->conns.count, 0);
        CHECK_INT(board.rows[B].arriving, 0);
        CHECK_SAYS(is_closed(pair[1]), "row %zu", i);
        close(pair[1]);
        finish();
    }
}

/* Two descriptors in one message, and one in a message without bytes: neither stays open here. */
static void test_descriptors_that_nobody_expects(void) {
    int pair[2][2], two[2];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {.room = {0}};
    rd_handover_header header = {.magic = 0x52444831, .to = B, .peer.kind = RD_ADDRESS_UNIX};
    struct iovec iov = {&header, sizeof(header)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    begin(true);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair[i]), 0);
        two[i] = pair[i][0];
    }
    control.header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(two))};
    memcpy(CMSG_DATA(&control.header), two, sizeof(two));
    CHECK_INT(sendmsg(inboxes[B][1], &message, 0), sizeof(header));
    send_descriptor(inboxes[B][1], pair[0][0], "", 0);
    for (int i = 0; i < 2; i++) close(pair[i][0]);
    rd_server_stop(servers[B], RD_STOP_NOW);
    for (int i = 0; i < 3; i++) serve(servers[B]);
    for (int i = 0; i < 2; i++) {
        CHECK_SAYS(is_closed(pair[i][1]), "descriptor %d", i);
        close(pair[i][1]);
    }
    finish();
}

int main(void) {
    test_fields_between_requests();
    test_fields_of_a_request();
    test_fields_of_a_forward();
    test_plain_messages_have_no_names();
    test_accepted_connections_keep_their_transport();
    test_passing_on();
    test_connections_in_the_middle_keep_their_transport();
    test_what_cannot_move_stays_and_is_served();
    test_a_transport_that_has_not_begun();
    test_bytes_that_a_transport_holds();
    test_connections_that_cannot_move_stay();
    test_names_that_nobody_has();
    test_names_that_it_has();
    test_broken_messages();
    test_descriptors_that_nobody_expects();
    return check_summary();
}

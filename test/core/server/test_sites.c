/* SPDX-License-Identifier: MIT
 *
 * Servers with several applications (listen/listener_names.c, server/server.c, server/handover.c):
 * a connection keeps its site when it changes its worker, whatever number the site has there.
 */
#include "siblings_pair.h"

#define URL "http://127.0.0.1:81"

static rd_transport secure;

static void listen_at(rd_server *server, const rd_transport *transport, const char *url,
                      uint16_t site) {
    rd_listener listener = {.transport = transport, .site = site};
    snprintf(listener.url, sizeof(listener.url), "%s", url);
    rd_listener_names_add(&server->accepting.names, &listener);
    rd_server_begin_sites(server);
}

/* Site 1 of A is site 2 of B. */
static void begin(bool is_known_to_b) {
    app = answer_site;
    secure = rd_transport_tcp;
    secure.scheme = "https";
    secure.is_plain = false;
    secure.is_secure = true;
    start();
    listen_at(servers[A], &secure, "https://127.0.0.1:443", 1);
    listen_at(servers[A], &rd_transport_tcp, URL, 1);
    if (!is_known_to_b) return;
    listen_at(servers[B], &rd_transport_tcp, "http://127.0.0.1:82", 1);
    listen_at(servers[B], &rd_transport_tcp, URL, 2);
}

static void finish(void) {
    dialed_name = RD_SLICE("");
    end();
}

/* A client of A at its site 1, which was answered there. */
static int dial_site(void) {
    board.rows[B].connections = 100;
    int fd = dial();
    rd_conn *conn = RD_CONTAINER(servers[A]->conns.conns.next, rd_conn, in_set);
    conn->origin.site = 1;
    say(fd, GET("/first"));
    serve(servers[A]);
    CHECK_STR(hear(fd), "A site 1");
    board.rows[B].connections = 0;
    return fd;
}

static void test_an_accepted_connection(void) {
    begin(true);
    board.rows[A].connections = servers[A]->conns.count = 100;
    dialed_name = RD_SLICE(URL);
    int fd = dial();
    servers[A]->conns.count = 0;
    say(fd, GET("/"));
    serve(servers[B]);
    serve(servers[B]);
    CHECK_STR(hear(fd), "B site 2");
    finish();
}

static void test_a_worker_that_stops(void) {
    begin(true);
    int fd = dial_site();
    rd_server_stop(servers[A], RD_STOP_DRAIN);
    for (int i = 0; i < 6; i++) serve(servers[A]);
    serve(servers[B]);
    say(fd, GET("/"));
    serve(servers[B]);
    CHECK_STR(hear(fd), "B site 2");
    finish();
}

static void test_a_request_that_waits(void) {
    begin(true);
    int fd = dial_site();
    say(fd, GET("/waits"));
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    CHECK_INT(servers[A]->counts.handed_out, 1);
    serve(servers[B]);
    serve(servers[B]);
    CHECK_STR(hear(fd), "B site 2");
    finish();
}

/* It must not get to the application of another address. */
static void test_a_site_that_the_other_does_not_have(void) {
    begin(false);
    int fd = dial_site();
    say(fd, GET("/waits"));
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    serve(servers[B]);
    CHECK_STR(hear(fd), "");
    CHECK_INT(servers[B]->counts.dropped, 1);
    finish();
}

/* A request without the other worker's number is for the server itself, also on its plain port. */
static void test_the_server_itself_is_site_0(void) {
    begin(true);
    board.rows[B].connections = 100;
    int fd = dial();
    say(fd, GET("/"));
    serve(servers[A]);
    CHECK_STR(hear(fd), "A site 0");
    say(fd, GET("/waits"));
    board.rows[B].connections = 0;
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    serve(servers[B]);
    serve(servers[B]);
    CHECK_STR(hear(fd), "B site 0");
    finish();
}

static void test_names(void) {
    static const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    begin(true);
    const rd_listener_names *names = &servers[A]->accepting.names;
    CHECK(rd_listener_names_find(names, RD_SLICE("https")) == NULL); /* only that of site 1 */
    CHECK_INT(rd_listener_names_find(names, RD_SLICE("https://127.0.0.1:443"))->site, 1);
    CHECK_INT(rd_listener_names_find(names, RD_SLICE(URL))->site, 1);
    CHECK_INT(rd_listener_names_find(names, RD_SLICE(""))->site, 0);
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    rd_loop_lock(&servers[A]->loop);
    rd_conn *conn =
        rd_conn_open(&servers[A]->conns, pair[0], &rd_transport_tcp,
                     rd_protocol_begin(&servers[A]->conns, &rd_transport_tcp, &nobody), &nobody);
    CHECK_INT(rd_listener_name_of_conn(names, conn).len, 0);
    conn->origin.site = 1;
    const rd_slice name = rd_listener_name_of_conn(names, conn); /* not the one with TLS */
    CHECK_BYTES(name.ptr, name.len, URL);
    rd_conn_close(conn);
    rd_loop_unlock(&servers[A]->loop);
    close(pair[1]);
    finish();
}

int main(void) {
    test_an_accepted_connection();
    test_a_worker_that_stops();
    test_a_request_that_waits();
    test_a_site_that_the_other_does_not_have();
    test_the_server_itself_is_site_0();
    test_names();
    return check_summary();
}

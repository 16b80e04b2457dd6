/* SPDX-License-Identifier: MIT
 *
 * endpoint/raw: bytes in both directions, what the application is told and when, either end,
 * limits, connections that the application does not know yet, and requests that become raw
 * connections.
 */
#include <malloc.h>

#include "serving.h"

#include "endpoint/raw.h"
#include "xor_transport.h"

#define MAKER 7
#define ASK   "GET /raw HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n"

static int client;
static rd_endpoint *endpoint; /* the application's reference */
static char told[64];         /* a letter for each event that the application got */
static size_t heard_len;      /* of all messages */
static size_t longest;        /* message */
static bool is_echoing;
static int status; /* of the answer that begins a raw connection */
static const rd_field *fields;
static size_t field_count;

/* ---- the application ---- */

static void claim(rd_endpoint *of) {
    CHECK_INT(of->index, MAKER);
    endpoint = of;
    rd_endpoint_ref(of);
    of->is_unclaimed = false;
    of->wants_drained = of->wants_ping = true;
}

static void take_message(const rd_event *event) {
    const rd_endpoint_message *message = rd_endpoint_message_of(event);
    const size_t len = rd_buffer_len(&message->payload);
    CHECK(!message->is_text);
    heard_len += len;
    if (len > longest) longest = len;
    if (is_echoing && endpoint->conn != NULL)
        rd_endpoint_ops_of(endpoint)->write(endpoint, rd_buffer_ptr(&message->payload), len, false);
}

/* Does what the application would do with one event. */
static bool tell_one(rd_event *event, bool goes_on) {
    static const char letters[] = {
        [RD_ENDPOINT_OPEN] = 'o',     [RD_ENDPOINT_MESSAGE] = 'm', [RD_ENDPOINT_DRAINED] = 'd',
        [RD_ENDPOINT_SHUTDOWN] = 's', [RD_ENDPOINT_PING] = 'p',    [RD_ENDPOINT_CLOSE] = 'c',
    };
    if (!rd_server_next_event(server, event, goes_on)) return false;
    rd_endpoint *of = rd_endpoint_of_source(event->source);
    if (of->is_unclaimed) claim(of);
    const size_t len = strlen(told);
    if (len < sizeof(told) - 1) told[len] = letters[event->kind];
    if (event->kind == RD_ENDPOINT_MESSAGE) take_message(event);
    if (event->kind == RD_ENDPOINT_SHUTDOWN) rd_endpoint_ops_of(of)->write(of, "bye", 3, true);
    return true;
}

static void tell(void) {
    rd_event event = {.source = NULL};
    rd_loop_lock(&server->loop);
    while (tell_one(&event, true)) continue;
    rd_loop_unlock(&server->loop);
}

static void work(void) {
    for (int i = 0; i < 3; i++) {
        turn();
        tell();
    }
}

static void upgrade(rd_request *request) {
    CHECK(rd_raw_is_possible(request));
    endpoint = rd_raw_upgrade(request, status, fields, field_count);
    if (CHECK(endpoint != NULL)) endpoint->wants_drained = endpoint->wants_ping = true;
}

static void begin_server(void (*application)(rd_request *)) {
    memset(told, 0, sizeof(told));
    heard_len = longest = 0;
    is_echoing = false;
    endpoint = NULL;
    start(application);
}

/* A client of a raw listener, which the application does not know yet. */
static void knock_at(const rd_transport *transport) {
    rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    rd_loop_lock(&server->loop);
    joined = rd_protocol_open_raw(&server->conns, pair[0], transport, &nobody, MAKER);
    rd_conn_read_now(joined);
    rd_loop_unlock(&server->loop);
    client = pair[1];
}

static void knock(void) {
    knock_at(&rd_transport_tcp);
}

static void begin(void) {
    begin_server(answer_path);
    knock();
    work();
    CHECK_STR(told, "o");
}

static void leave(void) {
    if (client >= 0) close(client);
    client = -1;
    work();
}

static void finish(void) {
    leave();
    if (endpoint != NULL) {
        rd_loop_lock(&server->loop);
        rd_endpoint_unref(endpoint);
        rd_loop_unlock(&server->loop);
    }
    endpoint = NULL;
    end();
}

static void push(const char *text, size_t len) {
    rd_loop_lock(&server->loop);
    rd_endpoint_ops_of(endpoint)->write(endpoint, text, len, true);
    rd_loop_unlock(&server->loop);
    work();
}

/* A server has many connections that only wait. The allocator adds 8 bytes to each block. */
static void test_memory_while_nothing_happens(void) {
    begin();
    const size_t blocks = malloc_usable_size(joined) + malloc_usable_size(endpoint);
    CHECK(blocks <= 352);
    CHECK(joined->stall == NULL && joined->input.bytes == NULL && joined->out.last == NULL);
    finish();
}

static void hang_up(void) {
    CHECK_INT(shutdown(client, SHUT_WR), 0);
    work();
}

/* ---- bytes ---- */

static void test_echo(void) {
    begin();
    is_echoing = true;
    say(client, "one");
    work();
    CHECK(!hear(client));
    CHECK_STR(got, "one");
    CHECK_STR(told, "omd");
    push("", 0);
    CHECK_STR(told, "omd");
    finish();
    CHECK_STR(told, "omdc");
}

/* Bytes that wait are given to the application together. */
static void test_pieces_join(void) {
    begin();
    say(client, "a");
    turn();
    say(client, "b");
    turn();
    work();
    CHECK_STR(told, "om");
    CHECK_INT(heard_len, 2);
    finish();
}

static void test_no_message_is_longer_than_the_most(void) {
    static char bytes[3 * RD_RAW_MESSAGE_MAX / 2];
    rd_buffer all = {0};
    memset(bytes, 'x', sizeof(bytes));
    begin();
    rd_buffer_append(&all, bytes, sizeof(bytes));
    rd_loop_lock(&server->loop);
    rd_conn_take_data(joined, rd_buffer_ptr(&all), rd_buffer_len(&all));
    rd_loop_unlock(&server->loop);
    rd_buffer_clear(&all);
    work();
    CHECK_STR(told, "omm");
    CHECK_INT(longest, RD_RAW_MESSAGE_MAX);
    CHECK_INT(heard_len, sizeof(bytes));
    finish();
}

/* Reading stops until the application has taken what waits, and nothing is lost. */
static void test_client_that_only_writes(void) {
    static char bytes[RD_RAW_MESSAGE_MAX];
    size_t sent = 0;
    begin();
    for (int i = 0; i < 100; i++) {
        const ssize_t part = send(client, bytes, sizeof(bytes), MSG_NOSIGNAL);
        if (part > 0) sent += (size_t)part;
        turn(); /* the application does nothing meanwhile */
    }
    CHECK(sent > RD_RAW_MESSAGE_MAX && sent < 50 * RD_RAW_MESSAGE_MAX);
    CHECK(endpoint->message_bytes < 3 * RD_RAW_MESSAGE_MAX);
    for (int i = 0; i < 100; i++) work();
    CHECK_INT(heard_len, sent);
    finish();
}

static void publish(const char *text, size_t len) {
    rd_message *message = rd_message_new(RD_SLICE("news"), rd_slice_of(text, len), false, 1);
    rd_loop_lock(&server->loop);
    rd_endpoint_deliver(endpoint, message, RD_AS_TEXT, 0);
    rd_message_unref(message);
    rd_loop_unlock(&server->loop);
}

static void test_published(void) {
    begin();
    publish("a\xff", 2);
    publish("", 0);
    publish("b", 1);
    work();
    CHECK(!hear(client));
    CHECK_STR(got, "a\xff"
                   "b");
    finish();
}

/* ---- clients that do not read ---- */

static void test_too_much_published(void) {
    static char text[60000];
    settings.max_pending_bytes = 65536;
    begin();
    for (int i = 0; i < 100 && endpoint->conn != NULL; i++) {
        publish(text, sizeof(text));
        work();
    }
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, 1013);
    finish();
}

static void test_oldest_are_dropped(void) {
    static char text[60000];
    settings.max_pending_bytes = 65536;
    settings.slow_client = RD_SLOW_DROP_OLDEST;
    begin();
    for (int i = 0; i < 100; i++) {
        publish(text, sizeof(text));
        work();
    }
    CHECK(endpoint->conn != NULL && server->http.messages_dropped > 0);
    finish();
}

static void test_too_much_written(void) {
    static char text[60000];
    settings.max_pending_bytes = 65536;
    begin();
    for (int i = 0; i < 100 && endpoint->conn != NULL; i++) push(text, sizeof(text));
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, 1013);
    finish();
}

/* ---- all clients together ---- */

/* Reading has to stop, and the kernel refuses: the connection is closed, and nobody knew it. */
static void test_a_poller_that_fails_at_a_full_backlog(void) {
    static char bytes[RD_RAW_MESSAGE_MAX];
    begin_server(answer_path);
    knock();
    rd_loop_lock(&server->loop);
    const rd_poller_ops *before = break_poller();
    CHECK(joined->source.registered);
    rd_conn_take_data(joined, bytes, sizeof(bytes));
    server->loop.ops = before;
    CHECK_INT(server->conns.count, 0);
    rd_loop_unlock(&server->loop);
    work();
    CHECK_STR(told, "");
    close(client);
    end();
}

/* A single client above its free part, while others have taken all there is. */
static void test_no_memory_is_left(void) {
    static char bytes[2 * RD_LEDGER_FREE];
    begin();
    rd_loop_lock(&server->loop);
    rd_ledger_add(&server->conns.ledger, RD_LEDGER_MESSAGES,
                  (uint64_t)settings.total_message_bytes);
    rd_conn_take_data(joined, bytes, sizeof(bytes));
    CHECK(endpoint->is_closing);
    rd_loop_unlock(&server->loop);
    work();
    CHECK_INT(heard_len, sizeof(bytes));
    CHECK_INT(endpoint->close_code, 1013);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_MESSAGES].refused, 1);
    rd_loop_lock(&server->loop);
    rd_ledger_release(&server->conns.ledger, RD_LEDGER_MESSAGES,
                      (uint64_t)settings.total_message_bytes);
    rd_loop_unlock(&server->loop);
    finish();
}

/* ---- the end ---- */

/* The client hears the answer to what it said before it ended its side. */
static void test_half_close(void) {
    begin();
    is_echoing = true;
    say(client, "last");
    hang_up();
    CHECK(hear(client));
    CHECK_STR(got, "last");
    CHECK_STR(told, "omdc");
    CHECK_INT(endpoint->close_code, RD_ENDPOINT_NO_CODE);
    finish();
}

/* What was said before the application has taken the connection is said to it, too. */
static void test_half_close_before_it_is_claimed(void) {
    begin_server(answer_path);
    is_echoing = true;
    knock();
    say(client, "quick");
    CHECK_INT(shutdown(client, SHUT_WR), 0);
    turns(3);
    CHECK(joined->state == RD_CONN_OPEN);
    work();
    CHECK(hear(client));
    CHECK_STR(got, "quick");
    CHECK_STR(told, "omc");
    finish();
}

static void test_close(void) {
    begin();
    rd_loop_lock(&server->loop);
    rd_endpoint_ops_of(endpoint)->write(endpoint, "end", 3, false);
    rd_endpoint_ops_of(endpoint)->close(endpoint, 4000, RD_SLICE("enough"));
    rd_endpoint_ops_of(endpoint)->write(endpoint, "more", 4, false);
    rd_loop_unlock(&server->loop);
    work();
    CHECK(hear(client));
    CHECK_STR(got, "end");
    CHECK_STR(told, "oc"); /* the end of the client is not waited for */
    CHECK_INT(endpoint->close_code, 4000);
    CHECK(server->conns.count == 1 && joined->state == RD_CONN_LINGERING);
    say(client, "what nobody reads");
    leave();
    CHECK_STR(told, "oc");
    CHECK_INT(server->conns.count, 0);
    finish();
}

/* A close inside the message that the end of the client follows. */
static void test_close_while_ending(void) {
    rd_event event = {.source = NULL};
    begin();
    say(client, "x");
    CHECK_INT(shutdown(client, SHUT_WR), 0);
    turns(2);
    rd_loop_lock(&server->loop);
    CHECK(tell_one(&event, true));
    CHECK_INT(event.kind, RD_ENDPOINT_MESSAGE);
    rd_endpoint_ops_of(endpoint)->close(endpoint, 1000, RD_SLICE(""));
    while (tell_one(&event, true)) continue;
    rd_loop_unlock(&server->loop);
    work();
    CHECK_STR(told, "omc");
    finish();
}

static void test_shutdown(void) {
    begin();
    rd_server_stop(server, RD_STOP_DRAIN);
    work();
    CHECK(hear(client));
    CHECK_STR(got, "bye");
    leave();
    CHECK_STR(told, "osc");
    CHECK_INT(endpoint->close_code, 1001);
    finish();
}

static void test_shutdown_by_and_by(void) {
    settings.drain_spread_ms = 5000;
    begin();
    rd_server_stop(server, RD_STOP_DRAIN);
    work();
    CHECK(!hear(client));
    CHECK_STR(told, "o");
    for (int ms = 0; ms < 5000; ms++) later(1);
    work();
    CHECK(hear(client));
    CHECK_STR(got, "bye");
    leave();
    CHECK_STR(told, "osc");
    CHECK_INT(endpoint->close_code, 1012);
    finish();
}

/* ---- before it is claimed ---- */

static void check_forgotten(void) {
    CHECK_INT(server->conns.count, 0);
    CHECK(!rd_events_live(server));
    CHECK_STR(told, "");
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_MESSAGES].held, 0);
}

/* However many come and break before the application looks, nothing of them stays. */
static void test_broken_before_it_is_claimed(void) {
    begin_server(answer_path);
    for (int i = 0; i < 20; i++) {
        knock();
        if (i % 2) say(client, "words of a client that then breaks");
        turn();
        rd_loop_lock(&server->loop);
        rd_conn_reset(joined);
        rd_loop_unlock(&server->loop);
        close(client);
    }
    client = -1;
    turn();
    check_forgotten();
    finish();
}

/* It has ended in good order, then it broke: what it said counts in full until it was taken. */
static void test_ended_and_broken_before_it_is_claimed(void) {
    begin_server(answer_path);
    knock();
    say(client, "words");
    CHECK_INT(shutdown(client, SHUT_WR), 0);
    turns(2);
    rd_loop_lock(&server->loop);
    rd_conn_reset(joined);
    CHECK(server->conns.ledger.rows[RD_LEDGER_MESSAGES].held > 5);
    rd_loop_unlock(&server->loop);
    work();
    CHECK_STR(told, "omc");
    CHECK_INT(heard_len, 5);
    finish();
}

static void test_ended_and_broken_without_room(void) {
    begin_server(answer_path);
    knock();
    say(client, "words");
    CHECK_INT(shutdown(client, SHUT_WR), 0);
    turns(2);
    rd_loop_lock(&server->loop);
    const uint64_t all = (uint64_t)settings.total_message_bytes;
    rd_ledger_add(&server->conns.ledger, RD_LEDGER_MESSAGES, all);
    rd_conn_reset(joined);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_MESSAGES].refused, 1);
    rd_ledger_release(&server->conns.ledger, RD_LEDGER_MESSAGES, all);
    rd_loop_unlock(&server->loop);
    check_forgotten();
    finish();
}

/* A server that ends has connections that nobody has claimed. */
static void test_server_that_ends(void) {
    begin_server(answer_path);
    knock();
    turn();
    rd_server_stop(server, RD_STOP_NOW);
    turns(2);
    CHECK(rd_server_is_done(server));
    finish();
}

/* ---- silence ---- */

static void test_silence(void) {
    settings.ping_interval_ms = 1000;
    begin();
    later(999);
    tell();
    CHECK_STR(told, "o");
    say(client, "x"); /* either side breaks the silence */
    work();
    later(999);
    push("y", 1);
    later(999);
    tell();
    CHECK_STR(told, "omd");
    later(2);
    tell();
    CHECK_STR(told, "omdp");
    later(1001);
    later(1001); /* the application did not look: it is asked once */
    tell();
    CHECK_STR(told, "omdpp");
    endpoint->wants_ping = false;
    later(1001);
    tell();
    CHECK_STR(told, "omdpp");
    CHECK(endpoint->conn != NULL);
    finish();
}

/* ---- requests that become raw connections ---- */

static void begin_upgrade(const char *request) {
    begin_server(upgrade);
    client = join();
    say(client, request);
    work();
}

static void test_upgrade(void) {
    static const rd_field some[] = {
        {RD_SLICE_INIT("connection"), RD_SLICE_INIT("upgrade")},
        {RD_SLICE_INIT("upgrade"), RD_SLICE_INIT("raw")},
        {RD_SLICE_INIT("Content-Length"), RD_SLICE_INIT("5")},
    };
    status = 101;
    fields = some;
    field_count = 3;
    begin_upgrade(ASK "first");
    is_echoing = true;
    CHECK(!hear(client));
    CHECK_STR(got,
              "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n");
    CHECK_STR(told, "om");
    CHECK_INT(heard_len, 5);
    say(client, "next");
    work();
    CHECK(!hear(client));
    CHECK_STR(got, "next");
    fields = NULL;
    field_count = 0;
    finish();
    CHECK_STR(told, "ommdc");
}

static void test_upgrade_with_another_status(void) {
    status = 200;
    begin_upgrade("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nabcd");
    CHECK(!hear(client));
    CHECK(begins(got, "HTTP/1.1 200 OK\r\n"));
    CHECK(strstr(got, "\r\nconnection: close\r\n") != NULL);
    CHECK(strstr(got, "\r\ntransfer-encoding") == NULL);
    CHECK_INT(heard_len, 2);
    finish();
}

/* The end of the client's side was seen before the connection became a raw one. */
static void test_upgrade_of_a_client_that_has_ended(void) {
    status = 101;
    begin_server(hold);
    client = join();
    say(client, ASK "all");
    CHECK_INT(shutdown(client, SHUT_WR), 0);
    turns(3);
    rd_loop_lock(&server->loop);
    upgrade(held);
    rd_loop_unlock(&server->loop);
    work();
    CHECK(hear(client));
    CHECK_STR(told, "omc");
    CHECK_INT(heard_len, 3);
    finish();
}

static void refuse_upgrade(rd_request *request) {
    CHECK(!rd_raw_is_possible(request));
    CHECK(rd_raw_upgrade(request, 101, NULL, 0) == NULL);
    answer_with(request, "no", 2);
}

static void test_upgrade_before_the_body(void) {
    begin_server(refuse_upgrade);
    client = join();
    ask(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    CHECK(begins(got, "HTTP/1.1 200 OK\r\n"));
    finish();
}

/* ---- what comes before the bytes ---- */

#define PROXY "PROXY TCP4 192.0.2.9 192.0.2.1 5 80\r\n"
/* The handshake offers a protocol, and none is agreed upon. */
#define HELLO   "XOR?1XOR?2\x09\x08http/1.1"
#define WELCOME "XOR!1XOR!2\0"

static void trust_everybody(void) {
    rd_network *networks = rd_alloc_zero(sizeof(*networks));
    CHECK(rd_network_parse(networks, "unix", 4));
    rd_server_set_proxies(server, networks, 1);
}

static void say_part(const char *bytes, size_t len) {
    CHECK_INT(send(client, bytes, len, MSG_NOSIGNAL), len);
    work();
}

/* The application is told when the opening is over, with everything that came with it. */
static void check_opening_cut_at(const rd_transport *transport, const char *sent, size_t opening,
                                 size_t len, size_t cut) {
    begin_server(answer_path);
    trust_everybody();
    is_echoing = true;
    knock_at(transport);
    say_part(sent, cut);
    CHECK_STR(told, cut < opening ? "" : cut > opening ? "omd" : "o");
    say_part(sent + cut, len - cut);
    CHECK(strncmp(told, "om", 2) == 0);
    CHECK_INT(heard_len, 4);
    CHECK_INT(endpoint->conn->peer.bytes[3], 9);
    CHECK_INT(endpoint->conn->peer.port, 5);
}

static void test_a_proxy_header_cut_anywhere(void) {
    static const char sent[] = PROXY "word";
    const size_t opening = sizeof(PROXY) - 1, len = sizeof(sent) - 1;
    for (size_t cut = 1; cut < len; cut++) {
        check_opening_cut_at(&rd_transport_tcp, sent, opening, len, cut);
        hear(client);
        CHECK_STR(got, "word");
        finish();
    }
}

static void test_a_proxy_header_and_a_handshake_cut_anywhere(void) {
    static const char record[] = {
        0, 4, 'w' ^ XOR_BYTE, 'o' ^ XOR_BYTE, 'r' ^ XOR_BYTE, 'd' ^ XOR_BYTE};
    static const char welcome[] = WELCOME;
    char sent[128] = PROXY HELLO;
    const size_t opening = sizeof(PROXY HELLO) - 1, len = opening + sizeof(record);
    memcpy(sent + opening, record, sizeof(record));
    for (size_t cut = 1; cut <= opening; cut++) {
        check_opening_cut_at(&rd_transport_xor, sent, opening, len, cut);
        hear(client);
        CHECK_INT(got_len, sizeof(welcome) - 1 + sizeof(record));
        CHECK(memcmp(got, welcome, sizeof(welcome) - 1) == 0);
        CHECK(memcmp(got + sizeof(welcome) - 1, record, sizeof(record)) == 0);
        finish();
    }
}

/* There is no answer: the application alone knows words of the protocol. */
static void test_an_opening_that_goes_wrong_is_no_connection(void) {
    begin_server(answer_path);
    trust_everybody();
    knock();
    say_part("word\r\n", 6);
    CHECK(hear(client));
    CHECK_STR(got, "");
    CHECK_STR(told, "");
    CHECK_INT(server->counts.refused, 1);
    finish();
}

static void test_a_peer_that_leaves_in_its_opening_was_never_there(void) {
    begin_server(answer_path);
    trust_everybody();
    knock();
    say_part(PROXY, 9);
    leave();
    CHECK_STR(told, "");
    CHECK_INT(server->conns.count, 0);
    finish();
}

static void test_all(void) {
    test_a_proxy_header_cut_anywhere();
    test_a_proxy_header_and_a_handshake_cut_anywhere();
    test_an_opening_that_goes_wrong_is_no_connection();
    test_a_peer_that_leaves_in_its_opening_was_never_there();
    test_memory_while_nothing_happens();
    test_echo();
    test_pieces_join();
    test_no_message_is_longer_than_the_most();
    test_client_that_only_writes();
    test_published();
    test_too_much_published();
    test_oldest_are_dropped();
    test_too_much_written();
    test_a_poller_that_fails_at_a_full_backlog();
    test_no_memory_is_left();
    test_half_close();
    test_half_close_before_it_is_claimed();
    test_close();
    test_close_while_ending();
    test_shutdown();
    test_shutdown_by_and_by();
    test_broken_before_it_is_claimed();
    test_ended_and_broken_before_it_is_claimed();
    test_ended_and_broken_without_room();
    test_server_that_ends();
    test_silence();
    test_upgrade();
    test_upgrade_with_another_status();
    test_upgrade_of_a_client_that_has_ended();
    test_upgrade_before_the_body();
}

int main(void) {
    return test_both_pollers(test_all);
}

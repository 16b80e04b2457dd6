/* SPDX-License-Identifier: MIT
 *
 * A raw connection of a whole server: each byte is a command of the client, of the application or
 * of the clock, see act(). Holds: no crash; the application gets what the client sent, in order and
 * without a gap, in messages of at most RD_RAW_MESSAGE_MAX, after its OPEN and before its CLOSE,
 * which comes once; the client gets what the application wrote, in order; nothing is held when the
 * connection is closed.
 */
#include "fuzz_server.h"

#include "endpoint/raw.h"

#define MAKER 7
#define UNIT  512 /* bytes of each number of a command */

static int client;
static rd_endpoint *endpoint; /* the application's reference */
static bool is_open, is_closed, has_left;
static size_t said, heard; /* by the client, by the application */
static size_t written, read_back;
static rd_event event; /* that the application was told last */

/* What stands at a place of either stream. */
static char byte_at(size_t place) {
    return (char)(place * 31 + place / 251);
}

static void fill(char *bytes, size_t len, size_t from) {
    for (size_t i = 0; i < len; i++) bytes[i] = byte_at(from + i);
}

static void check(const char *bytes, size_t len, size_t from) {
    for (size_t i = 0; i < len; i++) FUZZ_CHECK(bytes[i] == byte_at(from + i));
}

/* ---- the application ---- */

static void take_message(void) {
    const rd_endpoint_message *message = rd_endpoint_message_of(&event);
    const size_t len = rd_buffer_len(&message->payload);
    FUZZ_CHECK(is_open && len > 0 && len <= RD_RAW_MESSAGE_MAX);
    check(rd_buffer_ptr(&message->payload), len, heard);
    heard += len;
    FUZZ_CHECK(heard <= said);
}

static void claim(rd_endpoint *of) {
    FUZZ_CHECK(endpoint == NULL && of->index == MAKER);
    endpoint = of;
    rd_endpoint_ref(of);
    of->is_unclaimed = false;
    of->wants_drained = of->wants_ping = true;
}

/* Returns from the last event, and takes the next one. */
static bool take_event(bool goes_on) {
    rd_loop_lock(&server->loop);
    const bool is_one = rd_server_next_event(server, &event, goes_on);
    if (is_one) {
        rd_endpoint *of = rd_endpoint_of_source(event.source);
        FUZZ_CHECK(!is_closed);
        if (of->is_unclaimed) claim(of);
        FUZZ_CHECK(of == endpoint);
        if (event.kind == RD_ENDPOINT_OPEN) {
            FUZZ_CHECK(!is_open);
            is_open = true;
        }
        if (event.kind == RD_ENDPOINT_MESSAGE) take_message();
        if (event.kind == RD_ENDPOINT_CLOSE) is_closed = true;
    }
    rd_loop_unlock(&server->loop);
    return is_one;
}

static bool may_speak(void) {
    return endpoint != NULL && endpoint->conn != NULL && !endpoint->is_closing;
}

static void write_to_client(size_t len) {
    char *bytes = malloc(len);
    rd_loop_lock(&server->loop);
    if (may_speak()) {
        fill(bytes, len, written);
        rd_endpoint_ops_of(endpoint)->write(endpoint, bytes, len, false);
        written += len; /* or the connection is closed for it */
    }
    rd_loop_unlock(&server->loop);
    free(bytes);
}

static void close_by_application(void) {
    rd_loop_lock(&server->loop);
    if (may_speak()) rd_endpoint_ops_of(endpoint)->close(endpoint, 1000, RD_SLICE("enough"));
    rd_loop_unlock(&server->loop);
}

/* ---- the client ---- */

static void say_bytes(size_t len) {
    char *bytes = malloc(len);
    fill(bytes, len, said);
    const ssize_t sent = send(client, bytes, len, MSG_NOSIGNAL);
    if (sent > 0) said += (size_t)sent;
    free(bytes);
}

static void read_bytes(size_t len) {
    char *bytes = malloc(len);
    const ssize_t count = recv(client, bytes, len, 0);
    if (count > 0) {
        check(bytes, (size_t)count, read_back);
        read_back += (size_t)count;
        FUZZ_CHECK(read_back <= written);
    }
    free(bytes);
}

static void leave(void) {
    if (!has_left) close(client);
    has_left = true;
}

static void act(uint8_t command) {
    const size_t amount = ((size_t)(command >> 3) + 1) * UNIT;
    switch (command % 8) {
    case 0:
        if (!has_left) say_bytes(amount);
        break;
    case 1:
        if (!has_left) read_bytes(amount * 4);
        break;
    case 2:
        write_to_client(amount);
        break;
    case 3:
        for (unsigned left = command >> 3; take_event(left > 0) && left > 0; left--) continue;
        break;
    case 4:
        if (command >> 3 == 31) close_by_application();
        if (command >> 3 == 30) leave();
        if (command >> 3 == 29 && !has_left) shutdown(client, SHUT_WR);
        break;
    case 5:
        pass_ms(amount);
        break;
    case 6: /* much at once: the backlog */
        if (!has_left) say_bytes(amount * 8);
        break;
    default:
        break;
    }
    fuzz_turn();
}

/* ---- the life of the connection ---- */

static void begin(void) {
    static const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    int pair[2];
    if (server == NULL) {
        rd_settings_init(&settings);
        settings.max_pending_bytes = 65536;
        start(answer_path);
    }
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    client = pair[1];
    event = (rd_event){.source = NULL};
    is_open = is_closed = has_left = false;
    said = heard = written = read_back = 0;
    rd_loop_lock(&server->loop);
    rd_conn *conn =
        rd_protocol_open_raw(&server->conns, pair[0], &rd_transport_tcp, &nobody, MAKER);
    rd_conn_read_now(conn);
    rd_loop_unlock(&server->loop);
}

static void finish(void) {
    leave();
    for (int i = 0; i < 100 && server->conns.count > 0; i++) {
        pass_ms(1000);
        fuzz_turn();
        while (take_event(true)) continue;
    }
    while (take_event(true)) continue;
    FUZZ_CHECK(endpoint == NULL || is_closed);
    rd_loop_lock(&server->loop);
    if (endpoint != NULL) rd_endpoint_unref(endpoint);
    rd_loop_unlock(&server->loop);
    endpoint = NULL;
    fuzz_turn();
    fuzz_check_nothing_is_held();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (len > 400) return 0;
    begin();
    for (size_t i = 0; i < len; i++) act(bytes[i]);
    finish();
    return 0;
}

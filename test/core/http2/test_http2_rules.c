/* SPDX-License-Identifier: MIT
 *
 * HTTP/2 (http2/http2.c): delivers the rules of http2_rules.h to a server, on a plain connection
 * and over TLS, on both pollers: whole; byte by byte; cut at every offset. RULES_ONLY=7 in the
 * environment delivers those of one rule.
 */
#include "serving.h"

#ifndef RD_WITHOUT_TLS
#include <openssl/err.h>

#include "tls_peer.h"
#endif

#include "http2_judge.h"
#include "http2_rules.h"

enum {
    HEAD_MAX = 4096,
    TARGET_MAX = 512,
    BODY_MAX = 300000,
    FIELDS_MAX = 20,
    BIG = 600000,
    LONG = 400,  /* longer rows are cut here and there */
    ENOUGH = 40, /* turns until what is expected must have come */
    LIFE = 401,  /* the stream that shows that a connection lives */
};

static bool is_tls;

/* ---- the application ---- */

static char big[BIG], long_value[1200000];

static void answer_fields(rd_request *request, int status, const char *value, size_t value_len) {
    const rd_field field = {RD_SLICE_INIT("x-long"), rd_slice_of(value, value_len)};
    const rd_response_head head = {.status = status, .fields = &field, .count = 1, .length = 0};
    request->responder->start(request, &head);
    request->responder->finish(request);
}

static void answer_promised(rd_request *request, int64_t length) {
    const rd_response_head head = {.status = 200, .length = length};
    request->responder->start(request, &head);
    request->responder->write(request, "half", 4);
    request->responder->finish(request);
}

static rd_list waiting; /* requests whose bodies have not come */

typedef struct waiting_request {
    rd_list node;
    rd_request *request;
} waiting_request;

static void keep(rd_request *request) {
    waiting_request *one = rd_alloc_zero(sizeof(*one));
    rd_request_ref(request);
    one->request = request;
    rd_list_append(&waiting, &one->node);
}

static void answer_body(rd_request *request) {
    if (!request->body_complete && request->body_error == 0) {
        request->responder->want_body(request);
        keep(request);
        return;
    }
    const rd_buffer *body = &request->body.memory;
    answer_with(request, rd_buffer_len(body) > 0 ? rd_buffer_ptr(body) : "", rd_buffer_len(body));
}

static void answer(rd_request *request) {
    const rd_slice path = rd_request_slice(request, request->head.path);
#define IS(name) rd_slice_equal(path, RD_SLICE(name))
    if (IS("/body")) {
        answer_body(request);
    } else if (IS("/held")) {
        keep(request);
    } else if (IS("/big")) {
        answer_with(request, big, sizeof(big));
    } else if (IS("/short") || IS("/long")) {
        answer_promised(request, IS("/short") ? 8 : 2);
    } else if (IS("/204") || IS("/304")) {
        answer_fields(request, IS("/204") ? 204 : 304, "x", 1);
    } else if (IS("/head") || IS("/heads")) {
        answer_fields(request, 200, long_value, IS("/head") ? 70000 : sizeof(long_value));
    } else if (IS("/early")) {
        answer_with(request, "early", 5);
    } else {
        answer_path(request);
    }
#undef IS
}

/* Those whose bodies have come meanwhile get their answers. */
static void serve_waiting(void) {
    rd_loop_lock(&server->loop);
    for (rd_list *node = waiting.next, *next; node != &waiting; node = next) {
        next = node->next;
        waiting_request *one = RD_CONTAINER(node, waiting_request, node);
        rd_request *request = one->request;
        const bool is_held =
            rd_slice_equal(rd_request_slice(request, request->head.path), RD_SLICE("/held"));
        if (request->conn != NULL && (is_held || !request->body_complete)) continue;
        if (request->conn != NULL) answer_body(request);
        rd_list_unlink(&one->node);
        rd_request_unref(request);
        rd_free(one);
    }
    rd_loop_unlock(&server->loop);
}

/* ---- a server ---- */

static bool is_switched_off(const char *script) {
    return strncmp(script, "OFF ", 4) == 0;
}

static void begin_server_for(const char *script) {
    settings.http2 = strncmp(script, "OFF http2\n", 10) != 0;
    settings.http2_websocket = strncmp(script, "OFF websocket\n", 14) != 0;
    settings.linger_timeout_ms = 0;
    settings.max_head_bytes = HEAD_MAX;
    settings.max_target_bytes = TARGET_MAX;
    settings.max_body_bytes = BODY_MAX;
    settings.max_header_count = FIELDS_MAX;
    rd_list_init(&waiting);
    start(answer);
}

static void begin_server(void) {
    begin_server_for("");
}

static void end_server(void) {
    turns(2);
    serve_waiting();
    CHECK(rd_list_is_empty(&waiting));
    end();
}

/* ---- a client ---- */

static int client_fd;

static void send_bytes(const char *bytes, size_t len) {
    for (int idle = 0; len > 0 && idle < 1000; idle++) {
        const ssize_t sent = send(client_fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) return; /* a row may expect that the server has closed */
        if (sent < 0) {
            turn();
            continue;
        }
        idle = 0;
        bytes += sent;
        len -= (size_t)sent;
    }
}

#ifndef RD_WITHOUT_TLS

static const rd_transport *tls_transport;
static identity certificates[2];
static tls_client client;

static void tls_hear(void) {
    static char bytes[65536];
    peer *said = &server_said;
    ssize_t part;
    int got_now;
    while ((part = recv(client_fd, bytes, sizeof(bytes), 0)) > 0) {
        BIO_write(client.to, bytes, (int)part);
    }
    if (part == 0) said->closed = true;
    if (!SSL_is_init_finished(client.ssl)) return;
    while ((got_now = SSL_read(client.ssl, said->bytes + said->len,
                               (int)(sizeof(said->bytes) - said->len))) > 0) {
        peer_take((size_t)got_now);
    }
    ERR_clear_error();
}

static void tls_send(void) {
    char *bytes;
    const size_t len = take_ciphertext(&client, &bytes);
    send_bytes(bytes, len);
    free(bytes);
}

static int tls_join(void) {
    static const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    rd_loop_lock(&server->loop);
    joined = rd_conn_open(&server->conns, pair[0], tls_transport,
                          rd_protocol_begin(&server->conns, tls_transport, &nobody), &nobody);
    rd_conn_read_now(joined);
    rd_loop_unlock(&server->loop);
    return pair[1];
}

/* The costly part is the same for all. */
static tls_client another_client(void) {
    static tls_client first;
    if (first.shared == NULL) first = new_client("a.test");
    tls_client next = {.shared = first.shared, .ssl = SSL_new(first.shared)};
    SSL_CTX_up_ref(next.shared);
    next.to = BIO_new(BIO_s_mem());
    next.from = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(next.to, -1);
    SSL_set_bio(next.ssl, next.to, next.from);
    SSL_set_connect_state(next.ssl);
    SSL_set_tlsext_host_name(next.ssl, "a.test");
    return next;
}

static void shake_hands(void) {
    SSL_set_alpn_protos(client.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    for (int i = 0; i < 20 && SSL_do_handshake(client.ssl) != 1; i++) {
        tls_send();
        server->conns.layers.owed_ns = 0; /* how long a handshake takes must decide nothing */
        turn();
        tls_hear();
    }
    CHECK(SSL_is_init_finished(client.ssl));
    tls_send();
    turns(2);
}

static void make_tls(void) {
    char error[RD_TLS_ERROR_MAX];
    rd_tls_pair pairs[2];
    certificates[0] = new_identity((wish){.names = "DNS:a.test,DNS:*.a.test"});
    certificates[1] = new_identity((wish){.names = "DNS:b.test"});
    for (int i = 0; i < 2; i++) pairs[i] = pair_of(&certificates[i]);
    tls_transport = rd_tls_new(&(rd_tls_options){.pairs = pairs, .pair_count = 2}, error);
    CHECK(tls_transport != NULL);
}

static void free_tls(void) {
    rd_transport_unref(tls_transport);
    for (int i = 0; i < 2; i++) free_identity(&certificates[i]);
}

#endif

static void client_say(const char *bytes, size_t len) {
    if (len == 0) return;
#ifndef RD_WITHOUT_TLS
    if (is_tls) {
        SSL_write(client.ssl, bytes, (int)len);
        tls_send();
        return;
    }
#endif
    send_bytes(bytes, len);
}

static void client_hear(void) {
#ifndef RD_WITHOUT_TLS
    if (is_tls) {
        tls_hear();
        return;
    }
#endif
    peer_hear(client_fd);
}

static void client_take(void) {
    static wire arrivals;
    client_hear();
    arrivals.len = 0;
    put_arrivals(&arrivals);
    client_say(arrivals.bytes, arrivals.len);
}

static void client_open(void) {
    peer_begin();
#ifndef RD_WITHOUT_TLS
    if (is_tls) {
        client_fd = tls_join();
        client = another_client();
        shake_hands();
        return;
    }
#endif
    client_fd = join();
}

static void client_close(void) {
    close(client_fd);
#ifndef RD_WITHOUT_TLS
    if (is_tls) free_client(&client);
#endif
    turns(2);
    serve_waiting();
    peer_end();
}

/* ---- rows ---- */

/* How the bytes of a row are sent: so many at a time (0: all), or in two parts at `cut`. */
typedef struct delivery {
    const http2_rule *rule;
    size_t step, cut;
    size_t sent; /* of the row */
    bool has_failed;
} delivery;

static void send_cut(delivery *way, const wire *bytes) {
    const size_t begin = way->sent, end_of = begin + bytes->len;
    way->sent = end_of;
    if (way->cut > begin && way->cut < end_of) {
        client_say(bytes->bytes, way->cut - begin);
        turn();
        client_say(bytes->bytes + (way->cut - begin), end_of - way->cut);
        return;
    }
    const size_t step = way->step > 0 ? way->step : bytes->len;
    for (size_t at = 0; at < bytes->len; at += step) {
        client_say(bytes->bytes + at, bytes->len - at < step ? bytes->len - at : step);
        if (way->step > 0) turn();
    }
}

static void listen_for(delivery *way, const char *line, size_t len) {
    const char *wrong = "";
    for (int i = 0; i < ENOUGH && (i < 2 || wrong != NULL); i++) {
        turn();
        serve_waiting();
        client_take();
        wrong = judge(line, len, is_tls);
    }
    way->has_failed = wrong != NULL;
    CHECK_SAYS(wrong == NULL, "%s %s%s, step %zu, cut %zu, \"< %.*s\": %s; %s", way->rule->number,
               way->rule->name, is_tls ? ", TLS" : "", way->step, way->cut, (int)len, line, wrong,
               judge_story());
}

/* Returns whether it was one. */
static bool obey(const char *line) {
    if (strncmp(line, "LATER ", 6) == 0) {
        turns(2); /* what was sent comes before that */
        later((uint64_t)atoi(line + 6));
    } else if (strncmp(line, "STOP", 4) == 0) {
        rd_server_stop(server, RD_STOP_DRAIN);
        turns(2);
    } else if (strncmp(line, "EOF", 3) == 0) {
        shutdown(client_fd, SHUT_WR);
    } else {
        return false;
    }
    return true;
}

static void put_line(wire *to, const char *line, size_t len) {
    if (strncmp(line, "PONG\n", 5) == 0) {
        put_frame(to, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, server_said.ping, 8);
    } else {
        script_line(to, line, len);
    }
}

static bool is_command(const char *line) {
    return line[0] == '<' || strncmp(line, "LATER", 5) == 0 || strncmp(line, "STOP", 4) == 0 ||
           strncmp(line, "EOF", 3) == 0;
}

/* Writes the opening. Returns where the script goes on. */
static const char *begin_script(wire *to, const char *script) {
    const bool is_bare = strncmp(script, "BARE\n", 5) == 0;
    const bool is_wrong = strncmp(script, "WRONG ", 6) == 0;
    to->len = 0;
    put(to, PREFACE, strlen(PREFACE));
    if (is_wrong) to->bytes[atoi(script + 6)] ^= 1;
    if (!is_bare) put_frame(to, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    return is_bare || is_wrong || is_switched_off(script) ? strchr(script, '\n') + 1 : script;
}

/* Sends what stands before the next expectation. Returns the number of bytes of all. */
static size_t play(delivery *way) {
    static wire bytes;
    const char *end_of;
    for (const char *line = begin_script(&bytes, way->rule->script);
         *line != '\0' && !way->has_failed; line = end_of + (*end_of != '\0')) {
        end_of = strchr(line, '\n');
        if (end_of == NULL) end_of = strchr(line, '\0');
        const size_t len = (size_t)(end_of - line);
        if (!is_command(line)) {
            put_line(&bytes, line, len);
            continue;
        }
        send_cut(way, &bytes);
        bytes.len = 0;
        if (!obey(line)) listen_for(way, line + 2, len < 2 ? 0 : len - 2);
    }
    return way->sent;
}

static bool is_over(void) {
    return server_said.closed;
}

/* The request needs what heads before it have put into the table of HPACK, if anything. */
static void check_life(const delivery *way) {
    static wire bytes;
    if (way->has_failed || is_over() || strstr(way->rule->script, "STOP") != NULL) return;
    bytes.len = 0;
    script_line(&bytes, "HEADERS 401 eh =:method GET|:scheme http|+:path /alive|:authority a.test",
                strlen("HEADERS 401 eh =:method GET|:scheme http|+:path /alive|:authority a.test"));
    script_line(&bytes, "HEADERS 403 eh =:method GET|:scheme http|*62|:authority a.test",
                strlen("HEADERS 403 eh =:method GET|:scheme http|*62|:authority a.test"));
    client_say(bytes.bytes, bytes.len);
    for (int i = 0; i < ENOUGH && !peer_of(403)->ended; i++) {
        turn();
        client_take();
    }
    CHECK_SAYS(peer_of(LIFE)->ended && strcmp(peer_of(403)->body, "/alive") == 0,
               "%s %s%s: the connection is dead; %s", way->rule->number, way->rule->name,
               is_tls ? ", TLS" : "", judge_story());
}

static size_t deliver(const http2_rule *rule, size_t step, size_t cut) {
    delivery way = {.rule = rule, .step = step, .cut = cut};
    const bool needs_own = strstr(rule->script, "STOP") != NULL || is_switched_off(rule->script);
    if (needs_own) {
        end_server();
        begin_server_for(rule->script);
    }
    client_open();
    const size_t len = play(&way);
    check_life(&way);
    client_close();
    if (needs_own) {
        end_server();
        begin_server();
    }
    return way.has_failed ? 0 : len;
}

/* The opening is cut in one row, and where it is wrong: that is the same in all. A cut over TLS
 * costs a handshake, and what comes out of TLS is cut as on a plain connection: so there it is each
 * eighth offset, from another one in each row. RULES_CUT=1 in the environment cuts at all. */
static void deliver_in_all_ways(const http2_rule *rule, size_t nth, bool cuts_opening) {
    const bool cuts_everywhere = getenv("RULES_CUT") != NULL;
    const size_t opening = strlen(PREFACE) + 9;
    if (strncmp(rule->script, "WRONG", 5) == 0) cuts_opening = true;
    const size_t len = deliver(rule, 0, 0);
    if (len == 0 || settings.poll_only) return; /* what comes in which pieces is the same there */
    if (len < 20000 && deliver(rule, 1, 0) == 0) return;
    const size_t few = len < LONG ? 1 : len / 50;
    const size_t stride = is_tls && !cuts_everywhere ? 8 * few : few;
    for (size_t cut = (cuts_opening ? 1 : opening) + nth % stride; cut < len; cut += stride) {
        if (deliver(rule, 0, cut) == 0) return;
    }
}

static void deliver_all(const http2_rule *rules, size_t count) {
    const char *only = getenv("RULES_ONLY");
    for (size_t i = 0; i < count; i++) {
        if (only != NULL && strcmp(only, rules[i].number) != 0) continue;
        deliver_in_all_ways(&rules[i], i, rules == http2_rules && i == 0);
    }
}

static void test_rules(void) {
    begin_server();
    deliver_all(http2_rules, http2_rule_count);
    deliver_all(http2_head_rules, http2_head_rule_count);
    deliver_all(http2_request_rules, http2_request_rule_count);
    end_server();
}

#ifndef RD_WITHOUT_TLS

static void check_protocol(const char *cipher, const char *expected) {
    const unsigned char *name;
    unsigned len;
    peer_begin();
    client_fd = tls_join();
    client = another_client();
    SSL_set_max_proto_version(client.ssl, TLS1_2_VERSION);
    SSL_set_cipher_list(client.ssl, cipher);
    shake_hands();
    SSL_get0_alpn_selected(client.ssl, &name, &len);
    CHECK_BYTES((const char *)name, len, expected);
    client_close();
}

/* Ciphers without AEAD, or without forward secrecy, are for HTTP/1.1. */
static void test_ciphers(void) {
    char error[RD_TLS_ERROR_MAX];
    const rd_transport *before = tls_transport;
    const rd_tls_pair pair = pair_of(&certificates[0]);
    tls_transport = rd_tls_new(&(rd_tls_options){.pairs = &pair,
                                                 .pair_count = 1,
                                                 .ciphers = "ECDHE-ECDSA-AES128-SHA256:"
                                                            "ECDHE-ECDSA-AES128-GCM-SHA256"},
                               error);
    CHECK(tls_transport != NULL);
    begin_server();
    check_protocol("ECDHE-ECDSA-AES128-GCM-SHA256", "h2");
    check_protocol("ECDHE-ECDSA-AES128-SHA256", "http/1.1");
    end_server();
    rd_transport_unref(tls_transport);
    tls_transport = before;
}

#endif

static void test_all(void) {
    is_tls = false;
    test_rules();
#ifndef RD_WITHOUT_TLS
    is_tls = true;
    test_rules();
    test_ciphers();
#endif
}

int main(void) {
    idle_us = 0; /* what was sent to one end of a pair is there */
    memset(big, 'b', sizeof(big));
    memset(long_value, 'v', sizeof(long_value));
#ifndef RD_WITHOUT_TLS
    make_tls();
#endif
    const int result = test_both_pollers(test_all);
#ifndef RD_WITHOUT_TLS
    free_tls();
#endif
    return result;
}

/* SPDX-License-Identifier: MIT
 *
 * The WebSocket client of the benchmarks: one thread that opens thousands of them and does what the
 * lines on its standard input say, each answered with a line of JSON, so that push.rb can look at
 * the server between two of them. Every message carries a number, and what does not arrive, arrives
 * twice or was never sent is counted. Its parts: push_client_frames.c, push_client_sockets.c
 * (opening), client_bystander.c (HTTP at the same time). Loopback only. */
#include "client_base.h"
#include "client_bystander.h"
#include "load/latency.h"
#include "push_client_frames.h"
#include "push_client_sockets.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_SOCKETS = 20000, EVENTS = 32, RECV_BYTES = 262144, MOST_BYTES = 65535, DIGITS = 10 };
enum { COMMAND_SECONDS = 60, CHAT_SPAN = 10000000, MOST_CHATTERS = 256 };

typedef enum rd_game { RD_PUBLISH, RD_ECHO, RD_CHAT } rd_game;

/* What one command counted. */
typedef struct rd_tally {
    uint64_t delivered, missing, doubled, strange, lost;
    uint64_t begun_ns, ended_ns, http_answers, http_errors;
    rd_latency first, last, wait;
} rd_tally;

typedef struct rd_push {
    unsigned port;
    uint64_t patience_ns; /* without any delivery */
    int poller;
    rd_socket *sockets; /* connections that are read */
    unsigned count;
    rd_socket control; /* fd -1 until a message is published */
    rd_game game;
    bool stopping;
    size_t bytes;                /* of each message */
    uint32_t published;          /* number of the next message */
    uint32_t *chat_next;         /* for each reader the next number of each sender */
    uint64_t expected, asked_ns; /* of the publishing that is running */
    uint64_t first_ns, last_ns;
    bool has_bystander;
    rd_bystander bystander;
    rd_tally tally;
} rd_push;

static unsigned char receive_buf[RECV_BYTES], payload_buf[MOST_BYTES + 1];
static unsigned char send_buf[1 << 20];

/* ---- messages ---- */

/* Writes a message with that number as a frame. Returns its bytes. */
static size_t message_write(unsigned char *to, uint32_t number, size_t bytes) {
    memset(payload_buf, 'x', bytes);
    for (unsigned i = DIGITS; i > 0; i--) {
        payload_buf[i - 1] = (unsigned char)('0' + number % 10);
        number /= 10;
    }
    return rd_frame_write(to, RD_FRAME_TEXT, payload_buf, bytes);
}

static bool number_read(const rd_push *push, const rd_frame *frame, uint32_t *number) {
    if (frame->len != push->bytes || frame->kept < DIGITS) return false;
    *number = 0;
    for (unsigned i = 0; i < DIGITS; i++) {
        unsigned digit = frame->payload[i] - (unsigned)'0';
        if (digit > 9) return false;
        *number = *number * 10 + digit;
    }
    return true;
}

/* Compares with the number that must come next, and expects the following one from then on. */
static void number_count(rd_tally *tally, uint32_t *next, uint32_t number) {
    if (number < *next) {
        tally->doubled++;
        return;
    }
    tally->missing += number - *next;
    tally->delivered++;
    *next = number + 1;
}

static void message_came(rd_push *push, rd_socket *socket, const rd_frame *frame) {
    rd_tally *tally = &push->tally;
    uint32_t number, *next = &socket->next;
    if (!number_read(push, frame, &number)) {
        tally->strange++;
        return;
    }
    if (push->game == RD_CHAT) {
        uint32_t sender = number / CHAT_SPAN;
        if (sender >= push->count) {
            tally->strange++;
            return;
        }
        next = &push->chat_next[socket->index * push->count + sender];
        number %= CHAT_SPAN;
    }
    number_count(tally, next, number);
    if (push->game == RD_ECHO) {
        rd_latency_add(&tally->wait, rd_client_now_ns() - socket->sent_ns);
        socket->owes = !push->stopping;
    } else if (push->game == RD_PUBLISH && !push->first_ns) {
        push->first_ns = rd_client_now_ns();
    }
}

/* ---- the turn ---- */

static void socket_lost(rd_push *push, rd_socket *socket) {
    push->tally.lost++;
    rd_socket_abort(socket);
}

static bool frame_came(rd_push *push, rd_socket *socket, const rd_frame *frame) {
    if (frame->opcode == RD_FRAME_TEXT || frame->opcode == RD_FRAME_BINARY) {
        message_came(push, socket, frame);
    } else if (frame->opcode == RD_FRAME_PING) {
        unsigned char pong[RD_FRAME_KEPT + RD_FRAME_MOST_HEAD];
        size_t len = rd_frame_write(pong, RD_FRAME_PONG, frame->payload, frame->kept);
        return rd_socket_send(socket, pong, len);
    }
    return frame->opcode != RD_FRAME_CLOSE;
}

static void socket_read(rd_push *push, rd_socket *socket) {
    if (socket->fd < 0) return;
    ssize_t got = recv(socket->fd, receive_buf, sizeof receive_buf, MSG_DONTWAIT);
    bool good = got > 0;
    for (size_t at = 0, used; good && at < (size_t)got; at += used) {
        rd_frame frame;
        rd_frame_progress progress =
            rd_frame_take(&socket->reader, receive_buf + at, (size_t)got - at, &used, &frame);
        good = progress != RD_FRAME_BAD;
        if (progress == RD_FRAME_WHOLE) good = frame_came(push, socket, &frame);
    }
    if (!good)
        socket_lost(push, socket);
    else if (push->game == RD_PUBLISH && !push->has_bystander)
        rd_socket_acknowledge(socket);
}

static void echo_send(rd_push *push, rd_socket *socket) {
    size_t len = message_write(send_buf, socket->next, push->bytes);
    socket->owes = false;
    socket->sent_ns = rd_client_now_ns();
    if (!rd_socket_send(socket, send_buf, len)) socket_lost(push, socket);
}

/* Small batches, so that the bystander never waits for this client. */
static void turn(rd_push *push, int timeout_ms) {
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(push->poller, events, EVENTS, timeout_ms);
    if (push->has_bystander) rd_bystander_turn(&push->bystander);
    for (int i = 0; i < ready; i++)
        if (events[i].data.ptr != &push->bystander) socket_read(push, events[i].data.ptr);
    if (push->game != RD_ECHO) return;
    for (int i = 0; i < ready; i++) {
        rd_socket *socket = events[i].data.ptr;
        if (socket->owes && socket->fd >= 0) echo_send(push, socket);
    }
}

static uint64_t settled(const rd_push *push) {
    return push->tally.delivered + push->tally.missing;
}

/* Returns false if nothing has come for a while and messages are still expected. */
static bool all_came(rd_push *push) {
    uint64_t seen = push->tally.delivered, since = rd_client_now_ns();
    while (settled(push) < push->expected) {
        turn(push, 10);
        uint64_t now = rd_client_now_ns();
        if (push->tally.delivered != seen)
            seen = push->tally.delivered, since = now;
        else if (now - since > push->patience_ns)
            return false;
    }
    return true;
}

/* Messages that were sent twice come late. */
static void stragglers_read(rd_push *push) {
    uint64_t until = rd_client_now_ns() + 20000000u;
    push->stopping = true;
    while (rd_client_now_ns() < until) turn(push, 5);
    if (settled(push) < push->expected) push->tally.missing += push->expected - settled(push);
}

/* ---- commands ---- */

static void watch(rd_push *push, int fd, void *who) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = who};
    if (epoll_ctl(push->poller, EPOLL_CTL_ADD, fd, &event) < 0) rd_client_fail("epoll_ctl");
}

static void command_begin(rd_push *push, rd_game game, unsigned bytes) {
    if (bytes < DIGITS || bytes > MOST_BYTES) rd_client_fail("a message has 10 to 65535 bytes");
    push->game = game;
    push->bytes = bytes;
    push->stopping = false;
    push->expected = 0;
    memset(&push->tally, 0, sizeof push->tally);
    push->tally.begun_ns = rd_client_now_ns();
}

/* A stalled one is opened with a small buffer and never read. */
static void command_open(rd_push *push, unsigned count, const char *path, bool greeted,
                         bool stalled) {
    if (count > MOST_SOCKETS - push->count) rd_client_fail("too many sockets");
    rd_socket *sockets = push->sockets + push->count;
    unsigned open = rd_sockets_open(sockets, count, push->port, path, greeted, stalled ? 4096 : 0);
    printf("{\"open\": %u, \"errors\": %u}\n", open, count - open);
    for (unsigned i = 0; i < count && !stalled; i++) {
        if (sockets[i].fd < 0) continue;
        sockets[i].index = push->count + i;
        sockets[i].next = push->published;
        watch(push, sockets[i].fd, &sockets[i]);
    }
    if (!stalled) push->count += count;
}

static bool publish_once(rd_push *push, unsigned messages) {
    char order[64];
    unsigned char frame[sizeof order + RD_FRAME_MOST_HEAD];
    int len = snprintf(order, sizeof order, "%u %zu %u", messages, push->bytes, push->published);
    size_t bytes = rd_frame_write(frame, RD_FRAME_TEXT, order, (size_t)len);
    push->published += messages;
    push->expected += (uint64_t)messages * push->count;
    push->first_ns = 0;
    push->asked_ns = rd_client_now_ns();
    if (!rd_socket_send(&push->control, frame, bytes) || !all_came(push)) return false;
    rd_latency_add(&push->tally.first, push->first_ns - push->asked_ns);
    rd_latency_add(&push->tally.last, rd_client_now_ns() - push->asked_ns);
    return true;
}

static void bystander_begin(rd_push *push, unsigned rate) {
    push->has_bystander = rate > 0;
    if (!rate) return;
    rd_bystander_open(&push->bystander, push->port, RD_TLS_OFF);
    rd_bystander_begin(&push->bystander, rate, RD_HELLO_REQUEST, RD_HELLO_BYTES);
    watch(push, push->bystander.poller, &push->bystander);
}

static void bystander_end(rd_push *push) {
    if (!push->has_bystander) return;
    rd_bystander_end(&push->bystander);
    rd_bystander_close(&push->bystander);
    push->has_bystander = false;
    push->tally.http_answers = push->bystander.answered;
    push->tally.http_errors = push->bystander.errors;
    push->tally.wait = push->bystander.latency;
}

/* This many messages at once, this many times. Each round begins when all have got the messages of
 * the last one and the interval is over; `rate` HTTP requests a second meanwhile. */
static void command_publish(rd_push *push, unsigned messages, unsigned times, unsigned interval_ms,
                            unsigned rate) {
    if (push->control.fd < 0) {
        rd_sockets_open(&push->control, 1, push->port, "/control", true, 0);
        if (push->control.fd < 0) rd_client_fail("no control connection");
        watch(push, push->control.fd, &push->control);
    }
    /* With a bystander no costs are measured, and this client must not be the slow part. */
    for (unsigned i = 0; i < push->count && rate == 0; i++)
        if (push->sockets[i].fd >= 0) rd_socket_delay_acknowledgement(&push->sockets[i]);
    bystander_begin(push, rate);
    for (unsigned i = 0; i < times; i++) {
        uint64_t due = rd_client_now_ns() + interval_ms * UINT64_C(1000000);
        if (!publish_once(push, messages)) break;
        while (rd_client_now_ns() < due) turn(push, 10);
    }
    push->tally.ended_ns = rd_client_now_ns();
    bystander_end(push);
    stragglers_read(push);
}

static void command_echo(rd_push *push, double seconds) {
    uint64_t due = push->tally.begun_ns + (uint64_t)(seconds * 1e9);
    for (unsigned i = 0; i < push->count; i++) {
        push->sockets[i].next = 0;
        if (push->sockets[i].fd >= 0) echo_send(push, &push->sockets[i]);
    }
    while (rd_client_now_ns() < due) turn(push, 10);
    push->tally.ended_ns = rd_client_now_ns();
    uint64_t counted = push->tally.delivered;
    push->stopping = true;
    push->expected = counted + push->count;
    all_came(push);
    stragglers_read(push);
}

static bool chat_round(rd_push *push, unsigned batch, uint32_t from) {
    for (unsigned i = 0; i < push->count; i++) {
        size_t len = 0;
        for (unsigned j = 0; j < batch; j++)
            len += message_write(send_buf + len, i * CHAT_SPAN + from + j, push->bytes);
        if (push->sockets[i].fd < 0 || !rd_socket_send(&push->sockets[i], send_buf, len))
            return false;
    }
    push->expected += (uint64_t)batch * push->count * push->count;
    return all_came(push);
}

/* As in the well-known chat of 32 clients: each sends its messages, and when all have got them,
 * each sends again. */
static void command_chat(rd_push *push, double seconds, unsigned batch) {
    uint64_t due = push->tally.begun_ns + (uint64_t)(seconds * 1e9);
    if (push->count > MOST_CHATTERS || batch * (push->bytes + RD_FRAME_MOST_HEAD) > sizeof send_buf)
        rd_client_fail("too much of a chat");
    push->chat_next = calloc((size_t)push->count * push->count, sizeof *push->chat_next);
    if (!push->chat_next) rd_client_fail("out of memory");
    uint32_t from = 0;
    do {
        if (!chat_round(push, batch, from)) break;
        from += batch;
    } while (rd_client_now_ns() < due && from + batch < CHAT_SPAN);
    push->tally.ended_ns = rd_client_now_ns();
    stragglers_read(push);
    free(push->chat_next);
}

static void report(const rd_tally *tally) {
    typedef unsigned long long ull;
    printf("{\"deliveries\": %llu, \"missing\": %llu, \"doubled\": %llu, \"strange\": %llu, "
           "\"lost\": %llu, \"seconds\": %.6f, \"first_us\": %.1f, \"last_us\": %.1f, "
           "\"last_longest_us\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"longest_us\": %.1f, "
           "\"http_answers\": %llu, \"http_errors\": %llu}\n",
           (ull)tally->delivered, (ull)tally->missing, (ull)tally->doubled, (ull)tally->strange,
           (ull)tally->lost, (double)(tally->ended_ns - tally->begun_ns) / 1e9,
           rd_latency_percentile_us(&tally->first, 0.5),
           rd_latency_percentile_us(&tally->last, 0.5), (double)tally->last.longest_ns / 1e3,
           rd_latency_percentile_us(&tally->wait, 0.5),
           rd_latency_percentile_us(&tally->wait, 0.99), (double)tally->wait.longest_ns / 1e3,
           (ull)tally->http_answers, (ull)tally->http_errors);
}

static const char *const USAGE =
    "usage: push_client [--pin CPU] [--patience MS] PORT, then lines on standard input:\n"
    "  open COUNT PATH        WebSockets that are greeted with a message once they are subscribed\n"
    "  idle COUNT PATH        WebSockets that are not\n"
    "  stall COUNT PATH       like open, but nobody will ever read them\n"
    "  publish BYTES MESSAGES TIMES INTERVAL_MS HTTP_PER_SECOND\n"
    "  echo BYTES SECONDS     on each, one message after the other\n"
    "  chat BYTES SECONDS MESSAGES\n";

static void command_run(rd_push *push, const char *line) {
    unsigned count, bytes, times, interval_ms, rate;
    double seconds;
    char path[256], verb[8];
    if (sscanf(line, "publish %u %u %u %u %u", &bytes, &count, &times, &interval_ms, &rate) == 5) {
        command_begin(push, RD_PUBLISH, bytes);
        command_publish(push, count, times, interval_ms, rate);
        report(&push->tally);
    } else if (sscanf(line, "echo %u %lf", &bytes, &seconds) == 2) {
        command_begin(push, RD_ECHO, bytes);
        command_echo(push, seconds);
        report(&push->tally);
    } else if (sscanf(line, "chat %u %lf %u", &bytes, &seconds, &count) == 3) {
        command_begin(push, RD_CHAT, bytes);
        command_chat(push, seconds, count);
        report(&push->tally);
    } else if (sscanf(line, "%7[a-z] %u %255s", verb, &count, path) == 3) {
        command_open(push, count, path, strcmp(verb, "idle") != 0, strcmp(verb, "stall") == 0);
    } else {
        rd_client_fail(USAGE);
    }
}

int main(int argc, char **argv) {
    static rd_push push = {.control = {.fd = -1}, .patience_ns = RD_CLIENT_PATIENCE_NS};
    char line[512];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--pin") == 0 && i + 1 < argc)
            rd_client_pin(argv[++i]);
        else if (strcmp(argv[i], "--patience") == 0 && i + 1 < argc)
            push.patience_ns = strtoul(argv[++i], NULL, 10) * UINT64_C(1000000);
        else
            push.port = (unsigned)strtoul(argv[i], NULL, 10);
    }
    if (push.port == 0 || push.port > 65535) rd_client_fail(USAGE);
    push.sockets = calloc(MOST_SOCKETS, sizeof *push.sockets);
    push.poller = epoll_create1(EPOLL_CLOEXEC);
    if (!push.sockets || push.poller < 0) rd_client_fail("cannot begin");
    while (fgets(line, sizeof line, stdin)) {
        alarm(COMMAND_SECONDS); /* a command that hangs ends the client, and the client's end ends
                                   its scenario */
        command_run(&push, line);
        alarm(0);
        fflush(stdout);
    }
    for (unsigned i = 0; i < push.count; i++)
        if (push.sockets[i].fd >= 0) rd_socket_abort(&push.sockets[i]);
    return 0;
}

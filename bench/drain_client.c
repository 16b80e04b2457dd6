/* SPDX-License-Identifier: MIT
 *
 * The clients of drain.rb: many event streams or WebSockets at a server that stops. Each comes back
 * to another server: a stream after the time that it was told (3 s without one, as Chrome), a
 * WebSocket after 10 ms, as Phoenix's. Meanwhile a thread asks the other server for a page every
 * millisecond.
 *
 *   drain_client OLD_PORT NEW_PORT CLIENTS stream|websocket
 *
 * Says "open" when all are there. A line on stdin: the server is told to stop now. Ends when all
 * have come back, with a line of JSON: ends and returns for each tenth of a second, and waits for
 * the page in microseconds, before the stop and from then on. Loopback only.
 */
#include "client_base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 256, TENTHS = 1200, WAITS = 200000, USUAL_RETRY_MS = 3000, EAGER_MS = 10 };

#define STREAM "GET /news HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n"
#define WEBSOCKET                                                                                  \
    "GET /news HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"               \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define PAGE "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

#define MS_NS    UINT64_C(1000000)
#define TENTH_NS (100 * MS_NS)
#define AGAIN_NS (1000 * MS_NS) /* after a refused connection */

typedef enum rd_phase { AT_OLD, AWAY, COMING, AT_NEW } rd_phase;

typedef struct rd_visitor {
    int fd;
    rd_phase phase;
    bool has_head;
    unsigned retry_ms;
    uint64_t due_ns; /* AWAY: when it comes back */
} rd_visitor;

typedef struct rd_waits {
    unsigned count;
    unsigned us[WAITS];
} rd_waits;

static struct {
    unsigned old_port, new_port, count;
    bool is_websocket;
    int poller;
    rd_visitor *all;
    unsigned open, back, refused;
    unsigned ends[TENTHS], returns[TENTHS];
    unsigned codes[2]; /* of Closes: 1001, 1012 */
    uint64_t stopped_ns;
} crowd;

static rd_waits waits[2]; /* before the stop, and after it */
static atomic_bool has_stopped, is_over;

static void note(unsigned *tenths) {
    const uint64_t tenth = (rd_client_now_ns() - crowd.stopped_ns) / TENTH_NS;
    if (tenth < TENTHS) tenths[tenth]++;
}

/* ---- the page ---- */

static void *ask_for_pages(void *unused) {
    char answer[4096];
    const int fd = rd_client_connect(crowd.new_port, 0);
    if (fd < 0) rd_client_fail("the other server");
    (void)unused;
    while (!atomic_load(&is_over)) {
        const uint64_t since = rd_client_now_ns();
        if (send(fd, PAGE, sizeof(PAGE) - 1, 0) < 0 || recv(fd, answer, sizeof(answer), 0) <= 0) {
            rd_client_fail("a page");
        }
        rd_waits *to = &waits[atomic_load(&has_stopped)];
        if (to->count < WAITS) {
            to->us[to->count++] = (unsigned)((rd_client_now_ns() - since) / 1000);
        }
        usleep(1000);
    }
    return NULL;
}

static int by_size(const void *a, const void *b) {
    const unsigned one = *(const unsigned *)a, other = *(const unsigned *)b;
    return (one > other) - (one < other);
}

static void print_waits(const char *name, rd_waits *of) {
    qsort(of->us, of->count, sizeof(of->us[0]), by_size);
    const unsigned last = of->count > 0 ? of->count - 1 : 0;
    printf(",\"%s\":{\"count\":%u,\"p50\":%u,\"p99\":%u,\"max\":%u}", name, of->count,
           of->us[of->count / 2], of->us[of->count * 99 / 100], of->us[last]);
}

/* ---- the crowd ---- */

static void watch(rd_visitor *visitor, unsigned interest, int how) {
    struct epoll_event event = {.events = interest, .data.ptr = visitor};
    if (epoll_ctl(crowd.poller, how, visitor->fd, &event) != 0) rd_client_fail("epoll_ctl");
}

static void ask(rd_visitor *visitor) {
    const char *request = crowd.is_websocket ? WEBSOCKET : STREAM;
    if (send(visitor->fd, request, strlen(request), MSG_NOSIGNAL) < 0) rd_client_fail("send");
}

static void arrive(rd_visitor *visitor) {
    visitor->fd = rd_client_connect(crowd.old_port, 0);
    if (visitor->fd < 0) rd_client_fail("the server");
    ask(visitor);
    fcntl(visitor->fd, F_SETFL, O_NONBLOCK);
    watch(visitor, EPOLLIN, EPOLL_CTL_ADD);
}

static void go_away(rd_visitor *visitor, uint64_t for_ns) {
    close(visitor->fd);
    visitor->phase = AWAY;
    visitor->due_ns = rd_client_now_ns() + for_ns;
    visitor->has_head = false;
}

static void come_back(rd_visitor *visitor) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)crowd.new_port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    visitor->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    visitor->phase = COMING;
    if (connect(visitor->fd, (struct sockaddr *)&to, sizeof(to)) != 0 && errno != EINPROGRESS) {
        crowd.refused++;
        go_away(visitor, AGAIN_NS);
        return;
    }
    watch(visitor, EPOLLOUT, EPOLL_CTL_ADD);
}

static void on_connected(rd_visitor *visitor) {
    int error = 0;
    socklen_t len = sizeof(error);
    getsockopt(visitor->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        crowd.refused++;
        go_away(visitor, AGAIN_NS);
        return;
    }
    ask(visitor);
    watch(visitor, EPOLLIN, EPOLL_CTL_MOD);
}

static void on_head(rd_visitor *visitor) {
    visitor->has_head = true;
    if (visitor->phase == AT_OLD) {
        crowd.open++;
    } else {
        visitor->phase = AT_NEW;
        crowd.back++;
        note(crowd.returns);
    }
}

/* What comes behind the head is short: a retry, or a Close. */
static void on_words(rd_visitor *visitor, const char *bytes, size_t len) {
    const char *retry = strstr(bytes, "retry: ");
    if (retry != NULL) visitor->retry_ms = (unsigned)strtoul(retry + 7, NULL, 10);
    if (!crowd.is_websocket || len < 4 || bytes[0] != (char)0x88) return;
    const unsigned code = (unsigned)(unsigned char)bytes[2] << 8 | (unsigned char)bytes[3];
    static const char answer[] = {(char)0x88, (char)0x82, 0, 0, 0, 0, 3, (char)0xe8};
    crowd.codes[code == 1012]++;
    send(visitor->fd, answer, sizeof(answer), MSG_NOSIGNAL);
}

static void on_end(rd_visitor *visitor) {
    if (visitor->phase != AT_OLD) rd_client_fail("the other server has ended a connection");
    note(crowd.ends);
    const unsigned usual = crowd.is_websocket ? EAGER_MS : USUAL_RETRY_MS;
    go_away(visitor, (visitor->retry_ms > 0 ? visitor->retry_ms : usual) * MS_NS);
}

static void on_readable(rd_visitor *visitor) {
    char bytes[4096];
    const ssize_t len = recv(visitor->fd, bytes, sizeof(bytes) - 1, 0);
    if (len < 0 && errno == EAGAIN) return;
    if (len <= 0) {
        on_end(visitor);
        return;
    }
    bytes[len] = '\0';
    if (visitor->has_head) {
        on_words(visitor, bytes, (size_t)len);
    } else if (strstr(bytes, "\r\n\r\n") != NULL) {
        on_head(visitor);
    }
}

static void turn(int timeout_ms) {
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(crowd.poller, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) {
        rd_visitor *visitor = events[i].data.ptr;
        if (visitor == NULL) {
            char line[16];
            if (read(0, line, sizeof(line)) <= 0) rd_client_fail("stdin has ended");
            crowd.stopped_ns = rd_client_now_ns();
            atomic_store(&has_stopped, true);
        } else if (visitor->phase == COMING && events[i].events & EPOLLOUT) {
            on_connected(visitor);
        } else if (visitor->phase != AWAY) {
            on_readable(visitor);
        }
    }
    const uint64_t now = rd_client_now_ns();
    for (unsigned i = 0; i < crowd.count; i++) {
        if (crowd.all[i].phase == AWAY && crowd.all[i].due_ns <= now) come_back(&crowd.all[i]);
    }
}

/* ---- the report ---- */

static void print_tenths(const char *name, const unsigned *tenths) {
    unsigned last = TENTHS;
    while (last > 0 && tenths[last - 1] == 0) last--;
    printf("\"%s\":[", name);
    for (unsigned i = 0; i < last; i++) printf("%s%u", i > 0 ? "," : "", tenths[i]);
    printf("],");
}

static void report(void) {
    printf("{");
    print_tenths("ends", crowd.ends);
    print_tenths("returns", crowd.returns);
    printf("\"refused\":%u,\"closes_1001\":%u,\"closes_1012\":%u", crowd.refused, crowd.codes[0],
           crowd.codes[1]);
    print_waits("before", &waits[0]);
    print_waits("after", &waits[1]);
    printf("}\n");
}

int main(int argc, char **argv) {
    if (argc != 5) rd_client_fail("drain_client OLD_PORT NEW_PORT CLIENTS stream|websocket");
    crowd.old_port = (unsigned)atoi(argv[1]);
    crowd.new_port = (unsigned)atoi(argv[2]);
    crowd.count = (unsigned)atoi(argv[3]);
    crowd.is_websocket = strcmp(argv[4], "websocket") == 0;
    crowd.poller = epoll_create1(0);
    crowd.all = calloc(crowd.count, sizeof(*crowd.all));
    if (crowd.all == NULL) rd_client_fail("memory");
    for (unsigned i = 0; i < crowd.count; i++) {
        arrive(&crowd.all[i]);
        turn(0);
    }
    while (crowd.open < crowd.count) turn(100);
    pthread_t pages;
    pthread_create(&pages, NULL, ask_for_pages, NULL);
    puts("open");
    fflush(stdout);
    struct epoll_event line = {.events = EPOLLIN};
    if (epoll_ctl(crowd.poller, EPOLL_CTL_ADD, 0, &line) != 0) rd_client_fail("stdin");
    while (crowd.back < crowd.count) turn(1);
    atomic_store(&is_over, true);
    pthread_join(pages, NULL);
    report();
    return 0;
}

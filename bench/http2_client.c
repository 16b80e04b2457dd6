/* SPDX-License-Identifier: MIT
 *
 * The load client for HTTP/2: a closed loop over N connections with M streams each on one thread,
 * with HTTP/1.1 connections, a download on each connection and PINGs beside them if asked. Counts
 * the answers of each connection, the waits and the longest. The end of stdin ends it with --told;
 * each line there prints what was counted since the line before. Started by measure.rb; by hand:
 * http2_client --help. Loopback only: it is no tool to point at anybody else's machine. */
#include "http2_client.h"
#include "client_base.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EVENTS = 64, MAX_STREAMS = 1000, SWEEP_MS = 10 };

#define END_NS UINT64_C(5000000000) /* how long answers are awaited when time is over */

static rd_client client;
static rd_streams_conn *streams;
static rd_plain_conn *plains;
static uint64_t started_ns, stopped_ns;

/* ---- counts ---- */

bool rd_client_may_ask(rd_client *of) {
    if (of->stopping || (of->plan.limit && of->issued >= of->plan.limit)) return false;
    of->issued++;
    return true;
}

void rd_tally_answer(rd_tally *tally, rd_score *score, bool is_2xx, uint64_t body_bytes,
                     uint64_t waited_ns) {
    rd_latency_add(&tally->latency, waited_ns);
    tally->completed++;
    if (!is_2xx) tally->non_2xx++;
    if (body_bytes < tally->body_min) tally->body_min = body_bytes;
    if (body_bytes > tally->body_max) tally->body_max = body_bytes;
    score->completed++;
    score->last_body = body_bytes;
}

static uint64_t answered(void) {
    return client.streams.completed + client.beside.completed;
}

static unsigned waiting(void) {
    return rd_streams_waiting(streams, client.plan.connections) +
           rd_plain_waiting(plains, client.plan.beside);
}

static void count_waits(bool lost) {
    rd_streams_count_waits(streams, client.plan.connections, lost);
    rd_plain_count_waits(plains, client.plan.beside, lost);
}

/* ---- the report ---- */

typedef unsigned long long ull;

typedef struct rd_share {
    uint64_t min, max, sum;
} rd_share;

/* The part of the report about each connection, whose counts begin anew. */
static rd_share print_shares(unsigned count, bool of_streams) {
    rd_share share = {.min = count > 0 ? UINT64_MAX : 0};
    printf(", \"conns\": [");
    for (unsigned i = 0; i < count; i++) {
        rd_score *score = of_streams ? rd_streams_score(streams, i) : rd_plain_score(plains, i);
        const uint64_t done = score->completed;
        printf("%s[%llu, %llu]", i > 0 ? ", " : "", (ull)done, (ull)score->last_body);
        share.min = done < share.min ? done : share.min;
        share.max = done > share.max ? done : share.max;
        share.sum += done;
        *score = (rd_score){0};
    }
    printf("], \"conn_min\": %llu, \"conn_max\": %llu", (ull)share.min, (ull)share.max);
    return share;
}

static void print_waits(const char *before, const rd_latency *latency) {
    printf("\"%sp50_us\": %.2f, \"%sp99_us\": %.2f, \"%slongest_us\": %.2f", before,
           rd_latency_percentile_us(latency, 0.50), before, rd_latency_percentile_us(latency, 0.99),
           before, (double)latency->longest_ns / 1000.0);
}

static double cpu_us(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void print_tally(const rd_tally *tally) {
    printf("\"requests\": %llu, \"bytes_in\": %llu, \"body_min\": %llu, \"body_max\": %llu, "
           "\"non_2xx\": %llu, \"errors\": %llu, \"refused\": %llu, ",
           (ull)tally->completed, (ull)tally->bytes_in,
           (ull)(tally->completed ? tally->body_min : 0), (ull)tally->body_max, (ull)tally->non_2xx,
           (ull)tally->errors, (ull)tally->refused);
    print_waits("", &tally->latency);
}

static void report(void) {
    const double seconds = (double)(stopped_ns - started_ns) / 1e9;
    const double used = cpu_us() / (double)(answered() ? answered() : 1);
    printf("{");
    print_tally(&client.streams);
    const rd_share own = print_shares(client.plan.connections, true);
    printf(", \"connect_errors\": %llu, \"seconds\": %.4f, \"rps\": %.1f, \"pings\": %llu, ",
           (ull)client.connect_errors, seconds, (double)own.sum / (seconds > 0 ? seconds : 1),
           (ull)client.pings.count);
    print_waits("ping_", &client.pings);
    printf(", \"downloads\": %llu, \"download_bytes\": %llu, \"beside\": {", (ull)client.downloads,
           (ull)client.download_bytes);
    print_tally(&client.beside);
    const rd_share others = print_shares(client.plan.beside, false);
    const uint64_t all = own.sum + others.sum;
    printf("}, \"part_beside\": %.5f, \"client_cpu_us\": %.3f, \"unclosed\": 0, \"skipped\": 0, "
           "\"skipped_seconds\": 0.0}\n",
           (double)others.sum / (double)(all ? all : 1), used);
    fflush(stdout);
}

static void clear_counts(uint64_t now) {
    client.streams = client.beside = (rd_tally){.body_min = UINT64_MAX};
    client.pings = (rd_latency){0};
    client.downloads = client.download_bytes = client.connect_errors = 0;
    started_ns = now;
}

/* ---- the loop ---- */

static void sweep(uint64_t now) {
    if (client.stopping) return;
    rd_streams_sweep(streams, client.plan.connections, now);
    rd_plain_sweep(plains, client.plan.beside);
}

/* Returns whether stdin has ended. */
static bool on_stdin(void) {
    char line[64];
    if (read(STDIN_FILENO, line, sizeof line) <= 0) return true;
    stopped_ns = rd_client_now_ns();
    count_waits(false);
    report();
    clear_counts(stopped_ns);
    return false;
}

/* Returns whether stdin has ended. */
static bool turn(void) {
    struct epoll_event events[EVENTS];
    bool is_over = false;
    const int count = epoll_wait(client.poller, events, EVENTS, SWEEP_MS);
    for (int i = 0; i < count; i++) {
        rd_wire *wire = events[i].data.ptr;
        if (wire == NULL)
            is_over = on_stdin();
        else if (wire->fd >= 0)
            wire->on_ready(wire);
    }
    return is_over;
}

static bool is_complete(void) {
    return client.plan.limit &&
           answered() + client.streams.errors + client.beside.errors + client.streams.refused >=
               client.plan.limit;
}

static void run(void) {
    uint64_t now = rd_client_now_ns(), swept = 0;
    const uint64_t until =
        client.plan.told ? UINT64_MAX : now + (uint64_t)(client.plan.seconds * 1e9);
    clear_counts(now);
    for (bool is_over = false; !is_over && now < until && !is_complete();) {
        if (now - swept > SWEEP_MS * UINT64_C(1000000)) sweep(swept = now);
        is_over = turn();
        now = rd_client_now_ns();
    }
    stopped_ns = now;
    client.stopping = true;
    if (client.plan.told) return;
    while (waiting() > 0 && rd_client_now_ns() < stopped_ns + END_NS) turn();
    count_waits(true);
    report();
}

/* One request on each connection; they stay open until stdin ends. */
static void run_idle(void) {
    const uint64_t until = rd_client_now_ns() + 3 * RD_CLIENT_PATIENCE_NS;
    clear_counts(rd_client_now_ns());
    while (answered() < client.plan.connections && rd_client_now_ns() < until) {
        sweep(rd_client_now_ns());
        turn();
    }
    printf("{\"idle\": %llu}\n", (ull)answered());
    fflush(stdout);
    char rest;
    while (read(STDIN_FILENO, &rest, 1) > 0) continue;
}

/* ---- the command line ---- */

static const struct option OPTIONS[] = {
    {"tls", no_argument, NULL, 't'},          {"told", no_argument, NULL, 'o'},
    {"idle", required_argument, NULL, 'i'},   {"pin", required_argument, NULL, 'p'},
    {"beside", required_argument, NULL, 'b'}, {"body", required_argument, NULL, 'y'},
    {"ping", required_argument, NULL, 'g'},   {"download", required_argument, NULL, 'w'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};

_Noreturn static void usage(void) {
    fprintf(stderr, "usage: http2_client [-c connections] [-m streams] [-d seconds] [-n requests] "
                    "[--tls] [--pin CPU] [--beside connections] [--body bytes] [--ping ms] "
                    "[--download path] [--told] [--idle connections] 127.0.0.1:port/path\n");
    exit(2);
}

static void take_option(rd_plan *plan, int option) {
    const unsigned number = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    switch (option) {
    case 'c':
        plan->connections = number;
        break;
    case 'm':
        plan->streams = number;
        break;
    case 'd':
        plan->seconds = strtod(optarg, NULL);
        break;
    case 'n':
        plan->limit = number;
        break;
    case 't':
        plan->tls = true;
        break;
    case 'o':
        plan->told = true;
        break;
    case 'i':
        plan->idle = true, plan->connections = number;
        break;
    case 'p':
        rd_client_pin(optarg);
        break;
    case 'b':
        plan->beside = number;
        break;
    case 'y':
        plan->body_bytes = number;
        break;
    case 'g':
        plan->ping_ns = number * UINT64_C(1000000);
        break;
    case 'w':
        plan->download = optarg;
        break;
    default:
        usage();
    }
}

static void take_target(rd_plan *plan, const char *target) {
    const char *colon = strchr(target, ':'), *slash = strchr(target, '/');
    if (colon == NULL || strncmp(target, "127.0.0.1:", 10) != 0) usage();
    plan->port = (unsigned)strtoul(colon + 1, NULL, 10);
    plan->path = slash ? slash : "/";
}

int main(int count, char **words) {
    client.plan = (rd_plan){.connections = 1, .streams = 1, .seconds = 1};
    for (int option; (option = getopt_long(count, words, "c:m:d:n:", OPTIONS, NULL)) != -1;) {
        take_option(&client.plan, option);
    }
    if (optind + 1 != count) usage();
    take_target(&client.plan, words[optind]);
    if (client.plan.streams == 0 || client.plan.streams > MAX_STREAMS) usage();
    signal(SIGPIPE, SIG_IGN);
    client.poller = epoll_create1(EPOLL_CLOEXEC);
    if (client.poller < 0) rd_client_fail("epoll");
    struct epoll_event of_stdin = {.events = EPOLLIN};
    if (client.plan.told && epoll_ctl(client.poller, EPOLL_CTL_ADD, STDIN_FILENO, &of_stdin) < 0) {
        rd_client_fail("stdin");
    }
    streams = rd_streams_new(&client, client.plan.connections);
    plains = rd_plain_new(&client, client.plan.beside);
    if (client.plan.idle)
        run_idle();
    else
        run();
    return 0;
}

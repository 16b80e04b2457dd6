/* SPDX-License-Identifier: MIT
 *
 * The client of the benchmarks of files: does what the lines on its standard input say, each
 * answered with a line of JSON, so that files.rb can look at the server between two of them. Reads
 * and throws away, counts for each connection, and checks every status and length. Its parts:
 * download_client_conn.c (a connection), client_bystander.c (plain requests at the same time).
 * Loopback only. */
#include "client_base.h"
#include "client_bystander.h"
#include "download_client_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_DOWNLOADS = 2000, EVENTS = 32, COMMAND_SECONDS = 60, MOST_FAILURES = 5 };
enum { SLOW_RECEIVE_BYTES = 32768, STUCK_NS = 200000000 };
#define SLOW_PATIENCE_NS UINT64_C(10000000000) /* MOST_FAILURES of them fit into a command */

typedef struct rd_downloads {
    rd_errand errand;
    rd_tls_mode tls; /* of the bystander */
    rd_download *all;
    unsigned held;                      /* slow ones, which stay until the end */
    bool has_bystander, is_open, stays; /* the bystander: in this command; its connections */
    rd_bystander bystander;
} rd_downloads;

typedef unsigned long long ull;

static void watch(const rd_downloads *downloads, int fd, void *who) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = who};
    if (epoll_ctl(downloads->errand.poller, EPOLL_CTL_ADD, fd, &event) < 0)
        rd_client_fail("epoll_ctl");
}

/* The bystander's turn comes after each of the others', so that its waits are caused by the server.
 */
static void turn(rd_downloads *downloads) {
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(downloads->errand.poller, events, EVENTS, 10);
    for (int i = 0; i < ready; i++) {
        if (downloads->has_bystander) rd_bystander_turn(&downloads->bystander);
        if (events[i].data.ptr != &downloads->bystander)
            rd_download_turn(&downloads->errand, events[i].data.ptr);
    }
}

static void bystander_begin(rd_downloads *downloads, unsigned rate, const char *request,
                            uint64_t body_bytes) {
    rd_bystander *bystander = &downloads->bystander;
    downloads->has_bystander = rate > 0;
    if (!rate) return;
    if (!downloads->is_open) {
        rd_bystander_open(bystander, downloads->errand.port, downloads->tls);
        watch(downloads, bystander->poller, bystander);
        downloads->is_open = true;
    }
    rd_bystander_begin(bystander, rate, request, body_bytes);
}

static void bystander_close(rd_downloads *downloads) {
    if (downloads->is_open) rd_bystander_close(&downloads->bystander);
    downloads->is_open = false;
}

static void bystander_end(rd_downloads *downloads) {
    if (!downloads->has_bystander) return;
    rd_bystander_end(&downloads->bystander);
    if (!downloads->stays) bystander_close(downloads);
    downloads->has_bystander = false;
    if (downloads->bystander.errors)
        rd_errand_fail(&downloads->errand, "a plain request got no answer");
}

/* The counts of both kinds of commands; the caller continues the line. */
static void report_begin(const rd_downloads *downloads, uint64_t begun_ns, uint64_t ended_ns) {
    const rd_bystander *bystander = &downloads->bystander;
    const rd_latency *wait = &bystander->latency;
    printf("{\"failed\": %llu, \"why\": \"%s\", \"seconds\": %.6f, \"http_answers\": %llu, "
           "\"http_errors\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"longest_us\": %.1f",
           (ull)downloads->errand.failed, downloads->errand.why,
           (double)(ended_ns - begun_ns) / 1e9, (ull)bystander->answered, (ull)bystander->errors,
           rd_latency_percentile_us(wait, 0.5), rd_latency_percentile_us(wait, 0.99),
           (double)wait->longest_ns / 1e3);
}

static void report_connections(const rd_downloads *downloads, unsigned count) {
    printf(", \"bytes\": [");
    for (unsigned i = 0; i < count; i++)
        printf("%s%llu", i > 0 ? ", " : "", (ull)rd_download_bytes(&downloads->all[i]));
    printf("], \"answers\": [");
    for (unsigned i = 0; i < count; i++)
        printf("%s%llu", i > 0 ? ", " : "", (ull)downloads->all[i].answers);
    printf("]}\n");
}

/* This many connections fetch it again and again, with `rate` plain requests a second meanwhile. At
 * the end of the time, the parts of unfinished answers count, too. */
static void command_fetch(rd_downloads *downloads, unsigned count, double seconds, unsigned rate) {
    uint64_t begun = rd_client_now_ns(), now = begun;
    uint64_t due = begun + (uint64_t)(seconds * 1e9);
    for (unsigned i = 0; i < count; i++)
        rd_download_begin(&downloads->errand, &downloads->all[i], 0);
    bystander_begin(downloads, rate, RD_HELLO_REQUEST, RD_HELLO_BYTES);
    for (; now < due && downloads->errand.failed < MOST_FAILURES; now = rd_client_now_ns())
        turn(downloads);
    bystander_end(downloads);
    report_begin(downloads, begun, now);
    report_connections(downloads, count);
    for (unsigned i = 0; i < count; i++) rd_download_end(&downloads->all[i]);
}

/* Reads this many bytes of the body, then no more. */
static bool slow_one_begun(rd_errand *errand, rd_download *download, uint64_t bytes) {
    uint64_t patience = rd_client_now_ns() + SLOW_PATIENCE_NS;
    struct epoll_event event;
    rd_download_begin(errand, download, SLOW_RECEIVE_BYTES);
    while (download->fd >= 0 && rd_download_bytes(download) < bytes) {
        if (rd_client_now_ns() > patience) {
            rd_errand_fail(errand, "an answer did not begin within 10 s");
            return false;
        }
        if (epoll_wait(errand->poller, &event, 1, 100) == 1) rd_download_turn(errand, download);
    }
    if (download->fd < 0) return false;
    if (epoll_ctl(errand->poller, EPOLL_CTL_DEL, download->fd, NULL) < 0)
        rd_client_fail("epoll_ctl");
    if (download->answer.head.status == 200 && download->answer.head.length == errand->body_bytes)
        return true;
    rd_errand_fail(errand, "an answer had the wrong status or length");
    return false;
}

static void command_slow(rd_downloads *downloads, unsigned count, uint64_t bytes) {
    unsigned begun = 0;
    if (count > MOST_DOWNLOADS - downloads->held) rd_client_fail("too many slow ones");
    for (unsigned i = 0; i < count && downloads->errand.failed < MOST_FAILURES; i++)
        begun += slow_one_begun(&downloads->errand, &downloads->all[downloads->held++], bytes);
    printf("{\"failed\": %llu, \"why\": \"%s\", \"slow\": %u}\n", (ull)downloads->errand.failed,
           downloads->errand.why, begun);
}

/* Returns the status of an answer that has come, 0 without one. */
static unsigned status_read(int fd, int flags) {
    char bytes[4096] = "";
    unsigned status = 0;
    if (recv(fd, bytes, sizeof bytes - 1, flags) <= 0) return 0;
    return sscanf(bytes, "HTTP/1.%*c %u", &status) == 1 ? status : 0;
}

/* Asks for what will be stuck for so long, then for the errand's file, so many times a second,
 * until shortly before that is over; all of these have to be answered. */
static void command_stuck(rd_downloads *downloads, const char *path, double seconds,
                          unsigned rate) {
    rd_errand *errand = &downloads->errand, stuck = {.port = errand->port};
    uint64_t begun = rd_client_now_ns(), now;
    uint64_t due = begun + (uint64_t)(seconds * 1e9) - STUCK_NS;
    rd_errand_set(&stuck, path, 0);
    int fd = rd_client_connect(errand->port, 0);
    size_t len = strlen(stuck.request);
    if (fd < 0 || send(fd, stuck.request, len, MSG_NOSIGNAL) != (ssize_t)len)
        rd_client_fail("nobody takes the request that is to be stuck");
    usleep(STUCK_NS / 1000);
    bystander_begin(downloads, rate, errand->request, errand->body_bytes);
    while ((now = rd_client_now_ns()) < due) turn(downloads);
    if (status_read(fd, MSG_PEEK | MSG_DONTWAIT)) rd_errand_fail(errand, "nothing was stuck");
    bystander_end(downloads);
    if (status_read(fd, 0) != 200) rd_errand_fail(errand, "what was stuck got no answer");
    rd_client_abort(fd);
    report_begin(downloads, begun, now);
    printf("}\n");
}

static const char *const USAGE =
    "usage: download_client [--pin CPU] [--tls MODE] [--stay] PORT, then lines on standard input\n"
    "(connections of HTTP_PER_SECOND: --tls full or resumed is how they begin; with --stay they\n"
    "stay for the next line):\n"
    "  fetch PATH BYTES COUNT SECONDS HTTP_PER_SECOND  COUNT connections, again and again\n"
    "  slow PATH BYTES COUNT READ            COUNT connections that read so much and stop\n"
    "  stuck PATH BYTES PER_SECOND SECONDS STUCK_PATH  while another request is stuck\n";

static void command_run(rd_downloads *downloads, const char *line) {
    unsigned count, rate;
    double seconds;
    ull bytes, read_bytes;
    char path[256], stuck_path[256], verb[8];
    if (sscanf(line, "%7s %255s %llu", verb, path, &bytes) != 3) rd_client_fail(USAGE);
    rd_errand_set(&downloads->errand, path, bytes);
    if (sscanf(line, "fetch %*s %*u %u %lf %u", &count, &seconds, &rate) == 3) {
        if (count > MOST_DOWNLOADS) rd_client_fail(USAGE);
        command_fetch(downloads, count, seconds, rate);
    } else if (sscanf(line, "slow %*s %*u %u %llu", &count, &read_bytes) == 2) {
        command_slow(downloads, count, read_bytes);
    } else if (sscanf(line, "stuck %*s %*u %u %lf %255s", &rate, &seconds, stuck_path) == 3) {
        command_stuck(downloads, stuck_path, seconds, rate);
    } else {
        rd_client_fail(USAGE);
    }
}

int main(int argc, char **argv) {
    static rd_downloads downloads;
    char line[1024];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--pin") == 0 && i + 1 < argc)
            rd_client_pin(argv[++i]);
        else if (strcmp(argv[i], "--stay") == 0)
            downloads.stays = true;
        else if (strcmp(argv[i], "--tls") == 0 && i + 1 < argc)
            downloads.tls = rd_tls_client_mode(argv[++i]);
        else
            downloads.errand.port = (unsigned)strtoul(argv[i], NULL, 10);
    }
    if (downloads.errand.port == 0 || downloads.errand.port > 65535) rd_client_fail(USAGE);
    downloads.all = calloc(MOST_DOWNLOADS, sizeof *downloads.all);
    downloads.errand.poller = epoll_create1(EPOLL_CLOEXEC);
    if (!downloads.all || downloads.errand.poller < 0) rd_client_fail("cannot begin");
    while (fgets(line, sizeof line, stdin)) {
        alarm(COMMAND_SECONDS); /* a command that hangs ends the client */
        command_run(&downloads, line);
        alarm(0);
        fflush(stdout);
    }
    bystander_close(&downloads);
    for (unsigned i = 0; i < downloads.held; i++) rd_download_end(&downloads.all[i]);
    return 0;
}

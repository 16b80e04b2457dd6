/* SPDX-License-Identifier: MIT
 *
 * listen/lookup: addresses in place of names, paths, the order of families, and lookups that find,
 * that find nothing, that nobody waits for, and that have no thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "disk_jobs.h"
#include "listen/lookup.h"
#include "system/thread_start.h"

static rd_loop loop;
static uint32_t live;
static int answers;
static rd_targets found;
static char why[100];

static bool has_threads = true;

/* Replaces system/thread_start.c, because the system may have no thread left. */
int rd_thread_start(pthread_t *thread, void *(*begin)(void *), void *argument) {
    return has_threads ? pthread_create(thread, NULL, begin, argument) : EAGAIN;
}

/* ---- targets ---- */

static void test_addresses(void) {
    static const char *const names[] = {"localhost", "", "127.0.0.1:80", "rondo.invalid", "::g"};
    rd_targets targets;
    CHECK(rd_targets_read(&targets, "127.0.0.1", 8080));
    CHECK_INT(targets.count, 1);
    CHECK_INT(targets.list[0].address.v4.sin_family, AF_INET);
    CHECK_INT(ntohs(targets.list[0].address.v4.sin_port), 8080);
    CHECK_INT(targets.list[0].len, sizeof(struct sockaddr_in));
    CHECK(rd_targets_read(&targets, "::1", 1));
    CHECK_INT(targets.list[0].address.v6.sin6_family, AF_INET6);
    CHECK_INT(ntohs(targets.list[0].address.v6.sin6_port), 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CHECK_SAYS(!rd_targets_read(&targets, names[i], 80), "%s", names[i]);
    }
}

static void test_paths(void) {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
    rd_targets targets;
    CHECK(rd_targets_of_path(&targets, "/tmp/a.sock"));
    CHECK_STR(targets.list[0].address.unix_path.sun_path, "/tmp/a.sock");
    CHECK_INT(targets.list[0].len, offsetof(struct sockaddr_un, sun_path) + 12);
    CHECK(rd_targets_of_path(&targets, "@name"));
    CHECK_INT(targets.list[0].address.unix_path.sun_path[0], 0);
    CHECK_INT(targets.list[0].len, offsetof(struct sockaddr_un, sun_path) + 5);
    CHECK(!rd_targets_of_path(&targets, ""));
    memset(path, 'a', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    CHECK(!rd_targets_of_path(&targets, path));
    path[sizeof(path) - 2] = '\0';
    CHECK(rd_targets_of_path(&targets, path));
}

/* One letter for each target: 4 or 6. */
static void check_order(const char *before, const char *after) {
    rd_targets targets = {.count = (uint32_t)strlen(before)};
    char order[RD_TARGETS_MAX + 1] = "";
    for (uint32_t i = 0; i < targets.count; i++) {
        targets.list[i].address.any.sa_family = before[i] == '6' ? AF_INET6 : AF_INET;
        targets.list[i].len = i;
    }
    rd_targets_interleave(&targets);
    uint32_t last[2] = {0, 0};
    for (uint32_t i = 0; i < targets.count; i++) {
        const bool is_v6 = targets.list[i].address.any.sa_family == AF_INET6;
        order[i] = is_v6 ? '6' : '4';
        CHECK(targets.list[i].len >= last[is_v6]); /* each family keeps its order */
        last[is_v6] = targets.list[i].len;
    }
    CHECK_STR(order, after);
}

static void test_order(void) {
    check_order("", "");
    check_order("4", "4");
    check_order("666444", "646464");
    check_order("44466", "46464");
    check_order("64444", "64444");
    check_order("6666666666666664", "6466666666666666");
}

/* ---- lookups ---- */

static void on_found(rd_lookup *lookup) {
    CHECK(lookup->owner == &loop);
    answers++;
    found = lookup->targets;
    strncat(strcpy(why, ""), lookup->why, sizeof(why) - 1);
}

static rd_lookup *look_up(const char *host) {
    rd_lookup *lookup = rd_lookup_new(host, 80);
    lookup->on_found = on_found;
    lookup->owner = &loop;
    lookup->live = &live;
    rd_loop_lock(&loop);
    rd_lookup_begin(&loop, lookup);
    rd_loop_unlock(&loop);
    return lookup;
}

static void start(void) {
    CHECK_INT(rd_loop_init(&loop, false), 0);
    answers = 0;
}

static void end(void) {
    CHECK_INT(live, 0);
    CHECK(rd_disk_stop(&loop));
    rd_loop_clear(&loop);
}

static void test_found(void) {
    start();
    look_up("localhost");
    CHECK_INT(live, 1);
    finish_jobs(&loop);
    CHECK_INT(answers, 1);
    CHECK(found.count > 0);
    end();
}

/* "invalid" is a name that no resolver may know (RFC 6761, section 6.4). */
static void test_not_found(void) {
    start();
    look_up("rondo.invalid");
    finish_jobs(&loop);
    CHECK_INT(answers, 1);
    CHECK_INT(found.count, 0);
    CHECK(why[0] != '\0');
    end();
}

static void test_dropped(void) {
    start();
    hold_volume(&loop, RD_DISK_NAMES);
    rd_lookup *lookup = look_up("localhost");
    rd_loop_lock(&loop);
    rd_lookup_drop(lookup);
    rd_loop_unlock(&loop);
    CHECK_INT(live, 1); /* a thread still has it */
    release_jobs(&loop);
    finish_jobs(&loop);
    CHECK_INT(answers, 0);
    end();
}

/* It is never looked up on the loop, which would wait for the name server. */
static void test_without_a_thread(void) {
    start();
    has_threads = false;
    look_up("localhost");
    finish_jobs(&loop);
    has_threads = true;
    CHECK_INT(answers, 1);
    CHECK_INT(found.count, 0);
    CHECK_STR(why, "no thread can be started to look the name up");
    CHECK(!rd_disk_take_failure(&loop)); /* nothing waits for a disk in the loop */
    end();
}

int main(void) {
    test_addresses();
    test_paths();
    test_order();
    test_found();
    test_not_found();
    test_dropped();
    test_without_a_thread();
    return check_summary();
}

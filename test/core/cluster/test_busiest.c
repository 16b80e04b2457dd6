/* SPDX-License-Identifier: MIT
 *
 * The busiest and the longest-waiting connections: few of them, more than there are places, and the
 * busiest among thousands that ask once.
 */
#include "cluster/busiest.h"

#include <string.h>

#include "check.h"

static rd_busiest busiest;
static rd_view view;

static rd_address client(uint16_t port) {
    return (rd_address){.kind = RD_ADDRESS_V4, .bytes = {10, 0, 0, 1}, .port = port};
}

static void ask(uint16_t port, unsigned times, uint64_t waited_us) {
    const rd_address peer = client(port);
    for (unsigned i = 0; i < times; i++) rd_busiest_add(&busiest, &peer, waited_us);
}

static void test_few(void) {
    ask(1, 5, 100);
    ask(2, 7, 10);
    ask(3, 1, 90000);
    rd_busiest_take(&busiest, &view);
    CHECK_INT(view.busiest, 3);
    CHECK_INT(view.busy[0].peer.port, 2);
    CHECK_INT(view.busy[0].requests, 7);
    CHECK_INT(view.busy[0].bands[0], 7);
    CHECK_INT(view.busy[1].peer.port, 1);
    CHECK_INT(view.busy[1].bands[1], 5);
    CHECK_INT(view.busy[1].longest_us, 100);
    CHECK_INT(view.longest, 3);
    CHECK_INT(view.late[0].peer.port, 3);
    CHECK_INT(view.late[0].longest_us, 90000);
    rd_busiest_take(&busiest, &view); /* it has begun anew */
    CHECK_INT(view.busiest, 0);
    CHECK_INT(view.longest, 0);
}

static void test_many(void) {
    for (uint16_t round = 0; round < 100; round++) {
        ask(60000, 40, 5);
        for (uint16_t i = 0; i < 30; i++) ask((uint16_t)(1 + round * 30 + i), 1, 5);
    }
    ask(61000, 1, 1000000);
    rd_busiest_take(&busiest, &view);
    CHECK_INT(view.busiest, RD_VIEW_CLIENTS);
    CHECK_INT(view.busy[0].peer.port, 60000);
    CHECK(view.busy[0].requests >= 4000);
    CHECK_INT(view.late[0].peer.port, 61000);
    CHECK_INT(view.late[0].requests, 1);
}

static void test_the_longest_of_many(void) {
    for (uint16_t i = 1; i <= 1000; i++) ask(i, 1, i % 7 == 0 ? 500u + i : i % 100);
    ask(994, 3, 20000);
    rd_busiest_take(&busiest, &view);
    CHECK_INT(view.longest, RD_VIEW_CLIENTS);
    CHECK_INT(view.late[0].peer.port, 994);
    CHECK_INT(view.late[0].requests, 4);
    for (unsigned i = 1; i < RD_VIEW_CLIENTS; i++) {
        CHECK_INT(view.late[i].peer.port, 994 - 7 * i);
        CHECK_INT(view.late[i].longest_us, 500u + 994 - 7 * i);
    }
}

static void test_other_addresses_of_the_same_port(void) {
    rd_address one = client(443), other = client(443), third = client(443);
    other.bytes[3] = 2;
    third.kind = RD_ADDRESS_V6;
    third.bytes[15] = 1;
    rd_busiest_add(&busiest, &one, 1);
    rd_busiest_add(&busiest, &other, 1);
    rd_busiest_add(&busiest, &third, 1);
    rd_busiest_take(&busiest, &view);
    CHECK_INT(view.busiest, 3);
}

int main(void) {
    test_few();
    test_many();
    test_the_longest_of_many();
    test_other_addresses_of_the_same_port();
    return check_summary();
}

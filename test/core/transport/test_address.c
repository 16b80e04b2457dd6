/* SPDX-License-Identifier: MIT
 *
 * Addresses and networks as tables: text, mapped addresses, masks at odd bits, nonsense.
 */
#include "check.h"
#include "transport/address.h"

static void test_text(void) {
    static const char *const rows[][2] = {
        {"127.0.0.1", "127.0.0.1"},
        {"::1", "::1"},
        {"[::1]", "::1"},
        {"::ffff:10.1.2.3", "10.1.2.3"},
        {"2001:db8::0", "2001:db8::"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rd_address address;
        char text[RD_ADDRESS_TEXT_MAX];
        CHECK(rd_address_parse(&address, rows[i][0], strlen(rows[i][0])));
        size_t len = rd_address_text(&address, text);
        CHECK_BYTES(text, len, rows[i][1]);
    }
}

static void test_nonsense(void) {
    static const char *const rows[] = {"",          "1",      "1.2.3", "1.2.3.4.5",
                                       "256.1.1.1", "::g",    "[::1",  "1.2.3.4 ",
                                       "localhost", "::1%lo", "[]",    "1.2.3.4/8"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rd_address address;
        CHECK_SAYS(!rd_address_parse(&address, rows[i], strlen(rows[i])), "%s", rows[i]);
    }
    static const char *const networks[] = {"10.0.0.0/33",   "::/129", "10.0.0.0/", "10.0.0.0/a",
                                           "10.0.0.0/1234", "/8",     "unixx"};
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
        rd_network network;
        CHECK_SAYS(!rd_network_parse(&network, networks[i], strlen(networks[i])), "%s",
                   networks[i]);
    }
}

static void test_membership(void) {
    static const struct {
        const char *network, *address;
        bool inside;
    } rows[] = {
        {"10.0.0.0/8", "10.255.1.2", true},
        {"10.0.0.0/8", "11.0.0.1", false},
        {"192.168.4.0/22", "192.168.7.255", true},
        {"192.168.4.0/22", "192.168.8.0", false},
        {"0.0.0.0/0", "203.0.113.9", true},
        {"0.0.0.0/0", "::1", false},
        {"1.2.3.4", "1.2.3.4", true},
        {"1.2.3.4", "1.2.3.5", false},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
        {"10.0.0.0/8", "::ffff:10.0.0.1", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rd_network network;
        rd_address address;
        CHECK(rd_network_parse(&network, rows[i].network, strlen(rows[i].network)));
        CHECK(rd_address_parse(&address, rows[i].address, strlen(rows[i].address)));
        CHECK_SAYS(rd_network_contains(&network, &address) == rows[i].inside, "%s in %s",
                   rows[i].address, rows[i].network);
    }
    rd_network local;
    CHECK(rd_network_parse(&local, "unix", 4));
    CHECK(rd_network_contains(&local, &(rd_address){.kind = RD_ADDRESS_UNIX}));
    CHECK(!rd_network_contains(&local, &(rd_address){.kind = RD_ADDRESS_V4}));
}

int main(void) {
    test_text();
    test_nonsense();
    test_membership();
    return check_summary();
}

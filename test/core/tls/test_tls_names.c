/* SPDX-License-Identifier: MIT
 *
 * Which certificates a name gets: exactly, by a wildcard for one label, not at all; and what
 * clients send that is no name.
 */
#include "check.h"
#include "tls/tls_names.h"

static rd_tls_names names;

static int64_t find(const char *name) {
    return rd_tls_names_find(&names, rd_slice_of(name, strlen(name)));
}

static void add(const char *name, uint32_t set) {
    rd_tls_names_add(&names, rd_slice_of(name, strlen(name)), set);
}

static void test_names(void) {
    add("www.example.com", 1);
    add("*.Example.com", 2);
    add("example.com", 3);
    add("*.com", 4);
    add("xn--bcher-kva.example", 5);
    rd_tls_names_sort(&names);
    CHECK_INT(find("www.example.com"), 1);
    CHECK_INT(find("WWW.example.COM"), 1);
    CHECK_INT(find("api.example.com"), 2);
    CHECK_INT(find("a.b.example.com"), -1);
    CHECK_INT(find("example.com"), 3);
    CHECK_INT(find("other.com"), 4);
    CHECK_INT(find("xn--bcher-kva.example"), 5);
    CHECK_INT(find("www.example.org"), -1);
}

static void test_what_is_no_name(void) {
    char longest[300];
    memset(longest, 'a', sizeof(longest));
    CHECK_INT(find(""), -1);
    CHECK_INT(find("."), -1);
    CHECK_INT(find(".com"), -1);
    CHECK_INT(find("*.example.com"), -1);
    CHECK_INT(find("www.example.com."), -1);
    CHECK_INT(find("127.0.0.1"), -1);
    CHECK_INT(rd_tls_names_find(&names, rd_slice_of("www.example.com\0", 16)), -1);
    for (size_t len = 0; len <= sizeof(longest); len++) {
        CHECK_INT(rd_tls_names_find(&names, rd_slice_of(longest, len)), -1);
    }
    longest[1] = '.';
    CHECK_INT(rd_tls_names_find(&names, rd_slice_of(longest, 255)), -1);
    CHECK_INT(rd_tls_names_find(&names, (rd_slice){0}), -1);
}

static void test_none_and_too_long(void) {
    char longest[300];
    rd_tls_names_clear(&names);
    rd_tls_names_sort(&names);
    CHECK_INT(find("a"), -1);
    memset(longest, 'a', sizeof(longest));
    rd_tls_names_add(&names, rd_slice_of(longest, 256), 1);
    CHECK_INT(names.count, 0);
    rd_tls_names_add(&names, rd_slice_of(longest, 255), 1);
    CHECK_INT(rd_tls_names_find(&names, rd_slice_of(longest, 255)), 1);
    rd_tls_names_clear(&names);
}

int main(void) {
    test_names();
    test_what_is_no_name();
    test_none_and_too_long();
    return check_summary();
}

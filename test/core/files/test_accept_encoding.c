/* SPDX-License-Identifier: MIT
 *
 * files/accept_encoding: weights, what is forbidden, what is ignored, several lines.
 */
#include "check.h"

#include "files/accept_encoding.h"

enum {
    BR = 1 << RD_CODING_BR,
    ZSTD = 1 << RD_CODING_ZSTD,
    GZIP = 1 << RD_CODING_GZIP,
    ALL = BR | ZSTD | GZIP
};

static const char *const names[] = {"identity", "br", "zstd", "gzip"};

static void add(rd_request *request, size_t at, size_t len) {
    rd_head *head = &request->head;
    *rd_head_next_header(head) = (rd_header){
        .id = RD_HEADER_ACCEPT_ENCODING, .value_at = (uint32_t)at, .value_len = (uint32_t)len};
    head->header_count++;
    head->seen[RD_HEADER_ACCEPT_ENCODING / 64] |= UINT64_C(1) << RD_HEADER_ACCEPT_ENCODING % 64;
}

/* Each of `lines` is a value with a LF behind it. */
static unsigned choose(const char *lines, unsigned available) {
    rd_request_pool pool = {0};
    rd_request *request = rd_request_new(&pool);
    rd_request_keep_head(request, lines, strlen(lines));
    for (const char *at = lines, *end; (end = strchr(at, '\n')) != NULL; at = end + 1)
        add(request, (size_t)(at - lines), (size_t)(end - at));
    const unsigned chosen = rd_accept_encoding(request, available);
    rd_request_unref(request);
    rd_request_pool_clear(&pool);
    return chosen;
}

static void check_choice(const char *lines, unsigned available, unsigned expected) {
    const unsigned chosen = choose(lines, available);
    CHECK_SAYS(chosen == expected, "%s of %x: %s instead of %s", lines, available, names[chosen],
               names[expected]);
}

static void test_nothing_is_asked_for(void) {
    check_choice("", ALL, RD_CODING_IDENTITY);
    check_choice("\n", ALL, RD_CODING_IDENTITY);
    check_choice(" , ,\n\n", ALL, RD_CODING_IDENTITY);
    check_choice("deflate, compress, aes128gcm\n", ALL, RD_CODING_IDENTITY);
}

static void test_what_browsers_send(void) {
    check_choice("gzip, deflate, br, zstd\n", ALL, RD_CODING_BR);
    check_choice("gzip, deflate, br, zstd\n", ZSTD | GZIP, RD_CODING_ZSTD);
    check_choice("gzip, deflate, br, zstd\n", GZIP, RD_CODING_GZIP);
    check_choice("gzip, deflate, br, zstd\n", 0, RD_CODING_IDENTITY);
    check_choice("gzip, deflate\n", ALL, RD_CODING_GZIP);
    check_choice("gzip, deflate\n", BR | ZSTD, RD_CODING_IDENTITY);
    check_choice("br;q=1.0, gzip;q=0.8, *;q=0.1\n", ALL, RD_CODING_BR);
    check_choice("identity;q=1, *;q=0\n", ALL, RD_CODING_IDENTITY); /* for a video */
}

static void test_weights(void) {
    check_choice("br;q=0.5, gzip;q=0.501\n", ALL, RD_CODING_GZIP);
    check_choice("br;q=0.5, gzip;q=0.50\n", ALL, RD_CODING_BR);
    check_choice("br;q=0.9, gzip\n", ALL, RD_CODING_GZIP);
    check_choice("br;q=.9, gzip;q=0.001\n", ALL, RD_CODING_GZIP);
    check_choice("gzip;q=0.001\n", ALL, RD_CODING_GZIP);
    check_choice("gzip;q=0.\n", ALL, RD_CODING_IDENTITY);
    check_choice("gzip;q=1., br;q=0.999\n", ALL, RD_CODING_GZIP);
    check_choice("gzip;q=1.000, br;q=0.999\n", ALL, RD_CODING_GZIP);
    check_choice("gzip \t; \tq=0.3,br;q=0.2\n", ALL, RD_CODING_GZIP);
}

static void test_what_is_forbidden(void) {
    check_choice("gzip;q=0\n", GZIP, RD_CODING_IDENTITY);
    check_choice("gzip;q=0.000, br\n", GZIP, RD_CODING_IDENTITY);
    check_choice("gzip;q=0, *\n", ALL, RD_CODING_BR);
    check_choice("gzip;q=0, *\n", GZIP, RD_CODING_IDENTITY);
    check_choice("*;q=0, gzip;q=0.1\n", ALL, RD_CODING_GZIP);
    check_choice("*;q=0, gzip;q=0.1\n", BR, RD_CODING_IDENTITY);
}

static void test_identity(void) {
    check_choice("identity, gzip;q=0.5\n", ALL, RD_CODING_IDENTITY);
    check_choice("identity, gzip\n", ALL, RD_CODING_GZIP);
    check_choice("identity;q=0.4, gzip;q=0.5\n", ALL, RD_CODING_GZIP);
    check_choice("gzip;q=0.1\n", GZIP, RD_CODING_GZIP); /* a coding not listed is last */
    check_choice("identity;q=0\n", ALL, RD_CODING_IDENTITY);
    check_choice("identity;q=0, br\n", ALL, RD_CODING_BR);
    check_choice("identity;q=0, br\n", GZIP, RD_CODING_IDENTITY);
    check_choice("*;q=0\n", ALL, RD_CODING_IDENTITY);
}

static void test_all_others(void) {
    check_choice("*\n", ALL, RD_CODING_BR);
    check_choice("*\n", GZIP, RD_CODING_GZIP);
    check_choice("*\n", 0, RD_CODING_IDENTITY);
    check_choice("br;q=0.1, *;q=0.2\n", ALL, RD_CODING_ZSTD);
    check_choice("br;q=0.1, *;q=0.2\n", BR, RD_CODING_IDENTITY);
}

static void test_names(void) {
    check_choice("GZip\n", ALL, RD_CODING_GZIP);
    check_choice("x-gzip\n", ALL, RD_CODING_GZIP);
    check_choice("X-GZIP;Q=0.5\n", ALL, RD_CODING_GZIP);
    check_choice("BR;q=0.9,ZSTD\n", ALL, RD_CODING_ZSTD);
    check_choice("x-br, gzipped, gzi, z, **, g\xfaip, \"gzip\"\n", ALL, RD_CODING_IDENTITY);
    check_choice("br gzip\n", ALL, RD_CODING_IDENTITY);
    check_choice("\"br, gzip\n", ALL, RD_CODING_IDENTITY); /* a string without an end */
}

static void test_weights_that_are_none(void) {
    static const char *const weights[] = {
        "q",       "q=",      "q=2",    "q=1.1",   "q=1.001",  "q=0.1234", "q=0.0000",
        "q=01",    "q=-1",    "q=1.0a", "q=+1",    "q=a",      "q=.5",     "q=0x1",
        "q=\"1\"", "q= 1",    "q =1",   "q=1;x=y", "x=y",      "x=y;q=1",  "q=1;",
        "",        "level=9", "q==1",   "q=1 1",   "q=1.0.0",  "qq=1",     "q=1e0",
        "q=1000",  "q=/",     "q=:",    "q=0:",    "q=0.\xff", "q=0.5\\"};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        char line[64];
        snprintf(line, sizeof line, "gzip;%s\n", weights[i]);
        check_choice(line, ALL, RD_CODING_IDENTITY);
        snprintf(line, sizeof line, "br;q=0.1, gzip;%s\n", weights[i]);
        check_choice(line, ALL, RD_CODING_BR);
    }
    check_choice("gzip;q=2, *;q=0.5\n", GZIP, RD_CODING_GZIP); /* as if the field were absent */
}

static void test_several_lines(void) {
    check_choice("gzip;q=0.5\nbr;q=0.6\n", ALL, RD_CODING_BR);
    check_choice("gzip\n\n*;q=0\n", ALL, RD_CODING_GZIP);
    check_choice("\"gzip\nbr\n", ALL, RD_CODING_BR); /* a string ends with its line */
}

static void test_named_twice(void) {
    check_choice("gzip, gzip;q=0\n", ALL, RD_CODING_IDENTITY);
    check_choice("gzip;q=0\ngzip\n", ALL, RD_CODING_IDENTITY);
    check_choice("gzip, x-gzip;q=0.1, br;q=0.2\n", ALL, RD_CODING_BR);
    check_choice("*, *;q=0\n", ALL, RD_CODING_IDENTITY);
}

int main(void) {
    test_nothing_is_asked_for();
    test_what_browsers_send();
    test_weights();
    test_what_is_forbidden();
    test_identity();
    test_all_others();
    test_names();
    test_weights_that_are_none();
    test_several_lines();
    test_named_twice();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Certificates in /stats and /metrics.
 */
#include <string.h>

#include "check.h"
#include "control/certificates.h"

#define NOW 1700000000

static rd_certificate_list list;
static rd_buffer text;

static void add(const char *file, int64_t expires_s) {
    const rd_certificate_row row = {.url = (char *)(uintptr_t) "https://a:1",
                                    .file = (char *)(uintptr_t)file,
                                    .names = (char *)(uintptr_t) "[\"a.test\"]",
                                    .expires_s = expires_s};
    rd_certificate_list_add(&list, &row);
}

static void expect(const char *expected) {
    CHECK_BYTES(rd_buffer_ptr(&text), rd_buffer_len(&text), expected);
    rd_buffer_clear(&text);
}

static void test_none(void) {
    rd_certificate_list_stats(NULL, NOW, &text);
    rd_certificate_list_metrics(NULL, "x", &text);
    rd_certificate_list_stats(&list, NOW, &text);
    rd_certificate_list_metrics(&list, "x", &text);
    CHECK_INT(rd_buffer_len(&text), 0);
}

static void test_days(void) {
    static const struct {
        int64_t left;
        const char *days;
    } rows[] = {{0, "0"},   {86399, "0"},   {86400, "1"},  {864000, "10"},
                {-1, "-1"}, {-86400, "-1"}, {-86401, "-2"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char expected[32];
        add("a.pem", NOW + rows[i].left);
        rd_certificate_list_stats(&list, NOW, &text);
        rd_buffer_append(&text, "", 1);
        snprintf(expected, sizeof(expected), "\"days_left\":%s}]", rows[i].days);
        CHECK(strstr(rd_buffer_ptr(&text), expected) != NULL);
        rd_buffer_clear(&text);
        rd_certificate_list_clear(&list);
    }
}

static void test_two(void) {
    add("a.pem", NOW + 86400);
    add("a\"\\.pem", NOW);
    rd_certificate_list_stats(&list, NOW, &text);
    expect(",\"certificates\":[{\"url\":\"https://a:1\",\"file\":\"a.pem\",\"names\":[\"a.test\"],"
           "\"expires_at\":\"2023-11-15T22:13:20Z\",\"days_left\":1},"
           "{\"url\":\"https://a:1\",\"file\":\"a\\\"\\\\.pem\",\"names\":[\"a.test\"],"
           "\"expires_at\":\"2023-11-14T22:13:20Z\",\"days_left\":0}]");
    rd_certificate_list_metrics(&list, "x", &text);
    expect("rondo_x{listener=\"https://a:1\",file=\"a.pem\"} 1700086400\n"
           "rondo_x{listener=\"https://a:1\",file=\"a\\\"\\\\.pem\"} 1700000000\n");
    rd_certificate_list_clear(&list);
    CHECK(list.rows == NULL && list.count == 0);
}

int main(void) {
    test_none();
    test_days();
    test_two();
    return check_summary();
}

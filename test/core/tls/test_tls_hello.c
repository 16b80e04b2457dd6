/* SPDX-License-Identifier: MIT
 *
 * When a ClientHello is whole: in one record, in many, cut anywhere; and what is none.
 */
#include "tls/tls_hello.h"

#include "base/error.h"
#include "check.h"

static char bytes[1 << 19];
static size_t len;

/* A message of this length, its head included, in records of `part` bytes. */
static void write_hello(char type, size_t whole, size_t part) {
    const size_t rest = whole - 4;
    const char head[4] = {type, (char)(rest >> 16), (char)(rest >> 8), (char)rest};
    len = 0;
    for (size_t at = 0; at < whole; at += part) {
        const size_t size = whole - at < part ? whole - at : part;
        const char record[5] = {22, 3, 1, (char)(size >> 8), (char)size};
        memcpy(bytes + len, record, 5);
        for (size_t i = 0; i < size; i++) bytes[len + 5 + i] = at + i < 4 ? head[at + i] : 'x';
        len += 5 + size;
    }
}

static int scan(size_t some) {
    rd_tls_hello hello = {0};
    return rd_tls_hello_scan(&hello, rd_slice_of(bytes, some));
}

/* The answer is the same however the bytes come. */
static void check_all(int expected) {
    rd_tls_hello hello = {0};
    for (size_t some = 0; some < len; some++) {
        if (!CHECK_INT(rd_tls_hello_scan(&hello, rd_slice_of(bytes, some)), 0)) return;
    }
    for (int i = 0; i < 2; i++) {
        CHECK_INT(rd_tls_hello_scan(&hello, rd_slice_of(bytes, len)), expected);
    }
    CHECK_INT(scan(len), expected);
}

static void test_one_record_and_many(void) {
    static const size_t parts[] = {1, 2, 3, 4, 5, 100, 511, 512, 16384};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        write_hello(1, 512, parts[i]);
        check_all(1);
    }
    write_hello(1, 40000, 16384);
    check_all(1);
    write_hello(1, 4, 4); /* OpenSSL refuses it */
    check_all(1);
}

static void test_more_than_the_message(void) {
    write_hello(1, 100, 50);
    memcpy(bytes + len, "\x17\x03\x03", 3);
    len += 3;
    CHECK_INT(scan(len), 1);
    CHECK_INT(scan(len - 4), 0);
}

static void test_what_is_too_long(void) {
    write_hello(1, 65537, 16000);
    CHECK_INT(scan(16004), 0);
    CHECK_INT(scan(16005), RD_ERR_TLS_TOO_LONG); /* it says so itself */
    write_hello(1, 65536, 1);
    CHECK_INT(scan(65535), 0);
    CHECK_INT(scan(65536), RD_ERR_TLS_TOO_LONG); /* by its records */
}

/* OpenSSL says why. */
static void test_what_is_no_hello(void) {
    CHECK_INT(scan(0), 0);
    memset(bytes, 0, sizeof(bytes));
    CHECK_INT(scan(1), 1);
    memcpy(bytes, "\x16\x03\x01\x00\x00", 5); /* an empty record */
    CHECK_INT(scan(4), 0);
    CHECK_INT(scan(5), 1);
    memcpy(bytes, "\x16\x03\x01\x40\x01", 5); /* one that is too long */
    CHECK_INT(scan(5), 1);
    memcpy(bytes, "\x80\x2e\x01\x03\x01", 5); /* SSL 2 */
    CHECK_INT(scan(5), 1);
    write_hello(2, 100, 100);
    CHECK_INT(scan(len), 1);
}

int main(void) {
    test_one_record_and_many();
    test_more_than_the_message();
    test_what_is_too_long();
    test_what_is_no_hello();
    return check_summary();
}

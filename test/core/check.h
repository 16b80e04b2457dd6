/* SPDX-License-Identifier: MIT
 *
 * What a C unit test needs: CHECK and its kin count, say where and what failed, and go on. A test
 * file is one program: main() calls its test functions and ends with `return check_summary();`.
 */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned check_passed, check_failed;

__attribute__((format(printf, 5, 6), unused)) static bool
check_note(bool ok, const char *file, int line, const char *what, const char *format, ...) {
    va_list arguments;

    if (ok) {
        check_passed++;
        return true;
    }
    check_failed++;
    if (check_failed > 20) return false; /* one mistake in a loop should not fill the screen */
    printf("%s:%d: %s: ", file, line, what);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    return false;
}

__attribute__((unused)) static int check_summary(void) {
    printf("%u passed, %u failed\n", check_passed, check_failed);
    return check_failed ? 1 : 0;
}

/* Each returns whether the check held, so that a test can stop where going on makes no sense. */
#define CHECK(condition) check_note((condition), __FILE__, __LINE__, #condition, "is false")

#define CHECK_SAYS(condition, ...)                                                                 \
    check_note((condition), __FILE__, __LINE__, #condition, __VA_ARGS__)

#define CHECK_INT(actual, expected)                                                                \
    check_int((int64_t)(actual), (int64_t)(expected), __FILE__, __LINE__, #actual)

#define CHECK_STR(actual, expected) check_str((actual), (expected), __FILE__, __LINE__, #actual)

/* Compares `ptr`, `len` with a C string. */
#define CHECK_BYTES(ptr, len, expected)                                                            \
    check_bytes((ptr), (len), (expected), strlen(expected), __FILE__, __LINE__, #ptr)

__attribute__((unused)) static bool check_int(int64_t actual, int64_t expected, const char *file,
                                              int line, const char *what) {
    return check_note(actual == expected, file, line, what, "%" PRId64 " instead of %" PRId64,
                      actual, expected);
}

__attribute__((unused)) static bool check_str(const char *actual, const char *expected,
                                              const char *file, int line, const char *what) {
    return check_note(strcmp(actual, expected) == 0, file, line, what, "\"%s\" instead of \"%s\"",
                      actual, expected);
}

__attribute__((unused)) static bool check_bytes(const char *ptr, size_t len, const char *expected,
                                                size_t expected_len, const char *file, int line,
                                                const char *what) {
    return check_note(len == expected_len && (len == 0 || memcmp(ptr, expected, len) == 0), file,
                      line, what, "\"%.*s\" instead of \"%.*s\"", (int)len, ptr, (int)expected_len,
                      expected);
}

#endif

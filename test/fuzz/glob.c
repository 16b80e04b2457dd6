/* SPDX-License-Identifier: MIT
 *
 * Globs. First byte: how much of the rest is the pattern. Holds: no crash; short ones match as a
 * matcher says that tries everything; a name matches its own escaped form.
 */
#include "fuzz.h"
#include "naive_glob.h"
#include "pubsub/glob.h"

enum { SHORT = 14 };

static void check_escaped(rd_slice string) {
    char *pattern = malloc(2 * string.len + 1);

    FUZZ_CHECK(pattern);
    for (size_t i = 0; i < string.len; i++) {
        pattern[2 * i] = '\\';
        pattern[2 * i + 1] = string.ptr[i];
    }
    FUZZ_CHECK(rd_glob_matches(rd_slice_of(pattern, 2 * string.len), string));
    pattern[2 * string.len] = '*';
    FUZZ_CHECK(rd_glob_matches(rd_slice_of(pattern, 2 * string.len + 1), string));
    free(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (len == 0 || len > 4096) return 0;
    len--;
    const size_t pattern_len = bytes[0] < len ? bytes[0] : len;
    char *pattern = fuzz_copy(bytes + 1, pattern_len);
    char *string = fuzz_copy(bytes + 1 + pattern_len, len - pattern_len);
    const rd_slice pattern_slice = {pattern, pattern_len};
    const rd_slice string_slice = {string, len - pattern_len};
    const bool answer = rd_glob_matches(pattern_slice, string_slice);

    if (pattern_len <= SHORT && string_slice.len <= SHORT) {
        FUZZ_CHECK(answer == naive_glob_matches(pattern_slice, string_slice));
    }
    check_escaped(string_slice);
    free(pattern);
    free(string);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * http/header_names: every name is found in any case, and nothing else is.
 */
#include "check.h"

#include "http/header_names.h"

static char upper(char byte) {
    return (char)(byte >= 'a' && byte <= 'z' ? byte - 32 : byte);
}

static char lower(char byte) {
    return (char)(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
}

static void test_every_name(void) {
    char copy[64];

    for (unsigned id = 1; id < RD_HEADER_COUNT; id++) {
        const rd_slice name = rd_header_id_name(id);

        CHECK_INT(rd_header_id(name.ptr, name.len), id);
        for (size_t i = 0; i < name.len; i++) copy[i] = upper(name.ptr[i]);
        CHECK_INT(rd_header_id(copy, name.len), id);
        for (size_t i = 0; i < name.len; i++) copy[i] = lower(name.ptr[i]);
        CHECK_INT(rd_header_id(copy, name.len), id);
        CHECK(rd_header_id(copy, name.len - 1) != id);
    }
}

/* If one byte changes to any other byte of a token, it is another name. */
static void test_near_misses(void) {
    static const char others[] = "!#$%&'*+-.^_`|~019AZaz";
    char copy[64];

    for (unsigned id = 1; id < RD_HEADER_COUNT; id++) {
        const rd_slice name = rd_header_id_name(id);

        memcpy(copy, name.ptr, name.len);
        for (size_t i = 0; i < name.len; i++) {
            for (const char *other = others; *other; other++) {
                if (lower(*other) == lower(name.ptr[i])) continue;
                copy[i] = *other;
                CHECK(rd_header_id(copy, name.len) != id);
            }
            copy[i] = name.ptr[i];
        }
    }
}

static void test_other_names(void) {
    static const char *const names[] = {
        "", "a", "X", "X-Unknown", "Content_Length", "Hosts", "TransferEncoding"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_INT(rd_header_id(names[i], strlen(names[i])), RD_HEADER_OTHER);
    CHECK_INT(rd_header_id_name(RD_HEADER_OTHER).len, 0);
    CHECK_INT(rd_header_id_name(RD_HEADER_COUNT).len, 0);
}

static void test_repeats(void) {
    CHECK_INT(rd_header_id_repeat(RD_HEADER_COOKIE), RD_REPEAT_SEMICOLON);
    CHECK_INT(rd_header_id_repeat(RD_HEADER_ACCEPT), RD_REPEAT_COMMA);
    CHECK_INT(rd_header_id_repeat(RD_HEADER_HOST), RD_REPEAT_REFUSE);
    CHECK_INT(rd_header_id_repeat(RD_HEADER_OTHER), RD_REPEAT_COMMA);
    CHECK_INT(rd_header_id_repeat(1000), RD_REPEAT_COMMA);
}

int main(void) {
    test_every_name();
    test_near_misses();
    test_other_names();
    test_repeats();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * files/file_range: values of Range as a table; hostile ones.
 */
#include "check.h"
#include "files/file_range.h"

#define WHOLE "whole"
#define NONE  "416"
#define MAX64 "18446744073709551615"
#define HUGE  "99999999999999999999999999999999999999999"

/* What is expected reads "first+len ...". */
static const struct {
    uint64_t size;
    const char *value, *expected;
} rows[] = {
    {100, "bytes=0-9", "0+10"},
    {100, "bytes=0-0", "0+1"},
    {100, "bytes=99-99", "99+1"},
    {100, "bytes=10-", "10+90"},
    {100, "bytes=0-", "0+100"},
    {100, "bytes=90-1000", "90+10"},
    {100, "bytes=-1", "99+1"},
    {100, "bytes=-100", "0+100"},
    {100, "bytes=-101", "0+100"},
    {100, "bytes=0000-0009", "0+10"},
    {100, "BYTES=1-2", "1+2"},
    {100, "Bytes=1-2", "1+2"},
    /* several */
    {100, "bytes=0-0,-1", "0+1 99+1"},
    {100, "bytes=50-59,0-9", "50+10 0+10"},
    {100, "bytes=0-9,10-19", "0+10 10+10"},
    {100, "bytes=10-19,0-9", "10+10 0+10"},
    {100, "bytes=0-9 ,\t20-29", "0+10 20+10"},
    {100, "bytes=,0-9,, ,20-29,", "0+10 20+10"},
    {100, "bytes= 0-9", "0+10"},
    /* ranges beyond the end are left out */
    {100, "bytes=0-9,100-,20-29", "0+10 20+10"},
    {100, "bytes=-0,5-5", "5+1"},
    {100, "bytes=200-300,400-", NONE},
    {100, "bytes=100-", NONE},
    {100, "bytes=100-100", NONE},
    {100, "bytes=-0", NONE},
    {100, "bytes=-000", NONE},
    /* overlapping */
    {100, "bytes=0-9,9-19", WHOLE},
    {100, "bytes=0-,-1", WHOLE},
    {100, "bytes=20-29,0-99", WHOLE},
    {100, "bytes=0-99,20-29", WHOLE},
    {100, "bytes=5-5,5-5", WHOLE},
    {100, "bytes=95-,-5", WHOLE},
    {100, "bytes=94-94,-5", "94+1 95+5"},
    {100, "bytes=200-300,200-300,1-1", "1+1"},
    /* not a range of bytes */
    {100, "", WHOLE},
    {100, "bytes", WHOLE},
    {100, "bytes=", WHOLE},
    {100, "bytes=,", WHOLE},
    {100, "bytes= ", WHOLE},
    {100, "bytes=-", WHOLE},
    {100, "bytes=--", WHOLE},
    {100, "bytes=--5", WHOLE},
    {100, "bytes=5", WHOLE},
    {100, "bytes=5-2", WHOLE},
    {100, "bytes=0-1,5-2", WHOLE},
    {100, "bytes=200-,5-2", WHOLE},
    {100, "bytes=0-9-", WHOLE},
    {100, "bytes=0-9;", WHOLE},
    {100, "bytes=0-9;10-19", WHOLE},
    {100, "bytes=0 - 9", WHOLE},
    {100, "bytes=0-9 10-19", WHOLE},
    {100, "bytes=+0-9", WHOLE},
    {100, "bytes=0-+9", WHOLE},
    {100, "bytes=0x0-0x9", WHOLE},
    {100, "bytes=a-b", WHOLE},
    {100, "bytes=\"0-9\"", WHOLE},
    {100, "bytes=0-9,\"", WHOLE},
    {100, "bytes=0-9,*", WHOLE},
    {100, "bytes 0-9", WHOLE},
    {100, "bytes =0-9", WHOLE},
    {100, " bytes=0-9", WHOLE},
    {100, "byte=0-9", WHOLE},
    {100, "bytess=0-9", WHOLE},
    {100, "items=0-9", WHOLE},
    {100, "=0-9", WHOLE},
    {100, "0-9", WHOLE},
    /* an empty file */
    {0, "bytes=0-", NONE},
    {0, "bytes=0-0", NONE},
    {0, "bytes=-0", NONE},
    {0, "bytes=-5", WHOLE},
    {0, "bytes=0-,-5", WHOLE},
    {0, "bytes=5-2", WHOLE},
    {1, "bytes=0-0", "0+1"},
    {1, "bytes=-5", "0+1"},
    /* numbers without end */
    {100, "bytes=0-9223372036854775807", "0+100"},
    {100, "bytes=0-9223372036854775808", "0+100"},
    {100, "bytes=0-" MAX64, "0+100"},
    {100, "bytes=0-18446744073709551616", "0+100"},
    {100, "bytes=0-" HUGE, "0+100"},
    {100, "bytes=18446744073709551616-", NONE},
    {100, "bytes=18446744073709551617-18446744073709551626", NONE},
    {100, "bytes=" HUGE "-" HUGE, NONE},
    {100, "bytes=" HUGE "-5", WHOLE},
    {100, "bytes=-18446744073709551617", "0+100"},
    {100, "bytes=-" HUGE, "0+100"},
    {UINT64_MAX, "bytes=-1", "18446744073709551614+1"},
    {UINT64_MAX, "bytes=0-", "0+" MAX64},
    {UINT64_MAX, "bytes=0-" MAX64, "0+" MAX64},
    {UINT64_MAX, "bytes=" MAX64 "-", NONE},
    {UINT64_MAX, "bytes=18446744073709551614-", "18446744073709551614+1"},
    {INT64_MAX, "bytes=9223372036854775806-,0-0", "9223372036854775806+1 0+1"},
};

static int parse(const char *value, uint64_t size, rd_file_range ranges[RD_RANGES_MAX]) {
    return rd_file_ranges_parse(rd_slice_of(value, strlen(value)), size, ranges);
}

static void test_values(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rd_file_range ranges[RD_RANGES_MAX];
        char text[256] = "";
        const int count = parse(rows[i].value, rows[i].size, ranges);
        if (count <= 0) snprintf(text, sizeof text, "%s", count == 0 ? WHOLE : NONE);
        for (int at = 0; at < count; at++) {
            const size_t len = strlen(text);
            snprintf(text + len, sizeof text - len, "%s%" PRIu64 "+%" PRIu64, at ? " " : "",
                     ranges[at].first, ranges[at].len);
        }
        CHECK_SAYS(strcmp(text, rows[i].expected) == 0, "\"%s\" of %" PRIu64 ": %s instead of %s",
                   rows[i].value, rows[i].size, text, rows[i].expected);
    }
}

/* "bytes=first-first," for every other byte. */
static int ask_for(unsigned count, unsigned first, uint64_t size,
                   rd_file_range ranges[RD_RANGES_MAX]) {
    char value[32 * 1024] = "bytes=";
    for (unsigned i = 0; i < count; i++) {
        const size_t len = strlen(value);
        snprintf(value + len, sizeof value - len, "%u-%u,", first + 2 * i, first + 2 * i);
    }
    return parse(value, size, ranges);
}

static void test_how_many(void) {
    rd_file_range ranges[RD_RANGES_MAX];
    CHECK_INT(ask_for(RD_RANGES_MAX, 0, 100, ranges), RD_RANGES_MAX);
    CHECK_INT(ranges[RD_RANGES_MAX - 1].first, 2 * (RD_RANGES_MAX - 1));
    CHECK_INT(ask_for(RD_RANGES_MAX + 1, 0, 100, ranges), 0);
    CHECK_INT(ask_for(1000, 0, 10000, ranges), 0);
    CHECK_INT(ask_for(RD_RANGES_MAX, 100, 100, ranges), RD_RANGE_UNSATISFIABLE);
    CHECK_INT(ask_for(RD_RANGES_MAX + 1, 100, 100, ranges), 0); /* those count, too */
}

int main(void) {
    test_values();
    test_how_many();
    CHECK_INT(rd_file_ranges_parse((rd_slice){NULL, 0}, 100, NULL), 0);
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Dates of fields. The input is a date; its first eight bytes are also a number of seconds. Holds:
 * no crash; what was parsed and formatted parses to the same; a number within the years 1970 to
 * 9999 comes back from its text, any other as the nearest.
 */
#include "fuzz.h"
#include "http/date.h"

static const int64_t last = INT64_C(253402300799);

static int64_t there_and_back(int64_t seconds) {
    char text[RD_DATE_BYTES + 1];
    rd_date_format(seconds, text);
    FUZZ_CHECK(strlen(text) == RD_DATE_BYTES);
    return rd_date_parse(rd_slice_of(text, RD_DATE_BYTES));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    char *text = fuzz_copy(bytes, len);
    const int64_t parsed = rd_date_parse(rd_slice_of(text, len));
    int64_t seconds = 0;
    free(text);
    FUZZ_CHECK(parsed >= -1 && parsed <= last + 1); /* with a leap second behind it */
    if (parsed >= 0 && parsed <= last) FUZZ_CHECK(there_and_back(parsed) == parsed);
    if (len < sizeof seconds) return 0;
    memcpy(&seconds, bytes, sizeof seconds);
    FUZZ_CHECK(there_and_back(seconds) == (seconds < 0 ? 0 : seconds > last ? last : seconds));
    seconds = (int64_t)((uint64_t)seconds % (uint64_t)(last + 1));
    FUZZ_CHECK(there_and_back(seconds) == seconds);
    return 0;
}

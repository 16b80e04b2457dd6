/* SPDX-License-Identifier: MIT
 *
 * Range fields. First eight bytes: the size of the file; the rest is the value. Holds: no crash;
 * ranges lie in the file, have a byte and do not overlap; of a small file, they are those of a
 * reader that asks for each byte and each range whether it was wanted.
 */
#include "fuzz.h"
#include "files/file_range.h"

enum { SMALL = 64 };

/* One range as the reference reads it; of a suffix, `last` is its length. */
typedef struct wanted {
    uint64_t first, last;
    int suffix;
} wanted;

static char *trim(char *text) {
    text += strspn(text, " \t");
    for (size_t len = strlen(text); len && strchr(" \t", text[len - 1]);) text[--len] = '\0';
    return text;
}

static int read_wanted(const char *text, wanted *wanted) {
    const size_t digits = strspn(text, "0123456789");
    const char *second = text + digits + 1;
    if (text[digits] != '-' || second[strspn(second, "0123456789")] != '\0') return 0;
    if (digits == 0 && *second == '\0') return 0;
    wanted->suffix = digits == 0;
    wanted->first = strtoull(text, NULL, 10);
    wanted->last = *second ? strtoull(second, NULL, 10) : UINT64_MAX;
    return wanted->suffix || wanted->first <= wanted->last;
}

static int wants(const wanted *wanted, uint64_t byte, uint64_t size) {
    if (wanted->suffix) return size - byte <= wanted->last;
    return wanted->first <= byte && byte <= wanted->last;
}

/* How often each byte is wanted at most; sets how many ranges want none. */
static int most_often(const wanted *list, int count, uint64_t size, int *misses) {
    int hits[RD_RANGES_MAX] = {0}, most = 0;
    for (uint64_t byte = 0; byte < size; byte++) {
        int often = 0;
        for (int i = 0; i < count; i++) {
            if (!wants(&list[i], byte, size)) continue;
            hits[i]++;
            often++;
        }
        if (often > most) most = often;
    }
    for (int i = *misses = 0; i < count; i++) *misses += hits[i] == 0;
    return most;
}

/* The ranges asked for, or -1 if the field is to be ignored. */
static int read_list(char *text, wanted list[RD_RANGES_MAX]) {
    char *rest = text + 6, *element;
    int count = 0;
    if (strncasecmp(text, "bytes=", 6) != 0) return -1;
    while ((element = strsep(&rest, ",")) != NULL) {
        element = trim(element);
        if (*element == '\0') continue;
        if (count == RD_RANGES_MAX || !read_wanted(element, &list[count++])) return -1;
    }
    return count ? count : -1;
}

static void check_bytes(const wanted *list, int asked, const rd_file_range *ranges, uint64_t size) {
    for (int i = 0; i < asked; i++) {
        uint64_t byte = 0, end = size;
        while (byte < size && !wants(&list[i], byte, size)) byte++;
        if (byte == size) continue;
        while (!wants(&list[i], end - 1, size)) end--;
        FUZZ_CHECK(ranges->first == byte && ranges->len == end - byte);
        ranges++;
    }
}

static void check_small(const char *value, size_t len, uint64_t size) {
    rd_file_range ranges[RD_RANGES_MAX];
    wanted list[RD_RANGES_MAX];
    int misses = 0, has_end = 0;
    const int count = rd_file_ranges_parse(rd_slice_of(value, len), size, ranges);
    char *text = malloc(len + 1);
    FUZZ_CHECK(text);
    memcpy(text, value, len);
    text[len] = '\0';
    const int asked = read_list(text, list);
    free(text);
    for (int i = 0; i < asked; i++) has_end |= list[i].suffix && list[i].last > 0;
    if (asked < 0 || (size == 0 && has_end) || most_often(list, asked, size, &misses) > 1) {
        FUZZ_CHECK(count == 0);
    } else if (size == 0 || misses == asked) {
        FUZZ_CHECK(count == RD_RANGE_UNSATISFIABLE);
    } else {
        FUZZ_CHECK(count == asked - misses);
        check_bytes(list, asked, ranges, size);
    }
}

static void check_any(const char *value, size_t len, uint64_t size) {
    rd_file_range ranges[RD_RANGES_MAX];
    const int count = rd_file_ranges_parse(rd_slice_of(value, len), size, ranges);
    FUZZ_CHECK(count >= RD_RANGE_UNSATISFIABLE && count <= RD_RANGES_MAX);
    for (int i = 0; i < count; i++) {
        const rd_file_range a = ranges[i];
        FUZZ_CHECK(a.len > 0 && a.first < size && a.len <= size - a.first);
        for (int j = 0; j < i; j++) {
            const rd_file_range b = ranges[j];
            FUZZ_CHECK(a.first < b.first ? a.len <= b.first - a.first : b.len <= a.first - b.first);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    uint64_t size;
    if (len < sizeof size || len > 4096) return 0;
    memcpy(&size, bytes, sizeof size);
    bytes += sizeof size;
    len -= sizeof size;
    if (memchr(bytes, '\0', len)) return 0; /* control bytes are no part of a value */
    char *value = fuzz_copy(bytes, len);
    check_small(value, len, size % (SMALL + 1));
    check_any(value, len, size);
    check_any(value, len, size % 1000);
    free(value);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Conditions. First byte: which file; then lines that end in LF, whose first byte says which field
 * (m, n, u, s, r: If-Match, If-None-Match, If-Unmodified-Since, If-Modified-Since, If-Range).
 * Holds: no crash; no answer without a field that can lead to it; no match where the ETag does not
 * stand; a match where a line of its own says it; If-Range by what the file has, byte by byte.
 */
#include "fuzz.h"
#include "http/date.h"
#include "files/file_conditions.h"

static const rd_validators files[] = {
    {RD_SLICE_INIT("\"5-a\""), 784111777}, {RD_SLICE_INIT("W/\"5-a\""), 784111777},
    {RD_SLICE_INIT("\"a,\\\""), 0},        {RD_SLICE_INIT("\"\""), 1},
    {RD_SLICE_INIT("\"5-a\""), -1},        {{NULL, 0}, 784111777},
};

/* "5-a" with its quotes, whether it is weak or not. */
static rd_slice opaque(rd_slice etag) {
    return etag.len && etag.ptr[0] == 'W' ? rd_slice_of(etag.ptr + 2, etag.len - 2) : etag;
}

static unsigned field_of(char letter) {
    switch (letter) {
    case 'm':
        return RD_HEADER_IF_MATCH;
    case 'n':
        return RD_HEADER_IF_NONE_MATCH;
    case 'u':
        return RD_HEADER_IF_UNMODIFIED_SINCE;
    case 's':
        return RD_HEADER_IF_MODIFIED_SINCE;
    case 'r':
        return RD_HEADER_IF_RANGE;
    default:
        return RD_HEADER_OTHER;
    }
}

static void add(rd_request *request, unsigned id, size_t at, size_t len) {
    rd_head *head = &request->head;
    *rd_head_next_header(head) =
        (rd_header){.id = (uint16_t)id, .value_at = (uint32_t)at, .value_len = (uint32_t)len};
    head->header_count++;
    head->seen[id / 64] |= UINT64_C(1) << (id % 64);
}

static void read_lines(rd_request *request, const char *text, size_t len) {
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        const size_t line = end ? (size_t)(end - text) - at : len - at;
        if (line > 0) add(request, field_of(text[at]), at + 1, line - 1);
        at += line + 1;
    }
}

/* Whether a match is possible at all. */
static int may_match(const rd_request *request, unsigned id, rd_slice etag) {
    for (unsigned i = 0; i < request->head.header_count; i++) {
        const rd_header *header = &request->head.headers[i];
        const rd_slice value = rd_request_header_value(request, header);
        if (header->id != id) continue;
        if (value.len == 1 && value.ptr[0] == '*') return 1;
        if (etag.len && memmem(value.ptr, value.len, opaque(etag).ptr, opaque(etag).len)) return 1;
    }
    return 0;
}

static void check_answer(const rd_request *request, const rd_validators *file, int answer) {
    const rd_head *head = &request->head;
    const int has_match = rd_head_has(head, RD_HEADER_IF_MATCH);
    const int has_none_match = rd_head_has(head, RD_HEADER_IF_NONE_MATCH);
    FUZZ_CHECK(answer == RD_CONDITION_NONE || answer == RD_CONDITION_NOT_MODIFIED ||
               answer == RD_CONDITION_FAILED);
    if (answer == RD_CONDITION_FAILED)
        FUZZ_CHECK(has_match || rd_head_has(head, RD_HEADER_IF_UNMODIFIED_SINCE));
    if (answer == RD_CONDITION_NOT_MODIFIED)
        FUZZ_CHECK(has_none_match || rd_head_has(head, RD_HEADER_IF_MODIFIED_SINCE));
    if (has_match && !may_match(request, RD_HEADER_IF_MATCH, file->etag))
        FUZZ_CHECK(answer == RD_CONDITION_FAILED);
    if (has_none_match && !may_match(request, RD_HEADER_IF_NONE_MATCH, file->etag))
        FUZZ_CHECK(answer != RD_CONDITION_NOT_MODIFIED);
}

static void check_range(const rd_request *request, const rd_validators *file) {
    const rd_header *header = rd_head_find(&request->head, RD_HEADER_IF_RANGE);
    if (!header || !rd_file_range_applies(request, file)) return;
    const rd_slice value = rd_request_header_value(request, header);
    FUZZ_CHECK(value.len > 0);
    if (value.ptr[0] == '"')
        FUZZ_CHECK(rd_slice_equal(value, file->etag));
    else
        FUZZ_CHECK(file->modified >= 0 && rd_date_parse(value) == file->modified);
}

/* The file's ETag stands at `at`, as it is compared. */
static void check_own_lines(rd_request *request, const rd_validators *file, size_t at, int answer) {
    const size_t len = opaque(file->etag).len;
    add(request, RD_HEADER_IF_NONE_MATCH, at, len);
    FUZZ_CHECK(rd_file_conditions(request, file) ==
               (answer == RD_CONDITION_FAILED ? answer : RD_CONDITION_NOT_MODIFIED));
    if (file->etag.len > len) return; /* a weak one never matches strongly */
    add(request, RD_HEADER_IF_MATCH, at, len);
    FUZZ_CHECK(rd_file_conditions(request, file) == RD_CONDITION_NOT_MODIFIED);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    static rd_request request;
    if (len < 1 || len > 4096 || memchr(bytes, '\0', len)) return 0;
    const rd_validators *file = &files[bytes[0] % (sizeof files / sizeof *files)];
    const rd_slice etag = opaque(file->etag);
    const size_t lines = len - 1;
    request.bytes = fuzz_copy(bytes + 1, lines);
    rd_head_init(&request.head);
    request.head.method_id = RD_METHOD_GET;
    read_lines(&request, request.bytes, lines);
    const int answer = rd_file_conditions(&request, file);
    check_answer(&request, file, answer);
    check_range(&request, file);
    request.bytes = realloc(request.bytes, len + etag.len);
    FUZZ_CHECK(request.bytes);
    if (etag.len) {
        memcpy(request.bytes + lines, etag.ptr, etag.len);
        check_own_lines(&request, file, lines, answer);
    }
    rd_head_clear(&request.head);
    free(request.bytes);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Evaluates conditions; see file_conditions.h.
 */
#include "files/file_conditions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "system/clock.h"
#include "http/date.h"
#include "http/field_list.h"
#include "system/platform.h"

static bool is_weak(rd_slice etag) {
    return etag.len >= 2 && memcmp(etag.ptr, "W/", 2) == 0;
}

static rd_slice without_weakness(rd_slice etag) {
    return is_weak(etag) ? rd_slice_of(etag.ptr + 2, etag.len - 2) : etag;
}

/* Compares ETags, section 8.8.3.2. `weakly`: a weak one may be equal, too. */
static bool is_same(rd_slice a, rd_slice b, bool weakly) {
    if (a.len == 0 || b.len == 0 || (!weakly && (is_weak(a) || is_weak(b)))) return false;
    return rd_slice_equal(without_weakness(a), without_weakness(b));
}

/*
 * Takes an ETag and the comma behind it off a list. Returns false at the end and at anything that
 * is not an ETag. Not rd_field_list_next(): between these quotes a backslash is an ordinary byte.
 */
static bool take_etag(rd_slice *list, rd_slice *etag) {
    rd_slice rest = *list;
    while (rest.len > 0 && (rd_field_is_blank((unsigned char)rest.ptr[0]) || rest.ptr[0] == ','))
        rest = rd_slice_of(rest.ptr + 1, rest.len - 1);
    const rd_slice opaque = without_weakness(rest);
    if (opaque.len < 2 || opaque.ptr[0] != '"') return false;
    const char *quote = memchr(opaque.ptr + 1, '"', opaque.len - 1);
    if (quote == NULL) return false;
    *etag = rd_slice_of(rest.ptr, (size_t)(quote + 1 - rest.ptr));
    *list = rd_field_trim(rd_slice_of(quote + 1, rest.len - etag->len));
    return list->len == 0 || list->ptr[0] == ',';
}

static bool is_listed(rd_slice list, rd_slice etag, bool weakly) {
    rd_slice listed;
    if (list.len == 1 && list.ptr[0] == '*') return true;
    while (take_etag(&list, &listed)) {
        if (is_same(listed, etag, weakly)) return true;
    }
    return false;
}

/* Lines of the same name are one list (section 5.3). */
static bool has_match(const rd_request *request, unsigned id, rd_slice etag, bool weakly) {
    const rd_head *head = &request->head;
    for (unsigned i = 0; i < head->header_count; i++) {
        if (head->headers[i].id != id) continue;
        if (is_listed(rd_request_header_value(request, &head->headers[i]), etag, weakly))
            return true;
    }
    return false;
}

/* The value of a field that is not a list; empty if it came twice. */
static rd_slice only_value(const rd_request *request, unsigned id) {
    const rd_head *head = &request->head;
    rd_slice value = {"", 0};
    unsigned lines = 0;
    for (unsigned i = 0; i < head->header_count; i++) {
        if (head->headers[i].id != id) continue;
        value = rd_request_header_value(request, &head->headers[i]);
        lines++;
    }
    return lines == 1 ? value : (rd_slice){"", 0};
}

/* The date in a field, -1 if there is no valid one. */
static int64_t date_of(const rd_request *request, unsigned id) {
    if (!rd_head_has(&request->head, id)) return -1;
    return rd_date_parse(only_value(request, id));
}

static bool is_failed(const rd_request *request, const rd_validators *validators) {
    if (rd_head_has(&request->head, RD_HEADER_IF_MATCH))
        return !has_match(request, RD_HEADER_IF_MATCH, validators->etag, false);
    const int64_t date = date_of(request, RD_HEADER_IF_UNMODIFIED_SINCE);
    return date >= 0 && validators->modified > date;
}

static bool is_not_modified(const rd_request *request, const rd_validators *validators) {
    if (rd_head_has(&request->head, RD_HEADER_IF_NONE_MATCH))
        return has_match(request, RD_HEADER_IF_NONE_MATCH, validators->etag, true);
    const int64_t date = date_of(request, RD_HEADER_IF_MODIFIED_SINCE);
    return validators->modified >= 0 && validators->modified <= date;
}

int rd_file_conditions(const rd_request *request, const rd_validators *validators) {
    if (!rd_request_reads(request)) return RD_CONDITION_NONE;
    if (is_failed(request, validators)) return RD_CONDITION_FAILED;
    return is_not_modified(request, validators) ? RD_CONDITION_NOT_MODIFIED : RD_CONDITION_NONE;
}

bool rd_file_range_applies(const rd_request *request, const rd_validators *validators) {
    if (!rd_head_has(&request->head, RD_HEADER_IF_RANGE)) return true;
    const rd_slice value = only_value(request, RD_HEADER_IF_RANGE);
    if (value.len > 0 && value.ptr[0] == '"') return is_same(value, validators->etag, false);
    return validators->modified >= 0 && rd_date_parse(value) == validators->modified;
}

size_t rd_file_etag(char etag[RD_ETAG_MAX], uint64_t size, int64_t mtime_ns, rd_slice encoding) {
    assert(encoding.len <= RD_ETAG_ENCODING_MAX);
    const int len =
        snprintf(etag, RD_ETAG_MAX, "\"%" PRIx64 "-%" PRIx64 "%s%.*s\"", size, (uint64_t)mtime_ns,
                 encoding.len > 0 ? "-" : "", (int)encoding.len, encoding.ptr);
    return (size_t)len;
}

int64_t rd_file_mtime_ns(const struct stat *facts) {
    return (int64_t)((uint64_t)facts->st_mtim.tv_sec * 1000000000 +
                     (uint64_t)facts->st_mtim.tv_nsec);
}

int64_t rd_file_modified(const struct stat *facts) {
    const int64_t seconds = facts->st_mtim.tv_sec;
    return seconds >= 0 && seconds <= rd_clock_wall_seconds() ? seconds : -1;
}

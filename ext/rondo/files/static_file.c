/* SPDX-License-Identifier: MIT
 *
 * Answers from a static folder; see static_file.h.
 */
#include "files/static_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"

#define NOT_FOUND_PAGE "/404.html"
#define FIELDS_MAX     (8 + RD_FILE_BODY_FIELDS)
#define FOR_EVER       "public, max-age=31536000, immutable"

rd_static *rd_static_new(rd_loop *loop, const char *folder, const rd_settings *settings,
                         bool alone) {
    rd_file_root root;
    if (rd_file_root_open(&root, folder) != 0) return NULL;
    rd_static *files = rd_alloc_zero(sizeof(*files));
    rd_file_cache_init(&files->cache, loop, root, (uint32_t)settings->static_cache_files,
                       settings->static_html != 0);
    files->boundaries = rd_boundaries_random();
    files->alone = alone;
    snprintf(files->cache_control, sizeof(files->cache_control), "max-age=%" PRId64,
             settings->static_max_age_ms / 1000);
    return files;
}

void rd_static_free(rd_static *files) {
    if (files == NULL) return;
    rd_file_cache_clear(&files->cache);
    rd_free(files);
}

/* ---- answers without a file ---- */

static void answer_text(rd_request *request, int status, const char *text) {
    const rd_field fields[] = {
        {RD_SLICE("content-type"), RD_SLICE("text/plain; charset=utf-8")},
        {RD_SLICE("x-content-type-options"), RD_SLICE("nosniff")},
        {status == 405 ? RD_SLICE("allow") : RD_SLICE("retry-after"),
         status == 405 ? RD_SLICE("GET, HEAD") : RD_SLICE("1")},
    };
    const rd_response_head head = {.status = status,
                                   .fields = fields,
                                   .count = status == 404 ? 2 : 3,
                                   .length = (int64_t)strlen(text)};
    if (request->responder->start(request, &head) != 0) return;
    request->responder->write(request, text, strlen(text));
    request->responder->finish(request);
}

static void answer_head(rd_request *request, const rd_response_head *head) {
    if (request->responder->start(request, head) == 0) request->responder->finish(request);
}

/* The path is made to begin with exactly one slash, so the redirect stays on this host. */
static void redirect_into(rd_request *request) {
    rd_slice path = rd_request_slice(request, request->head.path);
    rd_slice query = rd_request_slice(request, request->head.query);
    const size_t len = path.len + 1 + (query.len > 0 ? query.len + 1 : 0);
    char *location = rd_alloc(len);
    memcpy(location, path.ptr, path.len);
    location[path.len] = '/';
    if (query.len > 0) {
        location[path.len + 1] = '?';
        memcpy(location + path.len + 2, query.ptr, query.len);
    }
    const rd_field field = {RD_SLICE("location"), rd_slice_of(location, len)};
    answer_head(request, &(rd_response_head){.status = 301, .fields = &field, .count = 1});
    rd_free(location);
}

/* ---- answers with one ---- */

typedef struct rd_static_fields {
    rd_field fields[FIELDS_MAX];
    size_t count;
} rd_static_fields;

static void add(rd_static_fields *all, rd_slice name, rd_slice value) {
    all->fields[all->count++] = (rd_field){name, value};
}

static rd_slice cache_control(const rd_static *files, const rd_file_entry *entry) {
    if (entry->is.has_digest) return RD_SLICE(FOR_EVER);
    return rd_slice_of(files->cache_control, strlen(files->cache_control));
}

/* Fields that a 304 has, too: RFC 9110 section 15.4.5. */
static void add_validators(rd_static_fields *all, const rd_static *files,
                           const rd_file_entry *entry, const rd_file_variant *variant,
                           const rd_validators *validators) {
    add(all, RD_SLICE("etag"), validators->etag);
    if (validators->modified >= 0) {
        add(all, RD_SLICE("last-modified"),
            rd_slice_of(variant->modified, strlen(variant->modified)));
    }
    add(all, RD_SLICE("cache-control"), cache_control(files, entry));
    if (entry->is.available != 1u << RD_CODING_IDENTITY) {
        add(all, RD_SLICE("vary"), RD_SLICE("accept-encoding"));
    }
}

static void add_description(rd_static_fields *all, const rd_file_entry *entry, unsigned encoding) {
    static const rd_slice names[RD_CODING_COUNT] = {
        [RD_CODING_BR] = RD_SLICE_INIT("br"),
        [RD_CODING_ZSTD] = RD_SLICE_INIT("zstd"),
        [RD_CODING_GZIP] = RD_SLICE_INIT("gzip"),
    };
    add(all, RD_SLICE("content-type"), entry->is.type);
    if (encoding != RD_CODING_IDENTITY) add(all, RD_SLICE("content-encoding"), names[encoding]);
    add(all, RD_SLICE("accept-ranges"), RD_SLICE("bytes"));
    add(all, RD_SLICE("x-content-type-options"), RD_SLICE("nosniff"));
}

static void answer_file(rd_static *files, rd_request *request, const rd_file_entry *entry) {
    const unsigned encoding = entry->is.available == 1u << RD_CODING_IDENTITY
                                  ? RD_CODING_IDENTITY
                                  : rd_accept_encoding(request, entry->is.available);
    const rd_file_variant *variant = entry->is.variants[encoding];
    const rd_validators validators = {rd_slice_of(variant->etag, variant->etag_len),
                                      rd_file_modified(&variant->facts)};
    rd_static_fields all = {.count = 0};
    const int condition = rd_file_conditions(request, &validators);
    if (condition == RD_CONDITION_FAILED) {
        answer_head(request, &(rd_response_head){.status = 412});
        return;
    }
    add_validators(&all, files, entry, variant, &validators);
    rd_response_head head = {.status = 200, .fields = all.fields, .count = all.count};
    if (condition == RD_CONDITION_NOT_MODIFIED) {
        head.status = 304;
        head.length = -1;
        answer_head(request, &head);
        return;
    }
    add_description(&all, entry, encoding);
    head.count = all.count;
    const rd_file_body body = {variant->file, variant->bytes, (uint64_t)variant->facts.st_size};
    rd_file_body_send_wanted(request, &head, all.fields, &body, &validators, &files->boundaries);
}

/* ---- without an application ---- */

static void answer_not_found(rd_request *request, const rd_file_entry *page) {
    if (page == NULL || page->is.is_folder) {
        answer_text(request, 404, "not found\n");
        return;
    }
    const rd_file_variant *variant = page->is.variants[RD_CODING_IDENTITY];
    const rd_field fields[] = {
        {RD_SLICE("content-type"), page->is.type},
        {RD_SLICE("x-content-type-options"), RD_SLICE("nosniff")},
    };
    rd_response_head head = {.status = 404, .fields = fields, .count = 2};
    const rd_file_body body = {variant->file, variant->bytes, (uint64_t)variant->facts.st_size};
    rd_file_body_send(request, &head, &body);
}

/* ---- which file ---- */

static rd_slice path_of(const rd_request *request) {
    const rd_slice path = rd_request_slice(request, request->head.path);
    return path.len > 0 ? path : RD_SLICE("/"); /* absolute-form without a path */
}

static rd_static_take ask(rd_static *files, rd_request *request, rd_slice path, uint64_t now_ms,
                          rd_file_opening **opening) {
    switch (rd_file_cache_ask(&files->cache, path, now_ms, &request->file_entry, opening)) {
    case RD_FILE_THERE:
        return RD_STATIC_READY;
    case RD_FILE_ASKED:
        return RD_STATIC_WAITS;
    case RD_FILE_BUSY:
        return RD_STATIC_LATER;
    case RD_FILE_NOWHERE:
        break;
    }
    return RD_STATIC_NOT;
}

/* If there is an application, the request goes to it. Otherwise there may be a page for a 404. */
static rd_static_take seek_page(rd_static *files, rd_request *request, uint64_t now_ms,
                                rd_file_opening **opening) {
    if (!files->alone) return RD_STATIC_NOT;
    request->file_error = ENOENT;
    const rd_static_take take = ask(files, request, RD_SLICE(NOT_FOUND_PAGE), now_ms, opening);
    return take == RD_STATIC_NOT ? RD_STATIC_READY : take;
}

rd_static_take rd_static_ask(rd_static *files, rd_request *request, uint64_t now_ms,
                             rd_file_opening **opening) {
    request->file_entry = NULL;
    request->file_error = 0;
    if (!rd_request_reads(request)) return files->alone ? RD_STATIC_READY : RD_STATIC_NOT;
    const rd_static_take take = ask(files, request, path_of(request), now_ms, opening);
    return take == RD_STATIC_NOT ? seek_page(files, request, now_ms, opening) : take;
}

rd_static_take rd_static_opened(rd_static *files, rd_request *request,
                                const rd_file_opening *opened, uint64_t now_ms,
                                rd_file_opening **opening) {
    const bool is_page = request->file_error == ENOENT;
    if (opened->entry != NULL) {
        request->file_entry = opened->entry;
        request->file_entry->refs++;
        return RD_STATIC_READY;
    }
    if (is_page) return RD_STATIC_READY;
    if (!rd_file_may_pass(opened->error)) return seek_page(files, request, now_ms, opening);
    request->file_error = opened->error;
    return RD_STATIC_READY;
}

/* ---- the answer ---- */

static void answer(rd_static *files, rd_request *request) {
    const rd_file_entry *entry = request->file_entry;
    if (!rd_request_reads(request)) {
        answer_text(request, 405, "method not allowed\n");
    } else if (request->file_error == ENOENT) {
        answer_not_found(request, entry);
    } else if (request->file_error == ETIMEDOUT) {
        answer_text(request, 503, "the disk does not answer\n");
    } else if (request->file_error != 0) {
        answer_text(request, 503, "too many files are open\n");
    } else if (entry->is.is_folder) {
        redirect_into(request);
    } else {
        answer_file(files, request, entry);
    }
}

void rd_static_answer(rd_static *files, rd_request *request) {
    answer(files, request);
    files->answers++;
}

void rd_static_let_go(rd_request *request) {
    if (request->file_entry != NULL) rd_file_entry_unref(request->file_entry);
    request->file_entry = NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * A static folder: answers GET and HEAD for what is in it, without Ruby (RFC 9110 sections 8.8, 13
 * and 14). Under the loop lock.
 */
#ifndef RD_HTTP_STATIC_FILE_H
#define RD_HTTP_STATIC_FILE_H

#include "http/file_body.h"
#include "http/file_cache.h"
#include "http/request.h"

#define RD_CACHE_CONTROL_MAX 48

typedef struct rd_static {
    rd_file_cache cache;
    char cache_control[RD_CACHE_CONTROL_MAX];
    rd_boundaries boundaries;
    uint64_t answers;
    bool alone; /* there is no application: what is not in the folder is not there */
} rd_static;

/* NULL with errno when the folder cannot be read. */
rd_static *rd_static_new(const char *folder, const rd_settings *settings, bool alone);
void rd_static_free(rd_static *files);

/* Whether the request is answered here. */
bool rd_static_takes(rd_static *files, const rd_request *request, uint64_t now_ms);

/* The answer to a request that was taken; false if its file has gone since then. */
bool rd_static_answer(rd_static *files, rd_request *request, uint64_t now_ms);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A static folder: answers GET and HEAD for its files, without Ruby (RFC 9110 sections 8.8, 13 and
 * 14). Under the loop lock.
 */
#ifndef RD_FILES_STATIC_FILE_H
#define RD_FILES_STATIC_FILE_H

#include "files/file_body.h"
#include "files/file_cache.h"
#include "request/request.h"

#define RD_CACHE_CONTROL_MAX 48

typedef struct rd_static {
    rd_file_cache cache;
    char cache_control[RD_CACHE_CONTROL_MAX];
    rd_boundaries boundaries;
    uint64_t answers;
    bool alone; /* there is no application: everything else is answered 404 */
} rd_static;

/* Returns NULL with errno when the folder cannot be read. */
rd_static *rd_static_new(rd_loop *loop, const char *folder, const rd_settings *settings,
                         bool alone);

/* Only when no opening is in flight. */
void rd_static_free(rd_static *files);

typedef enum rd_static_take {
    RD_STATIC_NOT,   /* the request is for the application */
    RD_STATIC_READY, /* the request has all that rd_static_answer() needs, until
                      * rd_static_let_go() */
    RD_STATIC_WAITS, /* for *opening: put the request into its list, then call rd_static_opened() */
    RD_STATIC_LATER, /* call rd_static_ask() again when an opening has ended */
} rd_static_take;

/* Whether the static folder answers the request. */
rd_static_take rd_static_ask(rd_static *files, rd_request *request, uint64_t now_ms,
                             rd_file_opening **opening);

/* The same after the opening that the request has waited for. It may have to wait for another
 * one. */
rd_static_take rd_static_opened(rd_static *files, rd_request *request,
                                const rd_file_opening *opened, uint64_t now_ms,
                                rd_file_opening **opening);

/* If request->file_error is ETIMEDOUT, answers that the disk does not respond. */
void rd_static_answer(rd_static *files, rd_request *request);
void rd_static_let_go(rd_request *request);

#endif

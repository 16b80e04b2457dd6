/* SPDX-License-Identifier: MIT
 *
 * A file as the body of an answer: whole, one range of it, or several as multipart/byteranges
 * (RFC 9110 sections 14 and 15.3.7). Knows nothing of where the file comes from. Under the loop
 * lock.
 */
#ifndef RD_FILES_FILE_BODY_H
#define RD_FILES_FILE_BODY_H

#include "base/hash.h"
#include "files/file_conditions.h"
#include "http/request.h"

/* Room that the caller leaves behind head->count in its fields, for what is added here. */
#define RD_FILE_BODY_FIELDS 1

typedef struct rd_file_body {
    rd_file *file;     /* or NULL: */
    const char *bytes; /* the whole of it; copied */
    uint64_t size;
} rd_file_body;

/* Numbers that nobody can guess, one for each multipart/byteranges. */
typedef struct rd_boundaries {
    rd_hash_key key;
    uint64_t count;
} rd_boundaries;

rd_boundaries rd_boundaries_random(void);
uint64_t rd_boundary_next(rd_boundaries *boundaries);

/* The whole file, with this head, to which its length is added. 0 or RD_ERR_CLOSED, as below. */
int rd_file_body_send(rd_request *request, rd_response_head *head, const rd_file_body *body);

/* What of it the request wants: the whole (200), ranges (206), or something it does not have (416).
 * `fields` are those of the head; they are changed. */
int rd_file_body_send_wanted(rd_request *request, rd_response_head *head, rd_field *fields,
                             const rd_file_body *body, const rd_validators *validators,
                             rd_boundaries *boundaries);

#endif

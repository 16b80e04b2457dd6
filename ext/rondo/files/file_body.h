/* SPDX-License-Identifier: MIT
 *
 * A file as the body of an answer: whole, one range of it, or several as multipart/byteranges (RFC
 * 9110 sections 14 and 15.3.7). Independent of where the file comes from. Under the loop lock.
 */
#ifndef RD_FILES_FILE_BODY_H
#define RD_FILES_FILE_BODY_H

#include "base/hash.h"
#include "files/file_conditions.h"
#include "request/request.h"

/* Room that the caller leaves in its fields behind head->count, for fields that are added here. */
#define RD_FILE_BODY_FIELDS 1

typedef struct rd_file_body {
    rd_file *file;     /* or NULL, then: */
    const char *bytes; /* the whole file; copied */
    uint64_t size;
} rd_file_body;

/* Numbers that cannot be guessed, one for each multipart/byteranges. */
typedef struct rd_boundaries {
    rd_hash_key key;
    uint64_t count;
} rd_boundaries;

rd_boundaries rd_boundaries_random(void);
uint64_t rd_boundary_next(rd_boundaries *boundaries);

/* Sends the whole file with this head, and adds the length. Returns 0 or RD_ERR_CLOSED, as
 * below. */
int rd_file_body_send(rd_request *request, rd_response_head *head, const rd_file_body *body);

/* Sends what the request wants: the whole file (200), ranges of it (206), or a refusal of ranges
 * that it does not have (416). `fields` are those of the head; they are changed. */
int rd_file_body_send_wanted(rd_request *request, rd_response_head *head, rd_field *fields,
                             const rd_file_body *body, const rd_validators *validators,
                             rd_boundaries *boundaries);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What a request makes depend on the state of a file: If-Match and its kin, If-Range (RFC 9110,
 * section 13); and the ETag that they are about. Any thread.
 */
#ifndef RD_FILES_FILE_CONDITIONS_H
#define RD_FILES_FILE_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include <sys/stat.h>

#include "http/request.h"

/* What is known of the file (or of the encoding of it that would be sent). */
typedef struct rd_validators {
    rd_slice etag;    /* with its quotes, and W/ if it is weak; len 0: none */
    int64_t modified; /* seconds since the epoch; below 0: not known */
} rd_validators;

enum { RD_CONDITION_NONE = 0, RD_CONDITION_NOT_MODIFIED = 304, RD_CONDITION_FAILED = 412 };

/*
 * RD_CONDITION_*: the status that the conditions of a GET or HEAD lead to, in the order of section
 * 13.2.2; NONE if nothing stands against sending the file. Other methods' are the application's.
 */
int rd_file_conditions(const rd_request *request, const rd_validators *validators);

/* Whether a Range field counts: no If-Range, or one that names exactly this file. */
bool rd_file_range_applies(const rd_request *request, const rd_validators *validators);

/* When the file was written, for its ETag; a time beyond the year 2262, which means nothing, is
 * only a number. */
int64_t rd_file_mtime_ns(const struct stat *facts);

/* The same in seconds, or -1: what is before 1970 cannot be said in a Last-Modified, and what is
 * still to come must not be (RFC 9110 section 8.8.2.1). */
int64_t rd_file_modified(const struct stat *facts);

#define RD_ETAG_MAX          48
#define RD_ETAG_ENCODING_MAX 11

/*
 * Writes the strong ETag of a file (NUL-terminated), the same on every machine and after every
 * restart; its length. `encoding`: empty, or what it is sent as ("gz"), up to RD_ETAG_ENCODING_MAX
 * bytes: each has an ETag of its own.
 */
size_t rd_file_etag(char etag[RD_ETAG_MAX], uint64_t size, int64_t mtime_ns, rd_slice encoding);

#endif

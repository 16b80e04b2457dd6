/* SPDX-License-Identifier: MIT
 *
 * Conditions of a request on the state of a file: If-Match and similar fields, If-Range (RFC 9110,
 * section 13), and the ETag that they compare. Any thread.
 */
#ifndef RD_FILES_FILE_CONDITIONS_H
#define RD_FILES_FILE_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include <sys/stat.h>

#include "request/request.h"

/* What is known of the file, or of the encoding of it that would be sent. */
typedef struct rd_validators {
    rd_slice etag;    /* with its quotes, and W/ if it is weak; len 0: none */
    int64_t modified; /* seconds since the epoch; below 0: unknown */
} rd_validators;

enum { RD_CONDITION_NONE = 0, RD_CONDITION_NOT_MODIFIED = 304, RD_CONDITION_FAILED = 412 };

/*
 * RD_CONDITION_*: the status that the conditions of a GET or HEAD lead to, in the order of section
 * 13.2.2. NONE if no condition prevents sending the file. The application handles conditions of
 * other methods.
 */
int rd_file_conditions(const rd_request *request, const rd_validators *validators);

/* Whether a Range field applies: there is no If-Range, or it names exactly this file. */
bool rd_file_range_applies(const rd_request *request, const rd_validators *validators);

/* When the file was written, for its ETag. A time beyond the year 2262 overflows, and is only a
 * number. */
int64_t rd_file_mtime_ns(const struct stat *facts);

/* The same in seconds, or -1: a time before 1970 cannot be expressed in Last-Modified, and a future
 * one must not be sent (RFC 9110 section 8.8.2.1). */
int64_t rd_file_modified(const struct stat *facts);

#define RD_ETAG_MAX          48
#define RD_ETAG_ENCODING_MAX 11

/*
 * Writes the strong ETag of a file (NUL-terminated), the same on every machine and after every
 * restart. Returns its length. `encoding`: empty, or the encoding in which the file is sent ("gz"),
 * up to RD_ETAG_ENCODING_MAX bytes. Each encoding has an ETag of its own.
 */
size_t rd_file_etag(char etag[RD_ETAG_MAX], uint64_t size, int64_t mtime_ns, rd_slice encoding);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Which file below a static folder the path of a request names. The path is decoded once, and
 * refused where two readers might take it for two different files. Works on bytes only; file_open.h
 * looks at the disk. Any thread.
 */
#ifndef RD_FILES_FILE_PATH_H
#define RD_FILES_FILE_PATH_H

#include <stdbool.h>

#include "base/slice.h"

#define RD_FILE_PATH_MAX 4095

typedef struct rd_file_path {
    size_t len;
    bool is_folder; /* the path was "" or ended in '/' */
    char name[RD_FILE_PATH_MAX + 1];
} rd_file_path;

/*
 * Parses `path` as the client sent it, without the query. The name is relative, without a slash at
 * either end, and NUL-terminated; "" is the folder itself. Returns false when no file has that
 * name; then the result must not be used. Refused are malformed escapes, control bytes,
 * backslashes, escaped slashes, empty segments, segments that are too long, and all segments that
 * begin with a dot, including "." and ".."; only the first may be ".well-known" (RFC 8615). Bytes
 * from 0x80 on stand for themselves, whether UTF-8 or not.
 */
bool rd_file_path_parse(rd_file_path *result, rd_slice path);

#endif

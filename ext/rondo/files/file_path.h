/* SPDX-License-Identifier: MIT
 *
 * Which file below a static folder the path of a request names: decoded once, and refused where two
 * readers might take it for two different files. About bytes only; what lies there, file_open.h.
 * Any thread.
 */
#ifndef RD_FILES_FILE_PATH_H
#define RD_FILES_FILE_PATH_H

#include <stdbool.h>

#include "base/slice.h"

#define RD_FILE_PATH_MAX 4095

typedef struct rd_file_path {
    size_t len;
    bool is_folder; /* "" or ended in '/' */
    char name[RD_FILE_PATH_MAX + 1];
} rd_file_path;

/*
 * `path` as the client sent it, without the query. The name is relative, without a slash at either
 * end, terminated; "" is the folder itself. False, and the result is not to be used: no file has
 * that name. Refused are escapes that are none, control bytes, backslashes, slashes that were
 * escaped, empty segments, segments that are too long, and all that begin with a dot, "." and ".."
 * among them; only the first may be ".well-known" (RFC 8615). Bytes from 0x80 on mean themselves,
 * whether UTF-8 or not.
 */
bool rd_file_path_parse(rd_file_path *result, rd_slice path);

#endif

/* SPDX-License-Identifier: MIT
 *
 * From a request's path to a file's name; see file_path.h. Every byte is decoded once, so an
 * unescaped byte can never become an escape or a separator.
 */
#include "files/file_path.h"

#include "base/hex.h"

enum { SEGMENT_MAX = 255 }; /* NAME_MAX of Linux */

/* The next byte, decoded, or -1. Not called at a slash that separates segments. */
static int next_byte(rd_slice path, size_t *at) {
    int byte = (unsigned char)path.ptr[*at];

    if (byte == '%') {
        byte = rd_hex_escape(path.ptr + *at, path.len - *at);
        *at += 2;
    }
    ++*at;
    return byte < 0x20 || byte == 0x7f || byte == '/' || byte == '\\' ? -1 : byte;
}

static bool is_served(rd_slice segment, bool is_first) {
    if (segment.len == 0 || segment.len > SEGMENT_MAX) return false;
    if (segment.ptr[0] != '.') return true;
    return is_first && rd_slice_equal(segment, RD_SLICE(".well-known"));
}

bool rd_file_path_parse(rd_file_path *result, rd_slice path) {
    char *name = result->name;
    size_t len = 0, segment = 0; /* where in the name the current one begins */

    if (path.len == 0 || path.ptr[0] != '/') return false;
    for (size_t at = 1; at < path.len;) {
        if (path.ptr[at] == '/') {
            if (!is_served(rd_slice_of(name + segment, len - segment), segment == 0)) return false;
            name[len++] = '/'; /* there is room for one behind the longest name */
            segment = len;
            at++;
        } else {
            const int byte = next_byte(path, &at);

            if (byte < 0 || len >= RD_FILE_PATH_MAX) return false;
            name[len++] = (char)byte;
        }
    }
    result->is_folder = len == segment;
    if (!result->is_folder) {
        if (!is_served(rd_slice_of(name + segment, len - segment), segment == 0)) return false;
    } else if (len > 0) {
        len--; /* without the final slash */
    }
    name[len] = 0;
    result->len = len;
    return true;
}

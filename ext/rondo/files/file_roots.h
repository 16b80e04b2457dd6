/* SPDX-License-Identifier: MIT
 *
 * The folders below which an application may name files by any path (X-Sendfile). Each folder has
 * two names, the one given and the one with its symlinks resolved, because a path may use either:
 * /srv/app/current/files and /srv/app/releases/7/files. Reading them: any thread.
 */
#ifndef RD_FILES_FILE_ROOTS_H
#define RD_FILES_FILE_ROOTS_H

#include <stddef.h>

#include "files/file_open.h"

typedef struct rd_named_root {
    rd_file_root root;
    char *given, *resolved; /* owned, without a slash at the end */
} rd_named_root;

typedef struct rd_file_roots {
    rd_named_root *all;
    size_t count;
} rd_file_roots;

/* Adds a folder by its absolute path. Returns 0, or -1 with errno. */
int rd_file_roots_add(rd_file_roots *roots, const char *path);
void rd_file_roots_clear(rd_file_roots *roots);

/*
 * As rd_file_open(), for an absolute path. EACCES when the path is below none of the folders. If it
 * is below several, the first folder that has the file counts.
 */
int rd_file_roots_open(const rd_file_roots *roots, const char *path, struct stat *info);

#endif

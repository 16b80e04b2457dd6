/* SPDX-License-Identifier: MIT
 *
 * The folders below which an application may name files of any path (X-Sendfile). Each goes by two
 * names, the one it was given and the one behind its symlinks, because a path may come either way:
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

/* Adds a folder by its absolute path. 0, or -1 with errno. */
int rd_file_roots_add(rd_file_roots *roots, const char *path);
void rd_file_roots_clear(rd_file_roots *roots);

/*
 * As rd_file_open(), for an absolute path; EACCES when it lies below none of the folders. Where it
 * lies below several, the first one that has it counts.
 */
int rd_file_roots_open(const rd_file_roots *roots, const char *path, struct stat *info);

#endif

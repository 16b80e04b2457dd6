/* SPDX-License-Identifier: MIT
 *
 * Opens files beneath a folder, safe against any name and against renames at the same time: the
 * kernel keeps the lookup inside the folder, and only the opened descriptor itself is examined.
 * Names from clients go through file_path.h first; names from the application need not. Any thread.
 */
#ifndef RD_FILES_FILE_OPEN_H
#define RD_FILES_FILE_OPEN_H

#include <stdbool.h>
#include <sys/stat.h>

typedef struct rd_file_root {
    int fd; /* stays with the folder even if its name moves to another one */
    bool has_openat2;
    bool is_memory; /* on a file system without a disk */
} rd_file_root;

/*
 * Also finds out what the kernel offers. Returns 0, or -1 with errno: ENOENT, ENOTDIR, EACCES when
 * nothing in the folder can be looked up (permission to list it is not needed), EMFILE and other
 * errors of open(2).
 */
int rd_file_root_open(rd_file_root *root, const char *path);
void rd_file_root_close(rd_file_root *root);

/*
 * Opens a readable regular file beneath the root. Returns its descriptor, and in `info` what fstat
 * says of it. Returns -1 with errno otherwise: EISDIR for a folder ("" is the root), ENOENT for a
 * file that does not exist or is not served, and for temporary failures EMFILE, ENFILE, ENOMEM or
 * EAGAIN (endless renames). Symlinks are followed if they are relative and stay inside; without
 * openat2 (Linux before 5.6, some sandboxes) none is followed. A name with a ".." segment or a
 * leading slash is refused.
 */
int rd_file_open(const rd_file_root *root, const char *name, struct stat *info);

/* Whether rd_file_open() would certainly find nothing, as far as this can be known without asking
 * the disk (Linux 5.12); else false. */
bool rd_file_is_absent(const rd_file_root *root, const char *name);

/* Whether a path has a ".." segment, which could lead anywhere. */
bool rd_file_has_dotdot(const char *path);

/* Whether another try may succeed: the system lacks a resource at the moment. */
bool rd_file_may_pass(int error);

#endif

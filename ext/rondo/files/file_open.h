/* SPDX-License-Identifier: MIT
 *
 * Opening files that lie beneath a folder, whatever their names say and whoever renames meanwhile:
 * the kernel keeps the way inside, and only what the descriptor in hand is counts. Names that
 * clients send go through file_path.h first; the application's need not. Any thread.
 */
#ifndef RD_FILES_FILE_OPEN_H
#define RD_FILES_FILE_OPEN_H

#include <stdbool.h>
#include <sys/stat.h>

typedef struct rd_file_root {
    int fd; /* stays with the folder when its name goes to another */
    bool has_openat2;
    bool is_memory; /* of a file system that has no disk */
} rd_file_root;

/*
 * Finds out what the kernel offers, too. Returns 0, or -1 with errno: ENOENT, ENOTDIR, EACCES when
 * nothing in it can be looked up (reading its list is not needed), EMFILE and what else open(2)
 * has.
 */
int rd_file_root_open(rd_file_root *root, const char *path);
void rd_file_root_close(rd_file_root *root);

/*
 * A regular file beneath it that may be read: its descriptor, and what is known of that descriptor.
 * Else -1 with errno: EISDIR for a folder ("" is the root), ENOENT for what is not there or not
 * served, EMFILE, ENFILE, ENOMEM or EAGAIN (renames without end) for what may pass. Symlinks are
 * followed as long as they are relative and stay inside; without openat2 (Linux before 5.6, some
 * sandboxes) none is ever followed. A name with a ".." segment or a slash in front is nobody's.
 */
int rd_file_open(const rd_file_root *root, const char *name, struct stat *info);

/* Whether rd_file_open() would find nothing there for sure: known without asking the disk (Linux
 * 5.12), else false. */
bool rd_file_is_absent(const rd_file_root *root, const char *name);

/* Whether a path has a ".." segment, which may lead anywhere. */
bool rd_file_has_dotdot(const char *path);

/* Whether another try may find it: the system lacks something just now. */
bool rd_file_may_pass(int error);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A folder for one test program, gone at its end, with files whose times are data.
 */
#ifndef FOLDER_H
#define FOLDER_H

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define WRITTEN 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */

static char folder[] = "/tmp/rondo-folder-XXXXXX";

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where) {
    (void)facts, (void)kind, (void)where;
    return remove(path);
}

static void remove_folder(void) {
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

__attribute__((unused)) static void make_folder(void) {
    CHECK(mkdtemp(folder) != NULL);
    atexit(remove_folder);
}

__attribute__((unused)) static const char *in_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

__attribute__((unused)) static void make_file(const char *name, const char *bytes, size_t len,
                                              time_t written) {
    const struct timespec times[2] = {{.tv_sec = written}, {.tv_sec = written}};
    int fd = open(in_folder(name), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (!CHECK(fd >= 0)) return;
    CHECK_INT(write(fd, bytes, len), len);
    CHECK_INT(futimens(fd, times), 0);
    close(fd);
}

__attribute__((unused)) static void make_text(const char *name, const char *text) {
    make_file(name, text, strlen(text), WRITTEN);
}

#endif

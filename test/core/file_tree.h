/* SPDX-License-Identifier: MIT
 *
 * A real folder to open files beneath, and one beside it that nobody may get at: links that stay,
 * that leave and that never end, and all that is no file. For test_file_open.c and the fuzz target.
 */
#ifndef FILE_TREE_H
#define FILE_TREE_H

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TREE_LONG_50 "longlonglonglonglonglonglonglonglonglonglonglonglo"
#define TREE_LONG                                                                                  \
    TREE_LONG_50 TREE_LONG_50 TREE_LONG_50 TREE_LONG_50 TREE_LONG_50 "12345" /* 255 bytes */

typedef struct tree_row {
    char kind; /* d, f, p as in find(1), s socket, h hard link, l symlink, L with an absolute target
                */
    const char *path, *target; /* h, L: below the tree */
} tree_row;

static const tree_row tree_rows[] = {
    {'d', "root", NULL},
    {'d', "outside", NULL},
    {'f', "file", NULL},
    {'f', "outside/file", NULL},
    {'f', "outside/in", NULL},
    {'d', "outside/folder", NULL},
    {'f', "outside/folder/file", NULL},
    {'f', "root/file", NULL},
    {'f', "root/in", NULL},
    {'f', "root/.dot", NULL},
    {'f', "root/%2e", NULL},
    {'f', "root/..;", NULL},
    {'f', "root/...", NULL},
    {'f', "root/new\nline", NULL},
    {'f', "root/\xc3\xa4\xff", NULL},
    {'f', "root/\xc0\xae", NULL},
    {'f', "root/back\\slash", NULL},
    {'f', "root/" TREE_LONG, NULL},
    {'d', "root/folder", NULL},
    {'f', "root/folder/file", NULL},
    {'d', "root/folder/deep", NULL},
    {'f', "root/folder/deep/file", NULL},
    {'l', "root/folder/deep/up", "../../file"},
    {'l', "root/folder/deep/beside", "../file"},
    {'l', "root/folder/deep/up_out", "../../../outside/file"},
    {'l', "root/folder/deep/back_in", "../../../root/file"},
    {'d', "root/still", NULL},
    {'l', "root/still/up", "../file"},
    {'h', "root/hard", "root/file"},
    {'l', "root/link", "folder/file"},
    {'l', "root/link_to_link", "link"},
    {'l', "root/link_to_folder", "folder"},
    {'l', "root/link_to_root", "."},
    {'l', "root/link_to_dot", ".dot"},
    {'l', "root/link_to_fifo", "fifo"},
    {'l', "root/link_to_nothing", "nothing"},
    {'l', "root/loop", "loop"},
    {'l', "root/ping", "pong"},
    {'l', "root/pong", "ping"},
    {'l', "root/out", "../outside/file"},
    {'l', "root/out_folder", "../outside"},
    {'l', "root/out_up", ".."},
    {'L', "root/absolute", "root/file"},
    {'L', "root/absolute_out", "outside/file"},
    {'l', "root/magic", "/proc/self/fd/0"},
    {'l', "root/system", "/"},
    {'p', "root/fifo", NULL},
    {'s', "root/socket", NULL},
};

enum { TREE_ROWS = sizeof tree_rows / sizeof *tree_rows };

static char tree_path[] = "/tmp/rondo-test-XXXXXX"; /* filled in by tree_make() */
static struct stat tree_facts[TREE_ROWS];

/* The file's place in the tree; valid until the next call. */
static const char *tree_place(const char *path) {
    static char place[4096];

    snprintf(place, sizeof place, "%s/%s", tree_path, path);
    return place;
}

static bool tree_make_socket(const char *place) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool ok = fd >= 0;

    ok = ok && strlen(place) < sizeof address.sun_path;
    if (ok) memcpy(address.sun_path, place, strlen(place) + 1);
    ok = ok && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) close(fd);
    return ok;
}

static bool tree_make_file(const char *place) {
    const int fd = open(place, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    const bool ok = fd >= 0 && write(fd, "x", 1) == 1;

    if (fd >= 0) close(fd);
    return ok;
}

static bool tree_make_row(const tree_row *row) {
    char target[4096];
    const char *place;

    snprintf(target, sizeof target, "%s", tree_place(row->target ? row->target : ""));
    place = tree_place(row->path);
    switch (row->kind) {
    case 'd':
        return mkdir(place, 0755) == 0;
    case 'f':
        return tree_make_file(place);
    case 'p':
        return mkfifo(place, 0644) == 0;
    case 's':
        return tree_make_socket(place);
    case 'h':
        return link(target, place) == 0;
    default:
        return symlink(row->kind == 'L' ? target : row->target, place) == 0;
    }
}

/* Prints what failed, if anything did. */
static bool tree_make(void) {
    bool ok = mkdtemp(tree_path) && chmod(tree_path, 0755) == 0;

    for (int i = 0; ok && i < TREE_ROWS; i++)
        ok = tree_make_row(&tree_rows[i]) &&
             lstat(tree_place(tree_rows[i].path), &tree_facts[i]) == 0;
    if (!ok) perror(tree_path);
    return ok;
}

static int tree_remove_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static void tree_remove(void) {
    nftw(tree_path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The first file of the tree that is this file, or NULL. */
static const char *tree_path_of(const struct stat *info) {
    for (int i = 0; i < TREE_ROWS; i++) {
        if (tree_rows[i].kind == 'f' && tree_facts[i].st_ino == info->st_ino &&
            tree_facts[i].st_dev == info->st_dev)
            return tree_rows[i].path;
    }
    return NULL;
}

#endif

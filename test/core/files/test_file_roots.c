/* SPDX-License-Identifier: MIT
 *
 * files/file_roots against a real folder: which paths lie below one of the roots, by either of its
 * names, and what is opened then.
 */
#include "check.h"

#include <errno.h>

#include "file_tree.h"
#include "files/file_roots.h"

static rd_file_roots roots;

/* Opens tree/path; returns which file of the tree it is, or NULL with errno. */
static const char *opened(const char *path) {
    struct stat info;
    const int fd = rd_file_roots_open(&roots, path, &info);
    if (fd < 0) return NULL;
    close(fd);
    return tree_path_of(&info);
}

static const struct {
    const char *path, *file; /* below the tree */
    int error;
} rows[] = {
    {"root/folder/file", "root/folder/file", 0},
    {"root/folder//deep/./file", "root/folder/deep/file", 0},
    {"current/deep/file", "root/folder/deep/file", 0},
    {"root/folder/nothing", NULL, ENOENT},
    {"current/nothing", NULL, ENOENT},
    {"root/folder", NULL, EISDIR},
    {"root/folder/", NULL, EISDIR},
    {"current", NULL, EISDIR},
    /* paths that begin inside and leave */
    {"current/deep/up_out", NULL, ENOENT},
    {"root/folder/../folder/file", NULL, EACCES},
    {"root/folder/..", NULL, EACCES},
    {"current/../../outside/file", NULL, EACCES},
    /* elsewhere */
    {"root/file", NULL, EACCES},
    {"root/folderX/file", NULL, EACCES},
    {"current.old/file", NULL, EACCES},
    {"outside/file", NULL, EACCES},
    {"", NULL, EACCES},
};

static void test_below_and_outside(void) {
    CHECK_INT(rd_file_roots_add(&roots, tree_place("current/")), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *file = opened(tree_place(rows[i].path));
        const bool as_told = rows[i].file == NULL ? file == NULL && errno == rows[i].error
                                                  : file && strcmp(file, rows[i].file) == 0;
        CHECK_SAYS(as_told, "%s: %s, %s", rows[i].path, file ? file : "none", strerror(errno));
    }
    CHECK(opened("root/folder/file") == NULL && errno == EACCES);
    CHECK(opened("") == NULL && errno == EACCES);
    rd_file_roots_clear(&roots);
    CHECK(opened(tree_place("root/folder/file")) == NULL && errno == EACCES);
}

/* The first root that has the file. */
static void test_several(void) {
    CHECK_INT(rd_file_roots_add(&roots, tree_place("root/folder/deep")), 0);
    CHECK_INT(rd_file_roots_add(&roots, tree_place("outside")), 0);
    CHECK_STR(opened(tree_place("outside/file")), "outside/file");
    CHECK(opened(tree_place("root/folder/deep/up_out")) == NULL && errno == ENOENT);
    CHECK_INT(rd_file_roots_add(&roots, tree_path), 0);
    if (roots.all[2].root.has_openat2) {
        CHECK_STR(opened(tree_place("root/folder/deep/up_out")), "outside/file");
    }
    CHECK_STR(opened(tree_place("root/folder/deep/file")), "root/folder/deep/file");
    rd_file_roots_clear(&roots);
}

static void test_everything(void) {
    CHECK_INT(rd_file_roots_add(&roots, "/"), 0);
    CHECK_STR(opened(tree_place("file")), "file");
    CHECK(opened("/") == NULL && errno == EISDIR);
    rd_file_roots_clear(&roots);
}

static void test_folders_that_are_none(void) {
    CHECK(rd_file_roots_add(&roots, tree_place("nothing")) != 0 && errno == ENOENT);
    CHECK(rd_file_roots_add(&roots, tree_place("file")) != 0 && errno == ENOTDIR);
    CHECK_INT(roots.count, 0);
}

int main(void) {
    if (CHECK(tree_make() && symlink("root/folder", tree_place("current")) == 0)) {
        test_below_and_outside();
        test_several();
        test_everything();
        test_folders_that_are_none();
    }
    tree_remove();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Any name beneath a real folder with links out of it. Holds: what opens is one of the files
 * inside, for reading; walking opens nothing that openat2 does not; other answers are the promised
 * ones; no descriptor stays behind.
 */
#include "fuzz.h"

#include <errno.h>

#include "file_tree.h"
#include "files/file_open.h"

static rd_file_root root;

static void make_root(void) {
    FUZZ_CHECK(tree_make());
    FUZZ_CHECK(atexit(tree_remove) == 0);
    FUZZ_CHECK(rd_file_root_open(&root, tree_place("root")) == 0);
}

/* The number the next descriptor gets. */
static int lowest_free(void) {
    const int fd = dup(root.fd);

    close(fd);
    return fd;
}

static const char *check_inside(int fd, const struct stat *info) {
    const char *path = tree_path_of(info);

    FUZZ_CHECK(path && strncmp(path, "root/", 5) == 0);
    FUZZ_CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    FUZZ_CHECK((fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH)) == O_RDONLY);
    close(fd);
    return path;
}

/* The file's path in the tree, or NULL. */
static const char *opened(const rd_file_root *at, const char *name) {
    const int before = lowest_free();
    struct stat info;
    const int fd = rd_file_open(at, name, &info);
    const char *path = NULL;

    if (fd < 0) {
        FUZZ_CHECK(errno == ENOENT || errno == EISDIR || errno == EAGAIN);
    } else {
        path = check_inside(fd, &info);
    }
    FUZZ_CHECK(lowest_free() == before);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    char *name = malloc(len + 1);

    FUZZ_CHECK(name);
    if (len) memcpy(name, bytes, len);
    name[len] = 0;
    if (tree_facts[0].st_ino == 0) make_root();
    const rd_file_root walking = {.fd = root.fd, .has_openat2 = false};
    const char *by_kernel = opened(&root, name);
    const char *by_walking = opened(&walking, name);
    FUZZ_CHECK(!by_walking || by_walking == by_kernel);
    free(name);
    return 0;
}

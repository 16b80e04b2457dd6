/* SPDX-License-Identifier: MIT
 *
 * Room for nameless files, in a file system that is too small for them.
 */
#include "system/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "folder.h"

enum { SMALL = 4096, LARGE = 1 << 20, NOT_ALLOWED = 77 };

/* Returns 0 if the large file is refused, and the small one has all its blocks. */
static int look(void) {
    if (chdir(folder) != 0) return NOT_ALLOWED;
    const int fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat info;
    if (rd_fd_size(fd, LARGE, false) == 0 || errno != ENOSPC) return 1;
    if (rd_fd_size(fd, SMALL, false) != 0 || fstat(fd, &info) != 0) return 2;
    return info.st_size == SMALL && info.st_blocks > 0 ? 0 : 3;
}

/* A mount of a child's own, which ends with it. */
static int look_in_child(void) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        const bool is_made = unshare(CLONE_NEWNS) == 0 &&
                             mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                             mount("none", folder, "tmpfs", 0, "size=64k") == 0;
        _exit(is_made ? look() : NOT_ALLOWED);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_room(void) {
    make_folder();
    const int code = look_in_child();
    if (code == NOT_ALLOWED) printf("skipped: no right to mount\n");
    if (code != NOT_ALLOWED) CHECK_INT(code, 0);
}

static void test_memory_needs_none(void) {
    bool can_be_sealed;
    struct stat info;
    const int fd = rd_fd_nameless("test", &can_be_sealed);
    CHECK(fd >= 0);
    CHECK_INT(rd_fd_size(fd, LARGE, can_be_sealed), 0);
    CHECK_INT(fstat(fd, &info), 0);
    CHECK_INT(info.st_size, LARGE);
    close(fd);
}

int main(void) {
    test_room();
    test_memory_needs_none();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * files/file_open against a real folder: what is a file of it and what is none, by openat2 and by
 * walking; who may not read; who has no descriptors left; who renames at the same time.
 */
#include "check.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "file_tree.h"
#include "files/file_open.h"

#define SLASHES_16 "////////////////"

static rd_file_root root;

typedef struct row {
    const char *name, *path; /* path: which file of the tree is opened; NULL: none */
    int error;
    bool follows; /* needs openat2; without it ENOENT */
} row;

static const row rows[] = {
    {"file", "root/file", 0, false},
    {"folder/file", "root/folder/file", 0, false},
    {"folder/deep/file", "root/folder/deep/file", 0, false},
    {"hard", "root/file", 0, false},
    {".dot", "root/.dot", 0, false},
    {"...", "root/...", 0, false},
    {"..;", "root/..;", 0, false},
    {"%2e", "root/%2e", 0, false},
    {"new\nline", "root/new\nline", 0, false},
    {"\xc3\xa4\xff", "root/\xc3\xa4\xff", 0, false},
    {"\xc0\xae", "root/\xc0\xae", 0, false},
    {"back\\slash", "root/back\\slash", 0, false},
    {TREE_LONG, "root/" TREE_LONG, 0, false},
    /* other spellings */
    {"./file", "root/file", 0, false},
    {"folder//file", "root/folder/file", 0, false},
    {"./folder/.//./file", "root/folder/file", 0, false},
    {"folder" SLASHES_16 SLASHES_16 "file", "root/folder/file", 0, false},
    /* folders */
    {"", NULL, EISDIR, false},
    {".", NULL, EISDIR, false},
    {"./", NULL, EISDIR, false},
    {"folder", NULL, EISDIR, false},
    {"folder/", NULL, EISDIR, false},
    {"folder//", NULL, EISDIR, false},
    {"folder/.", NULL, EISDIR, false},
    {"folder/deep", NULL, EISDIR, false},
    /* missing files */
    {"nothing", NULL, ENOENT, false},
    {"FILE", NULL, ENOENT, false},
    {"folder/nothing", NULL, ENOENT, false},
    {"nothing/file", NULL, ENOENT, false},
    {"file/", NULL, ENOENT, false},
    {"file/.", NULL, ENOENT, false},
    {"file/file", NULL, ENOENT, false},
    {TREE_LONG "6", NULL, ENOENT, false},
    {TREE_LONG "6/file", NULL, ENOENT, false},
    /* up, absolute */
    {"..", NULL, ENOENT, false},
    {"../", NULL, ENOENT, false},
    {"../outside/file", NULL, ENOENT, false},
    {"../root/file", NULL, ENOENT, false},
    {"folder/..", NULL, ENOENT, false},
    {"folder/../file", NULL, ENOENT, false},
    {"folder/../../outside/file", NULL, ENOENT, false},
    {"folder/deep/../../../outside/file", NULL, ENOENT, false},
    {"nothing/../file", NULL, ENOENT, false},
    {"file/../file", NULL, ENOENT, false},
    {"./../outside/file", NULL, ENOENT, false},
    {"/", NULL, ENOENT, false},
    {"/file", NULL, ENOENT, false},
    {"//file", NULL, ENOENT, false},
    {"/dev/null", NULL, ENOENT, false},
    {"/etc/passwd", NULL, ENOENT, false},
    /* links */
    {"link", "root/folder/file", 0, true},
    {"link_to_link", "root/folder/file", 0, true},
    {"link_to_folder/file", "root/folder/file", 0, true},
    {"link_to_folder", NULL, EISDIR, true},
    {"link_to_root", NULL, EISDIR, true},
    {"link_to_root/link_to_root/file", "root/file", 0, true},
    {"link_to_dot", "root/.dot", 0, true},
    {"folder/deep/up", "root/file", 0, true},
    {"still/up", "root/file", 0, true},
    {"folder/deep/beside", "root/folder/file", 0, true},
    {"folder/deep/up_out", NULL, ENOENT, false},
    {"folder/deep/back_in", NULL, ENOENT, false},
    {"link_to_nothing", NULL, ENOENT, false},
    {"link_to_fifo", NULL, ENOENT, false},
    {"loop", NULL, ENOENT, false},
    {"loop/file", NULL, ENOENT, false},
    {"ping", NULL, ENOENT, false},
    {"out", NULL, ENOENT, false},
    {"out_folder", NULL, ENOENT, false},
    {"out_folder/file", NULL, ENOENT, false},
    {"out_folder/folder/file", NULL, ENOENT, false},
    {"out_up/outside/file", NULL, ENOENT, false},
    {"out_up/root/file", NULL, ENOENT, false},
    {"absolute", NULL, ENOENT, false},
    {"absolute_out", NULL, ENOENT, false},
    {"magic", NULL, ENOENT, false},
    {"system/etc/passwd", NULL, ENOENT, false},
    {"system/dev/null", NULL, ENOENT, false},
    /* not regular files */
    {"fifo", NULL, ENOENT, false},
    {"fifo/", NULL, ENOENT, false},
    {"socket", NULL, ENOENT, false},
};

/* The number that the next descriptor would get. It is the same before and after if no descriptor
 * leaks. */
static int lowest_free(void) {
    const int fd = dup(0);

    close(fd);
    return fd;
}

/* Which file of the tree it is; NULL with errno. */
static const char *opened(const char *name) {
    const int before = lowest_free();
    struct stat info = {0}, again;
    const int fd = rd_file_open(&root, name, &info);
    const int error = errno;

    if (fd >= 0) {
        CHECK_INT(fstat(fd, &again), 0);
        CHECK(again.st_ino == info.st_ino && again.st_size == info.st_size);
        CHECK_INT(fcntl(fd, F_GETFD), FD_CLOEXEC);
        CHECK_INT(fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH), O_RDONLY);
        close(fd);
    }
    CHECK_INT(lowest_free(), before);
    errno = error;
    if (fd < 0) return NULL;
    return tree_path_of(&info) ? tree_path_of(&info) : "a stranger";
}

/* `path` NULL: nothing is found, with this errno. */
static void check_opens(const char *name, const char *path, int error) {
    const char *actual = opened(name);
    const int actual_error = errno;

    CHECK_SAYS(!actual == !path && (!path || strcmp(actual, path) == 0), "%s (%d): %s", name,
               root.has_openat2, actual ? actual : strerror(actual_error));
    if (!actual) CHECK_SAYS(actual_error == error, "%s: %s", name, strerror(actual_error));
}

static void check_row(const row *row) {
    const bool is_lost = row->follows && !root.has_openat2;

    check_opens(row->name, is_lost ? NULL : row->path, is_lost ? ENOENT : row->error);
}

static void test_rows(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
}

static void test_long_names(void) {
    static char name[3 * PATH_MAX];

    for (size_t i = 0; i < sizeof name - 1; i++) name[i] = i % 2 ? '/' : '.';
    strcpy(name + PATH_MAX - 6, "/file"); /* as long as allowed */
    CHECK_INT(strlen(name), PATH_MAX - 1);
    check_opens(name, "root/file", 0);
    strcpy(name + PATH_MAX - 4, "file");
    CHECK_INT(strlen(name), PATH_MAX);
    check_opens(name, NULL, ENOENT);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    check_opens(name, NULL, ENOENT);
}

static rd_file_root root_at(const char *path) {
    rd_file_root at;

    CHECK_INT(rd_file_root_open(&at, tree_place(path)), 0);
    CHECK_INT(fcntl(at.fd, F_GETFD), FD_CLOEXEC);
    return at;
}

static void check_no_root(const char *place, int error) {
    const int before = lowest_free();
    rd_file_root at;

    errno = 0;
    CHECK_INT(rd_file_root_open(&at, place), -1);
    CHECK_SAYS(errno == error, "%s: %d", place, errno);
    CHECK_INT(at.fd, -1);
    CHECK_INT(lowest_free(), before);
}

static void test_roots(void) {
    rd_file_root at = root_at("root/link_to_folder"); /* the path to the root may contain a link */
    struct stat info;
    int fd;

    fd = rd_file_open(&at, "file", &info);
    CHECK(fd >= 0);
    close(fd);
    rd_file_root_close(&at);
    CHECK_INT(at.fd, -1);
    rd_file_root_close(&at);
    check_no_root(tree_place("root/file"), ENOTDIR);
    check_no_root(tree_place("root/file/"), ENOTDIR);
    check_no_root(tree_place("root/fifo"), ENOTDIR);
    check_no_root(tree_place("root/nothing"), ENOENT);
    check_no_root(tree_place("root/loop"), ELOOP);
    check_no_root("", ENOENT);
}

/* Runs as a user to whom permissions apply. */
static void test_permissions(void) {
    const bool is_root = geteuid() == 0;
    rd_file_root at;

    chmod(tree_place("root/.dot"), 0);
    chmod(tree_place("root/folder/deep"), 0600);
    chmod(tree_place("outside"), 0644);
    chmod(tree_place("outside/folder"), 0755);
    if (is_root) CHECK_INT(seteuid(65534), 0);
    check_opens(".dot", NULL, ENOENT);
    check_opens("folder/deep/file", NULL, ENOENT);
    check_no_root(tree_place("outside"), EACCES);
    check_no_root(tree_place("outside/folder"), EACCES);
    if (is_root) CHECK_INT(seteuid(0), 0);
    chmod(tree_place("outside"), 0111); /* no lookup needs to list it */
    if (is_root) CHECK_INT(seteuid(65534), 0);
    at = root_at("outside");
    rd_file_root_close(&at);
    if (is_root) CHECK_INT(seteuid(0), 0);
    chmod(tree_place("outside"), 0755);
    chmod(tree_place("root/folder/deep"), 0755);
    chmod(tree_place("root/.dot"), 0644);
}

/* Leaves room for `left` more descriptors. */
static void leave_descriptors(const struct rlimit *before, int left) {
    const struct rlimit few = {(rlim_t)(lowest_free() + left), before->rlim_max};

    CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static void test_no_descriptor_left(void) {
    struct rlimit before;
    struct stat info;
    rd_file_root at = {.fd = -1};
    int error;

    CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int left = 0; left < 2; left++) {
        leave_descriptors(&before, left);
        const int rc = rd_file_root_open(&at, tree_path);
        error = errno;
        setrlimit(RLIMIT_NOFILE, &before);
        CHECK(rc == -1 && error == EMFILE);
    }
    leave_descriptors(&before, 0);
    CHECK_INT(rd_file_open(&root, "file", &info), -1);
    error = errno;
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_INT(error, EMFILE);
    check_opens("file", "root/file", 0);
}

/* A FIFO's writer or a tape drive would notice; inotify stands in for them. */
static void check_is_opened(const char *name, bool is_opened) {
    char path[300], event[sizeof(struct inotify_event) + NAME_MAX + 1];
    const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    if (fd < 0) return; /* this user has no inotify instance left */
    snprintf(path, sizeof path, "root/%s", name);
    CHECK(inotify_add_watch(fd, tree_place(path), IN_OPEN) >= 0);
    CHECK(!opened(name) == !is_opened);
    CHECK_SAYS((read(fd, event, sizeof event) > 0) == is_opened, "%s", name);
    close(fd);
}

static void test_nothing_else_is_opened(void) {
    check_is_opened("file", true);
    check_is_opened("fifo", false);
    check_is_opened("folder", false);
    if (mknod(tree_place("root/null"), S_IFCHR | 0666, makedev(1, 3)) == 0) {
        check_is_opened("null", false);
        unlink(tree_place("root/null"));
    }
}

/* Mounts where this is allowed: only this process sees the mounts, and they end with it. */
static void test_bind_mount(void) {
    const rd_file_root before = root;
    char outside[PATH_MAX];

    if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return;
    snprintf(outside, sizeof outside, "%s", tree_place("outside"));
    CHECK_INT(mkdir(tree_place("root/mounted"), 0755), 0);
    if (mount(outside, tree_place("root/mounted"), NULL, MS_BIND, NULL) == 0) {
        root = root_at("root"); /* the root that was opened before sees the old mounts */
        for (int has = root.has_openat2; has >= 0; has--) {
            root.has_openat2 = has;
            check_opens("mounted/file", "outside/file", 0); /* mounts are deliberate */
            check_opens("mounted/../../outside/file", NULL, ENOENT);
        }
        rd_file_root_close(&root);
        root = before;
        umount2(tree_place("root/mounted"), MNT_DETACH);
    }
    rmdir(tree_place("root/mounted"));
}

/* Runs in a process of its own, because filters stay. 0: right; 1: wrong; 2: no filters here. */
static int serve_without_openat2(uint32_t error) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    struct stat info;
    rd_file_root at;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return 2;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) return 2;
    if (rd_file_root_open(&at, tree_place("root")) < 0 || at.has_openat2) return 1;
    return rd_file_open(&at, "folder/file", &info) < 0 || rd_file_open(&at, "link", &info) >= 0;
}

static void test_sandbox(void) {
    static const uint32_t errors[] = {EPERM, ENOSYS, EACCES};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        const pid_t child = fork();
        int status;

        if (child == 0) _exit(serve_without_openat2(errors[i]));
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    }
}

enum { ROUNDS = 3000, PLACE_MAX = sizeof tree_path + 64 };

static atomic_bool is_renaming;

/* Exchanges both names at once, if the file system can do that, and back again. */
static void swap_twice(const char *one, const char *other, const char *spare) {
    const unsigned exchange = 1u << 1; /* RENAME_EXCHANGE */
    for (int i = 0; i < 2; i++) {
        if (syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, exchange) == 0) continue;
        rename(one, spare);
        rename(other, one);
        rename(spare, other);
    }
}

/*
 * A folder and a file each become a link to the outside, and a folder again. A folder with links
 * that lead up goes to the outside, where up is another folder, and comes back.
 */
static void *rename_all(void *argument) {
    static const char *const paths[] = {"root/folder", "root/out_folder",  "root/in",
                                        "root/out",    "root/folder/deep", "outside/away"};
    char places[6][PLACE_MAX], spare[PLACE_MAX];

    (void)argument;
    for (int i = 0; i < 6; i++) snprintf(places[i], PLACE_MAX, "%s/%s", tree_path, paths[i]);
    snprintf(spare, sizeof spare, "%s/spare", tree_path);
    for (int i = 0; i < ROUNDS; i++) {
        swap_twice(places[0], places[1], spare);
        swap_twice(places[2], places[3], spare);
        rename(places[4], places[5]);
        rename(places[5], places[4]);
    }
    atomic_store(&is_renaming, false);
    return NULL;
}

/* A file that stays is found every time, even if renames elsewhere disturb the kernel's lookup. */
static void check_racing(const char *name, bool stays) {
    struct stat info;
    const int fd = rd_file_open(&root, name, &info);
    const char *path = fd >= 0 ? tree_path_of(&info) : NULL;

    if (fd < 0) {
        CHECK_SAYS(!stays && errno != EMFILE, "%s: %s", name, strerror(errno));
        return;
    }
    CHECK_SAYS(path && strncmp(path, "root/", 5) == 0, "%s is %s", name, path ? path : "new");
    close(fd);
}

static void test_race(void) {
    static const char *const names[] = {"folder/file",
                                        "out_folder/file",
                                        "in",
                                        "out",
                                        "folder/deep/file",
                                        "folder/deep/up",
                                        "folder/in",
                                        "folder/deep/beside",
                                        "link",
                                        "out_folder/deep",
                                        "link_to_folder/file"};
    pthread_t thread;

    atomic_store(&is_renaming, true);
    CHECK_INT(pthread_create(&thread, NULL, rename_all, NULL), 0);
    for (unsigned i = 0; atomic_load(&is_renaming); i++) {
        check_racing(names[i % (sizeof names / sizeof *names)], false);
        check_racing("hard", true);
        if (root.has_openat2) check_racing("still/up", true);
    }
    pthread_join(thread, NULL);
}

int main(void) {
    if (!tree_make()) return 1;
    root = root_at("root");
    test_roots();
    test_sandbox();
    test_bind_mount();
    for (int has = root.has_openat2; has >= 0; has--) {
        root.has_openat2 = has;
        test_rows();
        test_long_names();
        test_permissions();
        test_no_descriptor_left();
        test_nothing_else_is_opened();
        test_race();
    }
    rd_file_root_close(&root);
    tree_remove();
    return check_summary();
}

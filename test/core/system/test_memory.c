/* SPDX-License-Identifier: MIT
 *
 * Memory of processes, by a child that waits.
 */
#include "system/memory.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static bool nobody(const void *asker, uint64_t pid) {
    (void)asker;
    (void)pid;
    return false;
}

static bool is_named(const void *asker, uint64_t pid) {
    return *(const uint64_t *)asker == pid;
}

static void test_a_process(void) {
    CHECK(rd_memory_of((uint64_t)getpid()) > 0);
    CHECK_INT(rd_memory_of(1u << 30), 0); /* no such process */
}

static void test_children(void) {
    CHECK_INT(rd_memory_of_children(nobody, NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    uint64_t number = (uint64_t)child;
    CHECK(rd_memory_of_children(nobody, NULL) > 0);
    CHECK_INT(rd_memory_of_children(is_named, &number), 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK_INT(rd_memory_of_children(nobody, NULL), 0);
}

int main(void) {
    test_a_process();
    test_children();
    return check_summary();
}

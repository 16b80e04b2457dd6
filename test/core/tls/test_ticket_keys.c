/* SPDX-License-Identifier: MIT
 *
 * The keys of tickets: which ones encrypt and decrypt as hours pass, what other processes may do
 * with their memory, and what is no such memory.
 */
#include "tls/ticket_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "hand_clock.h"

#define HOUR_MS (UINT64_C(3600) * 1000)

static bool knows(const rd_ticket_keys *keys, const rd_ticket_key *key) {
    const rd_ticket_key *found = rd_ticket_keys_find(keys, key->name);
    return found != NULL && memcmp(found->cipher_key, key->cipher_key, 32) == 0 &&
           memcmp(found->mac_key, key->mac_key, 32) == 0;
}

static bool is_newest(const rd_ticket_keys *keys, const rd_ticket_key *key) {
    const rd_ticket_key *newest = rd_ticket_keys_newest(keys);
    return newest != NULL && memcmp(newest->name, key->name, sizeof(key->name)) == 0;
}

static void test_a_new_key_every_eight_hours(void) {
    rd_ticket_keys *keys = rd_ticket_keys_new(-1), *others;
    CHECK(keys != NULL);
    others = rd_ticket_keys_open(rd_ticket_keys_fd(keys));
    CHECK(others != NULL);
    CHECK_INT(rd_ticket_keys_fd(others), -1);
    const rd_ticket_key first = *rd_ticket_keys_newest(keys);
    pass_ms(RD_TICKET_KEY_MS - 1);
    rd_ticket_keys_renew(keys);
    CHECK(is_newest(keys, &first) && is_newest(others, &first));
    pass_ms(1);
    rd_ticket_keys_renew(others); /* which is not theirs to do */
    CHECK(is_newest(keys, &first));
    rd_ticket_keys_renew(keys);
    const rd_ticket_key second = *rd_ticket_keys_newest(others);
    CHECK(memcmp(first.name, second.name, sizeof(first.name)) != 0);
    CHECK(memcmp(first.mac_key, second.mac_key, 32) != 0);
    CHECK(knows(keys, &first) && knows(others, &first) && knows(others, &second));
    for (int i = 0; i < 2; i++) {
        CHECK(knows(others, &first));
        pass_ms(RD_TICKET_KEY_MS);
        rd_ticket_keys_renew(keys);
    }
    CHECK(!knows(others, &first) && !knows(keys, &first));
    CHECK(knows(others, &second) && !is_newest(others, &second));
    rd_ticket_keys_unref(others);
    rd_ticket_keys_unref(keys);
}

/* The owner was asleep, or has gone. */
static void test_keys_that_nobody_renews(void) {
    rd_ticket_keys *keys = rd_ticket_keys_new(-1);
    const rd_ticket_key first = *rd_ticket_keys_newest(keys);
    pass_ms(24 * HOUR_MS - 1);
    CHECK(knows(keys, &first) && is_newest(keys, &first));
    pass_ms(1);
    CHECK(!knows(keys, &first));
    CHECK(rd_ticket_keys_newest(keys) == NULL);
    rd_ticket_keys_renew(keys);
    CHECK(rd_ticket_keys_newest(keys) != NULL && !is_newest(keys, &first));
    CHECK(!knows(keys, &first));
    rd_ticket_keys_unref(keys);
}

static void test_the_next_program_goes_on_with_them(void) {
    rd_ticket_keys *before = rd_ticket_keys_new(-1);
    const rd_ticket_key first = *rd_ticket_keys_newest(before);
    pass_ms(5 * HOUR_MS);
    rd_ticket_keys *keys = rd_ticket_keys_new(rd_ticket_keys_fd(before));
    CHECK(keys != NULL && is_newest(keys, &first));
    rd_ticket_keys_unref(before);
    pass_ms(3 * HOUR_MS);
    rd_ticket_keys_renew(keys);
    CHECK(!is_newest(keys, &first) && knows(keys, &first));
    CHECK(rd_ticket_keys_fd(keys) >= 0);
    rd_ticket_keys_unref(keys);
}

static void test_nobody_else_can_write(void) {
    rd_ticket_keys *keys = rd_ticket_keys_new(-1);
    const int fd = rd_ticket_keys_fd(keys);
    char byte = 'x';
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK_INT(ftruncate(fd, 0), -1);
    CHECK_INT(ftruncate(fd, 100000), -1);
    CHECK_INT(pwrite(fd, &byte, 1, 0), -1);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    rd_ticket_keys_unref(keys);
}

static void refuse(int fd) {
    errno = 0;
    CHECK(rd_ticket_keys_open(fd) == NULL);
    CHECK_INT(errno, EINVAL);
    CHECK(rd_ticket_keys_new(fd) == NULL);
}

/* A descriptor that the environment names may be anything. */
static void test_what_is_of_another_kind(void) {
    rd_ticket_keys *keys = rd_ticket_keys_new(-1);
    const off_t size = lseek(rd_ticket_keys_fd(keys), 0, SEEK_END);
    rd_ticket_keys_unref(keys);
    int ends[2];
    CHECK_INT(pipe(ends), 0);
    refuse(ends[0]);
    close(ends[0]);
    close(ends[1]);
    const int sealed = memfd_create("other", MFD_ALLOW_SEALING);
    CHECK_INT(ftruncate(sealed, size), 0);
    refuse(sealed); /* it is not sealed yet */
    CHECK_INT(fcntl(sealed, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
    refuse(sealed); /* it has other bytes */
    close(sealed);
    CHECK(rd_ticket_keys_open(sealed) == NULL);
    CHECK_INT(errno, EBADF);
}

int main(void) {
    test_a_new_key_every_eight_hours();
    test_keys_that_nobody_renews();
    test_the_next_program_goes_on_with_them();
    test_nobody_else_can_write();
    test_what_is_of_another_kind();
    return check_summary();
}

/* SPDX-License-Identifier: MIT
 *
 * Memory behind a descriptor that only its maker can write; see ticket_keys.h.
 */
#include "tls/ticket_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "system/fd.h"
#include "system/platform.h"

#define MAGIC  UINT64_C(0x7c1e4b61a5d2309f) /* of this layout */
#define PLACES (RD_TICKET_KEYS_GOOD + 1)

typedef struct rd_ticket_memory {
    uint64_t magic;
    _Atomic uint64_t
        made; /* how many keys there were: the newest is in place (made - 1) % PLACES */
    rd_ticket_key places[PLACES];
} rd_ticket_memory;

struct rd_ticket_keys {
    atomic_uint refs;
    bool is_owner;
    int fd; /* -1: it is the owner's */
    rd_ticket_memory *memory;
};

/* ---- the memory ---- */

/* Nobody can cut it off beneath a reader. From here on no process can write to it, except through
 * what is mapped already. Systems without that seal have the others. */
static void seal(int fd) {
#ifdef RD_LINUX
    const int size = F_SEAL_SHRINK | F_SEAL_GROW;
#ifdef F_SEAL_FUTURE_WRITE
    if (fcntl(fd, F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) return;
#endif
    fcntl(fd, F_ADD_SEALS, size | F_SEAL_SEAL);
#else
    (void)fd;
#endif
}

#ifdef RD_LINUX
/* Where memfd_create(2) is missing or forbidden: a file of tmpfs takes no seals, and its name is
 * gone. */
static bool is_file_of_old(int fd, int seals) {
    struct stat file;
    return seals == F_SEAL_SEAL && fstat(fd, &file) == 0 && file.st_nlink == 0;
}
#endif

static bool is_sealed(int fd) {
#ifdef RD_LINUX
    const int wanted = F_SEAL_SHRINK | F_SEAL_GROW, seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && ((seals & wanted) == wanted || is_file_of_old(fd, seals));
#else
    (void)fd;
    return true;
#endif
}

static rd_ticket_memory *map(int fd, int access) {
    void *memory = mmap(NULL, sizeof(rd_ticket_memory), access, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return NULL;
#ifdef MADV_DONTDUMP
    madvise(memory, sizeof(rd_ticket_memory), MADV_DONTDUMP);
#endif
    return memory;
}

static rd_ticket_keys *new_keys(rd_ticket_memory *memory, int fd, bool is_owner) {
    rd_ticket_keys *keys = rd_alloc_zero(sizeof(*keys));
    atomic_init(&keys->refs, 1);
    keys->memory = memory;
    keys->fd = fd;
    keys->is_owner = is_owner;
    return keys;
}

rd_ticket_keys *rd_ticket_keys_open(int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0) return NULL;
    rd_ticket_memory *memory = NULL;
    if (file.st_size == (off_t)sizeof(*memory) && is_sealed(fd)) memory = map(fd, PROT_READ);
    if (memory != NULL && memory->magic == MAGIC) return new_keys(memory, -1, false);
    if (memory != NULL) munmap(memory, sizeof(*memory));
    errno = EINVAL;
    return NULL;
}

static rd_ticket_keys *create(void) {
    bool can_be_sealed;
    const int fd = rd_fd_nameless_secret("rondo tickets", &can_be_sealed);
    if (fd < 0) return NULL;
    rd_ticket_memory *memory = NULL;
    if (rd_fd_size(fd, sizeof(*memory), can_be_sealed) == 0) {
        memory = map(fd, PROT_READ | PROT_WRITE);
    }
    if (memory == NULL) {
        rd_close_keeping_errno(fd);
        return NULL;
    }
    if (can_be_sealed) seal(fd);
    memory->magic = MAGIC;
    return new_keys(memory, fd, true);
}

/* First the number: if the owner of `from` makes a key meanwhile, that is in none of these places.
 */
static void copy(rd_ticket_memory *to, const rd_ticket_memory *from) {
    const uint64_t made = atomic_load_explicit(&from->made, memory_order_acquire);
    memcpy(to->places, from->places, sizeof(to->places));
    atomic_store_explicit(&to->made, made, memory_order_release);
}

rd_ticket_keys *rd_ticket_keys_new(int before) {
    rd_ticket_keys *old = before < 0 ? NULL : rd_ticket_keys_open(before);
    if (before >= 0 && old == NULL) return NULL;
    rd_ticket_keys *keys = create();
    if (keys != NULL && old != NULL) copy(keys->memory, old->memory);
    if (old != NULL) rd_ticket_keys_unref(old);
    if (keys != NULL) rd_ticket_keys_renew(keys);
    return keys;
}

int rd_ticket_keys_fd(const rd_ticket_keys *keys) {
    return keys->fd;
}

rd_ticket_keys *rd_ticket_keys_ref(rd_ticket_keys *keys) {
    atomic_fetch_add(&keys->refs, 1);
    return keys;
}

void rd_ticket_keys_unref(rd_ticket_keys *keys) {
    if (atomic_fetch_sub(&keys->refs, 1) > 1) return;
    munmap(keys->memory, sizeof(*keys->memory));
    if (keys->fd >= 0) close(keys->fd);
    rd_free(keys);
}

/* ---- keys ---- */

/* The key that is `age` keys older than the newest of so many. */
static const rd_ticket_key *key_at(const rd_ticket_keys *keys, uint64_t made, unsigned age) {
    if (made <= age) return NULL;
    const rd_ticket_key *key = &keys->memory->places[(made - 1 - age) % PLACES];
    const uint64_t now = rd_clock_ms();
    return now < key->made_ms + RD_TICKET_KEY_MS * RD_TICKET_KEYS_GOOD ? key : NULL;
}

static uint64_t count_made(const rd_ticket_keys *keys) {
    return atomic_load_explicit(&keys->memory->made, memory_order_acquire);
}

const rd_ticket_key *rd_ticket_keys_newest(const rd_ticket_keys *keys) {
    return key_at(keys, count_made(keys), 0);
}

const rd_ticket_key *rd_ticket_keys_find(const rd_ticket_keys *keys,
                                         const unsigned char name[RD_TICKET_KEY_NAME_BYTES]) {
    const uint64_t made = count_made(keys);
    for (unsigned age = 0; age < RD_TICKET_KEYS_GOOD; age++) {
        const rd_ticket_key *key = key_at(keys, made, age);
        if (key != NULL && memcmp(key->name, name, sizeof(key->name)) == 0) return key;
    }
    return NULL;
}

/* Without random numbers the keys stay as they are, and the next call tries again. */
void rd_ticket_keys_renew(rd_ticket_keys *keys) {
    if (!keys->is_owner) return;
    rd_ticket_memory *memory = keys->memory;
    const uint64_t made = count_made(keys), now = rd_clock_ms();
    if (made > 0 && now < memory->places[(made - 1) % PLACES].made_ms + RD_TICKET_KEY_MS) return;
    rd_ticket_key *next = &memory->places[made % PLACES];
    if (RAND_bytes(next->name, sizeof(next->name)) != 1) return;
    if (RAND_priv_bytes(next->cipher_key, sizeof(next->cipher_key)) != 1) return;
    if (RAND_priv_bytes(next->mac_key, sizeof(next->mac_key)) != 1) return;
    next->made_ms = now;
    atomic_store_explicit(&memory->made, made + 1, memory_order_release);
}

/* SPDX-License-Identifier: MIT
 *
 * The keys of session tickets (RFC 5077), in memory that the processes of a server share. One
 * process owns them: it makes a new key every eight hours. The others only read, without a lock.
 *
 *     place    0      1      2      3
 *             old    old    newest  the next one is written here, and nobody looks at it
 *
 * The newest key encrypts, and the two before it still decrypt. So a ticket that was made just
 * before a new key came is good for sixteen more hours, its whole life. The bytes are in no file
 * that has a name, and in no dump of a process.
 */
#ifndef RD_TLS_TICKET_KEYS_H
#define RD_TLS_TICKET_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#define RD_TICKET_KEY_MS         (UINT64_C(8) * 3600 * 1000)
#define RD_TICKET_KEYS_GOOD      3
#define RD_TICKET_KEY_NAME_BYTES 16

typedef struct rd_ticket_key {
    unsigned char name[RD_TICKET_KEY_NAME_BYTES];
    unsigned char cipher_key[32];
    unsigned char mac_key[32];
    uint64_t made_ms; /* of the monotonic clock, which all processes share */
} rd_ticket_key;

typedef struct rd_ticket_keys rd_ticket_keys;

/* Keys of this process, which owns them, with a first key. With a descriptor of rd_ticket_keys_fd()
 * they begin as copies of those: the process before had them. It stays the caller's. Returns one
 * reference, or NULL with errno; EINVAL: the descriptor is of another kind. */
rd_ticket_keys *rd_ticket_keys_new(int before);

/* Keys that another process owns. The descriptor stays the caller's. The same errors. */
rd_ticket_keys *rd_ticket_keys_open(int fd);

/* For rd_ticket_keys_open() in other processes. It belongs to the keys. -1: another process has
 * it. */
int rd_ticket_keys_fd(const rd_ticket_keys *keys);

/* Any thread. */
rd_ticket_keys *rd_ticket_keys_ref(rd_ticket_keys *keys);
void rd_ticket_keys_unref(rd_ticket_keys *keys);

/* The owner: a new key if the newest one is old. Otherwise nothing happens. One thread at a time.
 */
void rd_ticket_keys_renew(rd_ticket_keys *keys);

/* The key that encrypts. NULL: there is no good one. */
const rd_ticket_key *rd_ticket_keys_newest(const rd_ticket_keys *keys);

/* The good key of that name, or NULL. Its bytes stay what they are for eight hours. */
const rd_ticket_key *rd_ticket_keys_find(const rd_ticket_keys *keys,
                                         const unsigned char name[RD_TICKET_KEY_NAME_BYTES]);

#endif

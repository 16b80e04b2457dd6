/* SPDX-License-Identifier: MIT
 *
 * SipHash-1-3 with a random key, for tables whose keys a stranger may choose: without the key he
 * cannot choose many that collide. And a quick hash for caches. Any thread.
 */
#ifndef RD_BASE_HASH_H
#define RD_BASE_HASH_H

#include <stdint.h>

#include "base/slice.h"

typedef struct rd_hash_key {
    uint64_t k0, k1;
} rd_hash_key;

/* A key that cannot be guessed. Ends the process if the system gives no random bytes. */
rd_hash_key rd_hash_key_random(void);

uint64_t rd_hash(rd_hash_key key, rd_slice bytes);

/* Quicker, but an attacker can make it collide. For tables that merely forget an entry then. */
uint32_t rd_hash_weak(rd_slice bytes);

#endif

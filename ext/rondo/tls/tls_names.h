/* SPDX-License-Identifier: MIT
 *
 * Which certificates a server name gets (SNI, RFC 6066, section 3): those that have exactly this
 * name, else those with a wildcard for its first label (RFC 9525, section 6.3). Names are compared
 * in lower case. One owner, no lock.
 */
#ifndef RD_TLS_TLS_NAMES_H
#define RD_TLS_TLS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define RD_TLS_NAME_MAX 255

typedef struct rd_tls_name {
    char *text; /* in lower case; "*.example.com" has the wildcard */
    uint32_t len;
    uint32_t set;
} rd_tls_name;

/* Zeroed: there are no names. */
typedef struct rd_tls_names {
    rd_tls_name *rows; /* sorted by rd_tls_names_sort() */
    size_t count;
} rd_tls_names;

/* Adds a name that is not there yet. One that is longer than a name can be is left out. */
void rd_tls_names_add(rd_tls_names *names, rd_slice name, uint32_t set);

/* Call it once, after the last name was added. */
void rd_tls_names_sort(rd_tls_names *names);

/* The set for the name that a client sent, which may be any bytes. -1: there is none. */
int64_t rd_tls_names_find(const rd_tls_names *names, rd_slice name);

void rd_tls_names_clear(rd_tls_names *names);

#endif

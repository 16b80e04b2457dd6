/* SPDX-License-Identifier: MIT
 *
 * Rondo::TLS::Tickets: the keys of session tickets as a Ruby object. With the GVL.
 */
#ifndef RD_RUBY_RB_TICKETS_H
#define RD_RUBY_RB_TICKETS_H

#include <ruby.h>

typedef struct rd_ticket_keys rd_ticket_keys;

/* The keys of a Rondo::TLS::Tickets, which owns them; NULL for nil. */
rd_ticket_keys *rd_ticket_keys_of(VALUE tickets);

void rd_init_tickets(VALUE tls);

#endif

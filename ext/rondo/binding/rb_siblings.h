/* SPDX-License-Identifier: MIT
 *
 * A server's row of the scoreboard and its place among the workers of a cluster, as options and
 * methods of Rondo::Server::Core. With the GVL. See server/siblings.h.
 */
#ifndef RD_RUBY_SIBLINGS_H
#define RD_RUBY_SIBLINGS_H

#include "binding/rb_binding.h"

/* Reads the options scoreboard, row, inbox, inboxes. May raise. */
void rd_attach_siblings(rd_binding *binding, VALUE options);

void rd_init_core_siblings(VALUE core);

#endif

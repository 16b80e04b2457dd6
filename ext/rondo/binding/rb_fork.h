/* SPDX-License-Identifier: MIT
 *
 * What a fork means for the servers of this process. Under the GVL.
 */
#ifndef RD_BINDING_FORK_H
#define RD_BINDING_FORK_H

#include "binding/rb_binding.h"

/* Whether this process is a child that the application forked: it has copies of everything but the
 * sockets, and the poller is still the parent's, so it must neither serve nor tidy up. */
bool rd_is_forked(const rd_binding *binding);
/* How many forks lie between this process and the one that began. */
unsigned rd_forks(void);

/* Those with a server, of this process: none of its parent's. Under the GVL, which whoever forks
 * has. */
extern rd_list rd_all_bindings;

#define RD_EACH_BINDING(binding, node)                                                             \
    for (rd_list *node = rd_all_bindings.next; node != &rd_all_bindings; node = node->next)        \
        for (rd_binding *binding = RD_CONTAINER(node, rd_binding, in_all); binding != NULL;        \
             binding = NULL)

void rd_init_forks(void);

#endif

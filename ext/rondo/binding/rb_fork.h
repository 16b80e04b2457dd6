/* SPDX-License-Identifier: MIT
 *
 * What a fork does to the servers of this process. Under the GVL.
 */
#ifndef RD_BINDING_FORK_H
#define RD_BINDING_FORK_H

#include "binding/rb_binding.h"

/* Whether this process is a child that the application forked. The child has copies of everything
 * except the sockets, and shares the poller with its parent. So it must not serve or clean up. */
bool rd_is_forked(const rd_binding *binding);
/* Number of forks between the first process and this one. */
unsigned rd_forks(void);

/* All bindings of this process that have a server, none of its parent's. Under the GVL, which a
 * thread that forks holds. */
extern rd_list rd_all_bindings;

#define RD_EACH_BINDING(binding, node)                                                             \
    for (rd_list *node = rd_all_bindings.next; node != &rd_all_bindings; node = node->next)        \
        for (rd_binding *binding = RD_CONTAINER(node, rd_binding, in_all); binding != NULL;        \
             binding = NULL)

void rd_init_forks(void);

#endif

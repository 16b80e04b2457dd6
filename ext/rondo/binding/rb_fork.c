/* SPDX-License-Identifier: MIT
 *
 * What a fork does to the servers of this process; server/server.h says why they are held. The
 * child counts the fork, so that code with a binding can tell that it is the parent's. Then it
 * forgets all bindings. See rb_fork.h.
 */
#include "binding/rb_fork.h"

#include <pthread.h>

#include "server/server.h"

rd_list rd_all_bindings = {&rd_all_bindings, &rd_all_bindings};

static unsigned fork_count;

unsigned rd_forks(void) {
    return fork_count;
}

bool rd_is_forked(const rd_binding *binding) {
    return binding->forks != fork_count;
}

static void before_fork(void) {
    RD_EACH_BINDING(binding, node) rd_server_hold(binding->server);
}

static void after_fork_in_parent(void) {
    RD_EACH_BINDING(binding, node) rd_server_release(binding->server);
}

static void after_fork_in_child(void) {
    fork_count++;
    for (rd_list *node; (node = rd_list_shift(&rd_all_bindings)) != NULL;) {
        rd_server_abandon(RD_CONTAINER(node, rd_binding, in_all)->server);
    }
}

void rd_init_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

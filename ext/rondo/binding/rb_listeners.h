/* SPDX-License-Identifier: MIT
 *
 * The listening sockets of a server as Ruby asks for them. With the GVL; the loop lock is taken
 * inside.
 */
#ifndef RD_BINDING_LISTENERS_H
#define RD_BINDING_LISTENERS_H

#include "binding/rb_binding.h"

/* listen, keep_files, close_listeners, retire and addresses of Rondo::Server::Core. */
void rd_init_core_listening(VALUE core);

#endif

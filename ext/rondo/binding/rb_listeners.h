/* SPDX-License-Identifier: MIT
 *
 * The listening sockets of a server, for Ruby. With the GVL; takes the loop lock.
 */
#ifndef RD_BINDING_LISTENERS_H
#define RD_BINDING_LISTENERS_H

#include "binding/rb_binding.h"

/* listen, show_certificates, keep_files, close_listeners, retire and addresses of
 * Rondo::Server::Core. */
void rd_init_core_listening(VALUE core);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Listening sockets of a server as Ruby asks for them. With the GVL; the loop lock is taken inside.
 */
#ifndef RD_RUBY_LISTEN_H
#define RD_RUBY_LISTEN_H

#include "ruby/rb_binding.h"

/* Opens the listening socket of {kind:, host:, port:, path:, fd:, mode:, …}; allocated by rd_alloc.
 * Raises AddressError. */
rd_listener *rd_listener_from(const rd_settings *settings, VALUE address);

/* listen, keep_files, close_listeners, retire and addresses of Rondo::Server::Core. */
void rd_init_core_listening(VALUE core);

#endif

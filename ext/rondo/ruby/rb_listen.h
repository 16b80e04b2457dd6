/* SPDX-License-Identifier: MIT
 *
 * Opens listening sockets for Ruby. With the GVL.
 */
#ifndef RD_RUBY_LISTEN_H
#define RD_RUBY_LISTEN_H

#include <ruby.h>

#include "base/settings.h"
#include "server/server.h"

/* Opens the listening socket of {kind:, host:, port:, path:, fd:, mode:, …}; allocated by rd_alloc.
 * `transport` says what its connections speak; NULL: they are plain. Raises AddressError. */
rd_listener *rd_listener_from(const rd_settings *settings, VALUE address,
                              const rd_transport *transport);

#endif

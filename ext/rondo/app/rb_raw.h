/* SPDX-License-Identifier: MIT
 *
 * Handlers of raw connections. With the GVL.
 */
#ifndef RD_APP_RAW_H
#define RD_APP_RAW_H

#include "binding/rb_binding.h"

/* The connection that a listener accepted has this handler from now on. Nil and false: it stays
 * unclaimed. Raises only before that. */
void rd_raw_claim(rd_binding *binding, rd_endpoint *endpoint, VALUE handler);

/* `attach_fd` of Rondo::Server::Core. */
void rd_init_core_raw(VALUE core);

#endif

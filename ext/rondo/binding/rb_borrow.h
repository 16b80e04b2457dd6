/* SPDX-License-Identifier: MIT
 *
 * Strings whose bytes stand in output queues. With the GVL; the loop lock is taken inside.
 */
#ifndef RD_BINDING_BORROW_H
#define RD_BINDING_BORROW_H

#include "binding/rb_binding.h"

/* What the GC must not take while its bytes are queued: the release to queue with them. */
rd_release *rd_borrow_string(rd_binding *binding, VALUE frozen);

/* Forgets the Strings that the core has let go of. */
void rd_borrow_release_all(rd_binding *binding);

void rd_borrow_clear(rd_binding *binding);

#endif

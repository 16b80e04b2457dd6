/* SPDX-License-Identifier: MIT
 *
 * Strings whose bytes are in output queues. With the GVL; takes the loop lock.
 */
#ifndef RD_BINDING_BORROWED_H
#define RD_BINDING_BORROWED_H

#include "binding/rb_binding.h"

/* Keeps a String alive while its bytes are queued. Returns the release to queue with them. */
rd_release *rd_borrow_string(rd_binding *binding, VALUE frozen);

/* Lets the GC have the Strings that the core has released. */
void rd_borrowed_release_all(rd_binding *binding);

void rd_borrowed_clear(rd_binding *binding);

#endif

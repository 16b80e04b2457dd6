/* SPDX-License-Identifier: MIT
 *
 * Strings that many requests have in common. With the GVL.
 */
#ifndef RD_BINDING_CACHE_H
#define RD_BINDING_CACHE_H

#include "binding/rb_binding.h"

void rd_cache_init(rd_binding *binding);
void rd_cache_clear(rd_binding *binding);

uint32_t rd_address_hash(const rd_address *address);

VALUE rd_cached_value(rd_binding *binding, rd_slice bytes); /* frozen, shared */
VALUE rd_cached_name(rd_binding *binding, rd_slice name);   /* "HTTP_X_FOO" for "x-foo" */

#endif

/* SPDX-License-Identifier: MIT
 *
 * Rondo::Input, the rack.input of a request. With the GVL.
 */
#ifndef RD_RACK_INPUT_H
#define RD_RACK_INPUT_H

#include "rack/rb_call.h"

void rd_init_input(VALUE rondo);
VALUE rd_input_new(const rd_call *call);
VALUE rd_input_empty(void);

/* The request ends: reading raises from now on. */
void rd_input_detach(VALUE input);

#endif

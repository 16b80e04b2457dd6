/* SPDX-License-Identifier: MIT
 *
 * Rondo::Client#event. With the GVL.
 */
#ifndef RD_APP_CLIENT_EVENT_H
#define RD_APP_CLIENT_EVENT_H

#include <ruby.h>

/* Adds `event`. YARD finds the class by its name, which is the same in all files. */
void rd_init_client_event(VALUE cClient);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Rondo::Client#event. With the GVL.
 */
#ifndef RD_APP_CLIENT_EVENT_H
#define RD_APP_CLIENT_EVENT_H

#include <ruby.h>

/* Adds event. The class has one name in all files, by which YARD finds it. */
void rd_init_client_event(VALUE cClient);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Events on their way to the application. On an application thread.
 */
#ifndef RD_APP_EVENTS_H
#define RD_APP_EVENTS_H

#include "binding/rb_binding.h"

/* Calls the handler, or the block of a subscription. Returns the state of a Thread#kill, or 0. */
int rd_event_dispatch(rd_binding *binding, const rd_event *event);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What the log says, in the words of the reporter (lib/rondo/reporter.rb). With the GVL.
 */
#ifndef RD_BINDING_REPORT_H
#define RD_BINDING_REPORT_H

#include "binding/rb_binding.h"

/* An error of the application, with the env of its request, or nil where it belongs to none. What
 * the report itself raises is dropped; the state of a Thread#kill, or 0. */
int rd_report_error(const rd_binding *binding, VALUE error, VALUE env);

/* What was refused, cut or closed since the last call. Raises what is meant for the thread. */
void rd_report_refusals(rd_binding *binding);

#endif

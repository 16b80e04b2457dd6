/* SPDX-License-Identifier: MIT
 *
 * What is logged. The reporter has the words (lib/rondo/reporter.rb). With the GVL.
 */
#ifndef RD_BINDING_REPORT_H
#define RD_BINDING_REPORT_H

#include "binding/rb_binding.h"

/* Reports an error of the application, with the env of its request, or nil if there is none. What
 * the report itself raises is dropped. Returns the state of a Thread#kill, or 0. */
int rd_report_error(const rd_binding *binding, VALUE error, VALUE env);

/* Reports what was refused, cut or closed since the last call. Raises only what is meant for the
 * thread. */
void rd_report_incidents(rd_binding *binding);

#endif

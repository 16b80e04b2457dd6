/* SPDX-License-Identifier: MIT
 *
 * Settings and options of Rondo::Server::Core. With the GVL.
 */
#ifndef RD_THREADS_OPTIONS_H
#define RD_THREADS_OPTIONS_H

#include "binding/rb_binding.h"

/* Reads {setting: Integer}. Raises SettingError. */
void rd_take_settings(rd_settings *settings, VALUE numbers);

/* Reads {option: Object} for a binding that has its server. Raises SettingError, and
 * SystemCallError for a descriptor that cannot be used. */
void rd_take_options(rd_binding *binding, VALUE options);

#endif

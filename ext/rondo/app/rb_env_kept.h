/* SPDX-License-Identifier: MIT
 *
 * The env of an upgraded connection, kept small until it is read. With the GVL.
 */
#ifndef RD_APP_ENV_KEPT_H
#define RD_APP_ENV_KEPT_H

#include "rack/rb_call.h"

VALUE rd_env_keep(rd_call *call);
VALUE rd_env_restore(rd_binding *binding, VALUE kept);

#endif

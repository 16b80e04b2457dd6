/* SPDX-License-Identifier: MIT
 *
 * Rondo::Server::Core. With the GVL.
 */
#ifndef RD_THREADS_SERVER_H
#define RD_THREADS_SERVER_H

#include <ruby.h>

void rd_init_server(VALUE rondo);

#endif

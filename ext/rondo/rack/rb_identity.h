/* SPDX-License-Identifier: MIT
 *
 * Keys of the env about the client's certificate and about TLS: on connections whose listener asks
 * for certificates, or with the setting tls_env. Their values are made once for a connection.
 */
#ifndef RD_RACK_IDENTITY_H
#define RD_RACK_IDENTITY_H

#include "rack/rb_call.h"

/* For a connection that is layered. Under the lock, with the GVL; makes no object of Ruby. */
void rd_identity_note(rd_call *call);

/* Adds the keys, and drops what was noted. With the GVL. */
void rd_identity_add(rd_call *call);

/* Frees what was noted, if anything: the call may have failed before its keys were made. */
void rd_identity_drop(rd_call *call);

#endif

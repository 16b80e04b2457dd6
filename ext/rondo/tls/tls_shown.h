/* SPDX-License-Identifier: MIT
 *
 * For which hosts the certificate stands that a client was shown. Browsers send requests for
 * several hosts on one connection of HTTP/2 when its certificate names them all (RFC 9113, section
 * 9.1.1). Under the loop lock.
 */
#ifndef RD_TLS_TLS_SHOWN_H
#define RD_TLS_TLS_SHOWN_H

#include "tls/tls_flow.h"

/* Of the transport; see transport.h. */
bool rd_tls_stands_for(rd_conn *conn, rd_slice host);

#endif

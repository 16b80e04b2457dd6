/* SPDX-License-Identifier: MIT
 *
 * HTTP/1.1 as the table of protocols has it. http1_state.h has the states.
 */
#ifndef RD_PROTOCOL_HTTP1_H
#define RD_PROTOCOL_HTTP1_H

#include "transport/protocol.h"

extern const rd_protocol rd_protocol_http1;

#endif

/* SPDX-License-Identifier: MIT
 *
 * Who may ask the control server for what: a client with the token, or without one a client of this
 * machine that is no page in a browser. Any thread.
 */
#ifndef RD_CONTROL_ACCESS_H
#define RD_CONTROL_ACCESS_H

#include "http/request.h"
#include "transport/listener.h"

/* Why the request is refused, or NULL. `token`: NULL where the server has none. */
const char *rd_access_refusal(const char *token, const rd_request *request);

/* The methods that a page or a verb has, as Allow lists them. */
const char *rd_access_methods(const char *token, const rd_request *request, bool is_verb);
bool rd_access_has_method(const rd_request *request, const char *methods);

/* Whether others than this machine can reach the listener. */
bool rd_access_is_public(const rd_listener *listener);

#endif

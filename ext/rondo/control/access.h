/* SPDX-License-Identifier: MIT
 *
 * Which requests the control server accepts: those with the token. If there is no token, those of
 * clients on this machine, except pages in a browser. Any thread.
 */
#ifndef RD_CONTROL_ACCESS_H
#define RD_CONTROL_ACCESS_H

#include "request/request.h"
#include "listen/listener.h"

#define RD_ACCESS_WRONG_TOKEN "wrong or missing token"

/* Returns why the request is refused, or NULL. `token`: NULL if the server has none. `is_page`: it
 * asks for something to look at, so it may come from a page that this server has sent, and its
 * token may be a password of the browser. */
const char *rd_access_refusal(const char *token, const rd_request *request, bool is_page);

/* The allowed methods of a page or a verb, as Allow lists them. */
const char *rd_access_methods(const char *token, const rd_request *request, bool is_verb);
bool rd_access_has_method(const rd_request *request, const char *methods);

/* Whether other machines can reach the listener. */
bool rd_access_is_public(const rd_listener *listener);

#endif

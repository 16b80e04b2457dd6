/* SPDX-License-Identifier: MIT
 *
 * Whether a request of the control server has the right token: as `token=` in the query, which is
 * Puma's way, or as `Authorization: Bearer` (RFC 6750). Any thread.
 */
#ifndef RD_CONTROL_TOKEN_H
#define RD_CONTROL_TOKEN_H

#include "request/request.h"

/* Takes as long for a wrong token as for the right one. */
bool rd_token_matches(const char *token, const rd_request *request);

/* The same, or the token is the password of `Authorization: Basic` (RFC 7617), whoever the user is.
 * A browser that has asked for it sends it with every request, also for pages of other sites. */
bool rd_token_is_password(const char *token, const rd_request *request);

#endif

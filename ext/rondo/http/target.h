/* SPDX-License-Identifier: MIT
 *
 * Request targets and authorities (RFC 9112, section 3.2; RFC 3986, section 3.2): which of the four
 * forms a target has, where path and query are, whether host and port are well formed. Nothing is
 * decoded here. Used by protocol/; the parser has checked the bytes before. Any thread.
 */
#ifndef RD_HTTP_TARGET_H
#define RD_HTTP_TARGET_H

#include "http/head.h"

/*
 * Reads head->target of `buf`. Sets form, path and query, and for an absolute-form or
 * authority-form also authority, host and port. Needs method_id. Returns 0 or an error.
 */
int rd_target_parse(rd_head *head, const char *buf, bool allow_connect);

/*
 * Checks host[:port] and splits it: *host_len bytes of host (brackets included), *port, 0 if there
 * is none. Refuses user information, a path, a comma, blanks, an empty host, a port above 65535,
 * and an IP literal that is not an IPv6 address. Returns 0 or RD_ERR_HOST_INVALID.
 */
int rd_authority_parse(const char *ptr, size_t len, uint32_t *host_len, uint16_t *port);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What answers on port 80 beside a port for TLS: the tokens by which an authority checks that this
 * machine has a name (RFC 8555, section 8.3), and for everything else 308 to https of the same
 * host. Like the control server it is a server of its own on a native thread, so it answers while
 * all of Ruby is stuck.
 *
 * A token is a file of the folder .well-known/acme-challenge in `webroot`, whoever wrote it. A
 * client that named a port in Host has reached this machine directly, and is sent to `https_port`;
 * one that named none has come to port 80, whatever port that is here, and is sent to 443.
 */
#ifndef RD_CONTROL_REDIRECT_H
#define RD_CONTROL_REDIRECT_H

#include <stdint.h>

#include "listen/listener.h"

typedef struct rd_redirect rd_redirect;

/* Returns NULL with errno on failure: `webroot` cannot be opened. */
rd_redirect *rd_redirect_new(const char *webroot, uint16_t https_port);

/* Takes over an opened listener (allocated by rd_alloc). Before start. Returns 0, or -1 with
 * errno. */
int rd_redirect_add_listener(rd_redirect *redirect, rd_listener *listener);

/* Starts the thread, with all signals blocked. Returns 0 or a negative errno. */
int rd_redirect_start(rd_redirect *redirect);

/* Ends the thread, if it runs, waits for it, and frees. */
void rd_redirect_free(rd_redirect *redirect);

/* Around a fork, as those of the control server. */
void rd_redirect_hold(rd_redirect *redirect);
void rd_redirect_release(rd_redirect *redirect);
void rd_redirect_abandon(rd_redirect *redirect);

#endif

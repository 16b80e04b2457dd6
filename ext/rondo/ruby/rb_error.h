/* SPDX-License-Identifier: MIT
 *
 * The exception classes of the server, and the only place that raises for the core's error codes.
 */
#ifndef RD_RUBY_ERROR_H
#define RD_RUBY_ERROR_H

#include <ruby.h>
#include <stdbool.h>

extern VALUE rd_eError, rd_eAddressError, rd_eSettingError;
extern VALUE rd_eResponseError; /* the application's response breaks HTTP */
extern VALUE rd_eClosed;        /* the client is gone (an IOError) */
extern VALUE rd_eRequestTimeout;
extern VALUE rd_eBodyError; /* the request body cannot be completed (an EOFError) */

void rd_init_errors(void);

/* Whether what was raised is meant for the thread or the process (Thread#kill, a signal): no code
 * on the way may rescue it. */
bool rd_ends_thread(VALUE error);

/* Whether it is a FiberError: a fiber that could not be switched to, as without a stack for it. */
bool rd_is_fiber_error(VALUE error);

/* Raises the exception for a negative code of the core. The code's status becomes
 * BodyError#status. */
NORETURN(void rd_raise_body_error(int code));
NORETURN(void rd_raise_closed(void));

#endif

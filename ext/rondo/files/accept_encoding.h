/* SPDX-License-Identifier: MIT
 *
 * Which content coding a client wants, by its Accept-Encoding fields, RFC 9110 section 12.5.3. Any
 * thread.
 */
#ifndef RD_FILES_ACCEPT_ENCODING_H
#define RD_FILES_ACCEPT_ENCODING_H

#include "request/request.h"

/* In the order of choice when the client has no preference, except that identity comes last. */
enum { RD_CODING_IDENTITY, RD_CODING_BR, RD_CODING_ZSTD, RD_CODING_GZIP, RD_CODING_COUNT };

/*
 * The best of `available` for the request (bits 1 << RD_CODING_*; identity always counts as
 * available). All its Accept-Encoding lines count. Without one the result is identity, and also
 * when the client forbids everything available: bytes it did not ask for are better than none. An
 * element with an invalid weight is ignored. If a coding is named twice, the lower weight counts.
 */
unsigned rd_accept_encoding(const rd_request *request, unsigned available);

#endif

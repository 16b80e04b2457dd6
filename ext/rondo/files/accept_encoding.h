/* SPDX-License-Identifier: MIT
 *
 * Which content coding a client wants: its Accept-Encoding fields, RFC 9110 section 12.5.3. Any
 * thread.
 */
#ifndef RD_FILES_ACCEPT_ENCODING_H
#define RD_FILES_ACCEPT_ENCODING_H

#include "http/request.h"

/* In the order in which they win when the client has no preference, identity last. */
enum { RD_CODING_IDENTITY, RD_CODING_BR, RD_CODING_ZSTD, RD_CODING_GZIP, RD_CODING_COUNT };

/*
 * The best of `available` (bits 1 << RD_CODING_*; identity always counts as available) for the
 * request; all its Accept-Encoding lines count. Without one it is identity, and also when the
 * client forbids whatever there is: better bytes it did not ask for than none. An element with a
 * weight that is none is ignored; of a coding named twice the lower weight counts.
 */
unsigned rd_accept_encoding(const rd_request *request, unsigned available);

#endif

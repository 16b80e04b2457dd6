/* SPDX-License-Identifier: MIT
 *
 * A transport for tests that does all that TLS will do, and hides nothing: after a handshake of two
 * messages each way, bytes travel in records, each byte XOR 0x55.
 *
 *   client  "XOR?1"                          server  "XOR!1"
 *           "XOR?2" len names                        "XOR!2" len name
 *
 * `names` are protocols, each behind its length, like those of ALPN, and `len` counts all of them;
 * the server answers with the one it chose, or with len 0. A record is two bytes of length (the
 * high one first) and so many bytes; one of length 0 ends a direction in good order.
 *
 * Records are read whole and handed out in pieces, so there is often something pending. What is
 * written waits for a flush, up to 64 KiB.
 */
#ifndef TEST_XOR_TRANSPORT_H
#define TEST_XOR_TRANSPORT_H

#include "transport/conn.h"

#define XOR_BYTE       0x55
#define XOR_RECORD_MAX 16384
#define XOR_PIECE      4096 /* of a record, handed out by one read */

extern const rd_transport rd_transport_xor;        /* cannot move */
extern const rd_transport rd_transport_xor_moving; /* the same, but between records it can */

#endif

/* SPDX-License-Identifier: MIT
 *
 * The patterns of channel names, as Redis has them (PSUBSCRIBE), over bytes:
 *
 *   *      any bytes, none too          [abc]  one of these; [a-z] a range, in either direction
 *   ?      any byte                     [^a-z] one that is none of these
 *   \x     the byte x, in a class too
 *
 * The first ] ends a class; one that is never closed ends with the pattern. A \ at the end stands
 * for itself. Nothing is an invalid pattern.
 *
 * Takes at most pattern.len * (string.len + 1) steps: only the last * seen is ever tried again.
 * Keeps nothing, any thread.
 */
#ifndef RD_PUBSUB_GLOB_H
#define RD_PUBSUB_GLOB_H

#include <stdbool.h>

#include "base/slice.h"

bool rd_glob_matches(rd_slice pattern, rd_slice string);

#endif

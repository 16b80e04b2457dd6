/* SPDX-License-Identifier: MIT
 *
 * The bytes that malloc has given out: 0 where it does not say, as with a sanitizer and in musl.
 */
#ifndef RD_TEST_HEAP_USE_H
#define RD_TEST_HEAP_USE_H

#include <stddef.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

static size_t heap_use(void) {
#ifdef __GLIBC__
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

#endif

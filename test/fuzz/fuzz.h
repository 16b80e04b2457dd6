/* SPDX-License-Identifier: MIT
 *
 * What the fuzz targets share: a check that ends the process, and bytes in a block exactly as long
 * as they are, so that the sanitizer sees every read beyond.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* For replay_main.c: a file that has the name itself counts as a target. */
#define FUZZ_ONE_INPUT LLVMFuzzerTestOneInput

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);               \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static inline char *fuzz_copy(const void *bytes, size_t len) {
    char *copy = malloc(len ? len : 1);

    FUZZ_CHECK(copy);
    if (len) memcpy(copy, bytes, len);
    return copy;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * Allocation that aborts instead of failing; see alloc.h.
 */
#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *ptr, size_t size) {
    if (ptr == NULL && size != 0) {
        fprintf(stderr, "rondo: out of memory (%zu bytes)\n", size);
        abort();
    }
    return ptr;
}

void *rd_alloc(size_t size) {
    return checked(malloc(size), size);
}

void *rd_alloc_zero(size_t size) {
    return checked(calloc(1, size), size);
}

void *rd_realloc(void *ptr, size_t size) {
    return checked(realloc(ptr, size), size);
}

void rd_free(void *ptr) {
    free(ptr);
}

char *rd_alloc_text(const char *text) {
    if (text == NULL) return NULL;
    const size_t size = strlen(text) + 1;
    return memcpy(rd_alloc(size), text, size);
}

/* SPDX-License-Identifier: MIT
 *
 * Memory that never fails: out of memory ends the process with one line, so that no caller needs
 * a branch for it. Sizes that come from a peer are checked against their limit before they get
 * here. Any thread.
 */
#ifndef RD_BASE_ALLOC_H
#define RD_BASE_ALLOC_H

#include <stddef.h>

void *rd_alloc(size_t size);
void *rd_alloc_zero(size_t size);
void *rd_realloc(void *ptr, size_t size);
void rd_free(void *ptr);

/* A copy of a string; NULL for NULL. */
char *rd_alloc_text(const char *text);

#endif

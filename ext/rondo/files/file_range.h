/* SPDX-License-Identifier: MIT
 *
 * Which bytes of a file a request wants: its Range field (RFC 9110, section 14). Any thread.
 */
#ifndef RD_FILES_FILE_RANGE_H
#define RD_FILES_FILE_RANGE_H

#include <stdint.h>

#include "base/slice.h"

#define RD_RANGES_MAX          16
#define RD_RANGE_UNSATISFIABLE (-1)

/* Within the file, never empty. */
typedef struct rd_file_range {
    uint64_t first;
    uint64_t len;
} rd_file_range;

/*
 * Parses the ranges of `value` for a file of `size` bytes. Returns how many, in the order
 * requested; none overlaps another. 0: ignore the field and send the whole file.
 * RD_RANGE_UNSATISFIABLE: none of them is in the file (416).
 */
int rd_file_ranges_parse(rd_slice value, uint64_t size, rd_file_range ranges[RD_RANGES_MAX]);

#endif

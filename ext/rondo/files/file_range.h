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

/* Within the file; never empty. */
typedef struct rd_file_range {
    uint64_t first;
    uint64_t len;
} rd_file_range;

/*
 * The ranges that `value` asks for of a file of `size` bytes: how many, in the order asked for;
 * none overlaps another. 0: the field is to be ignored, the answer is the whole file.
 * RD_RANGE_UNSATISFIABLE: none of them is in the file (416).
 */
int rd_file_ranges_parse(rd_slice value, uint64_t size, rd_file_range ranges[RD_RANGES_MAX]);

#endif

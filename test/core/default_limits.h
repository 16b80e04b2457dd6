/* SPDX-License-Identifier: MIT
 *
 * The limits of a server whose settings nobody touched, for tests and fuzz targets of the parsers.
 */
#ifndef DEFAULT_LIMITS_H
#define DEFAULT_LIMITS_H

#include "base/settings.h"
#include "http/head.h"

static rd_head_limits default_limits;

__attribute__((constructor)) static void fill_default_limits(void) {
    rd_settings settings;
    rd_settings_init(&settings);
    rd_head_limits_init(&default_limits, &settings);
}

#endif

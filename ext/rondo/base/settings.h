/* SPDX-License-Identifier: MIT
 *
 * The settings of one server as plain integers, and the table that describes them, which is
 * settings.def. Tests and the binding fill a rd_settings with rd_settings_set().
 */
#ifndef RD_BASE_SETTINGS_H
#define RD_BASE_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

typedef struct rd_settings {
#define RD_SETTING(name, fallback, min, max, unit, doc) int64_t name;
#include "base/settings.def"
#undef RD_SETTING
} rd_settings;

typedef struct rd_setting_info {
    const char *name;
    int64_t fallback, min, max;
    const char *unit;
    const char *doc;
    size_t offset;
} rd_setting_info;

/* How many calls may be inside the application at once. */
static inline uint32_t rd_settings_places(const rd_settings *settings) {
    return (uint32_t)(settings->fibers > 0 ? settings->fibers : settings->max_threads);
}

extern const rd_setting_info rd_setting_table[];
extern const size_t rd_setting_count;

/* Sets all defaults. */
void rd_settings_init(rd_settings *settings);

/* The row of this name, or NULL. */
const rd_setting_info *rd_setting_find(const char *name, size_t len);

/* Sets one value. Returns -1 when it is outside the row's bounds. */
int rd_settings_set(rd_settings *settings, const rd_setting_info *row, int64_t value);

#endif

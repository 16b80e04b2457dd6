/* SPDX-License-Identifier: MIT
 *
 * The table of settings and access by name; see settings.h.
 */
#include "base/settings.h"

#include <string.h>

const rd_setting_info rd_setting_table[] = {
#define RD_SETTING(name, fallback, min, max, unit, doc)                                            \
    {#name, fallback, min, max, unit, doc, offsetof(rd_settings, name)},
#include "base/settings.def"
#undef RD_SETTING
};

const size_t rd_setting_count = sizeof(rd_setting_table) / sizeof(rd_setting_table[0]);

static void store(rd_settings *settings, const rd_setting_info *row, int64_t value) {
    memcpy((char *)settings + row->offset, &value, sizeof(value));
}

void rd_settings_init(rd_settings *settings) {
    for (size_t i = 0; i < rd_setting_count; i++) {
        store(settings, &rd_setting_table[i], rd_setting_table[i].fallback);
    }
}

const rd_setting_info *rd_setting_find(const char *name, size_t len) {
    for (size_t i = 0; i < rd_setting_count; i++) {
        const rd_setting_info *row = &rd_setting_table[i];
        if (strlen(row->name) == len && memcmp(row->name, name, len) == 0) return row;
    }
    return NULL;
}

int rd_settings_set(rd_settings *settings, const rd_setting_info *row, int64_t value) {
    if (value < row->min || value > row->max) return -1;
    store(settings, row, value);
    return 0;
}

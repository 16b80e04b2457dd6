/* SPDX-License-Identifier: MIT
 *
 * The table of settings: defaults within their bounds, found by name, bounds kept.
 */
#include "base/settings.h"
#include "check.h"

int main(void) {
    rd_settings settings;
    rd_settings_init(&settings);
    CHECK_INT(settings.body_memory_bytes, 65536);
    for (size_t i = 0; i < rd_setting_count; i++) {
        const rd_setting_info *row = &rd_setting_table[i];
        CHECK_SAYS(row->min <= row->fallback && row->fallback <= row->max, "%s", row->name);
        CHECK(rd_setting_find(row->name, strlen(row->name)) == row);
        CHECK_INT(rd_settings_set(&settings, row, row->max), 0);
        CHECK_INT(rd_settings_set(&settings, row, row->max + 1), -1);
        CHECK_INT(rd_settings_set(&settings, row, row->min - 1), -1);
        CHECK_INT(rd_settings_set(&settings, row, row->min), 0);
    }
    CHECK(rd_setting_find("max_body", 8) == NULL);
    CHECK(rd_setting_find("", 0) == NULL);
    return check_summary();
}

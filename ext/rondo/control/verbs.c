/* SPDX-License-Identifier: MIT
 *
 * The table of verbs; see verbs.h.
 */
#include "control/verbs.h"

#include <string.h>

const rd_verb_info rd_verb_table[RD_VERB_COUNT] = {
#define RD_VERB(name, path, answers, doc) {path, answers, doc},
#include "control/verbs.def"
#undef RD_VERB
};

int rd_verb_find(const char *path, size_t len) {
    for (int i = 0; i < RD_VERB_COUNT; i++) {
        const char *known = rd_verb_table[i].path;
        if (strlen(known) == len && memcmp(known, path, len) == 0) return i;
    }
    return -1;
}

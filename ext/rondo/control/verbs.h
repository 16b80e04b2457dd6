/* SPDX-License-Identifier: MIT
 *
 * The verbs of the control server as a table; see verbs.def. Any thread.
 */
#ifndef RD_CONTROL_VERBS_H
#define RD_CONTROL_VERBS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum rd_verb {
#define RD_VERB(name, path, answers, doc) RD_VERB_##name,
#include "control/verbs.def"
#undef RD_VERB
    RD_VERB_COUNT
} rd_verb;

/* What a process can do is a bit for each verb, in rd_control_options. */
_Static_assert(RD_VERB_COUNT <= 32, "at most 32 verbs");

typedef struct rd_verb_info {
    const char *path;
    bool answers;
    const char *doc;
} rd_verb_info;

extern const rd_verb_info rd_verb_table[RD_VERB_COUNT];

/* The verb of this path (without its slash), or -1. */
int rd_verb_find(const char *path, size_t len);

#endif

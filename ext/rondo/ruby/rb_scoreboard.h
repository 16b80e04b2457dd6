/* SPDX-License-Identifier: MIT
 *
 * Rondo::Scoreboard to the objects that write or read it. With the GVL.
 */
#ifndef RD_RUBY_SCOREBOARD_H
#define RD_RUBY_SCOREBOARD_H

#include <ruby.h>

#include "cluster/scoreboard.h"

/* The scoreboard of this object. Raises TypeError for any other, and Rondo::Error for one that has
 * none yet. */
rd_scoreboard *rd_scoreboard_of(VALUE self);

void rd_init_scoreboard(VALUE rondo);

#endif

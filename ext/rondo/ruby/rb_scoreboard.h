/* SPDX-License-Identifier: MIT
 *
 * Rondo::Scoreboard, for the objects that write or read it. With the GVL.
 */
#ifndef RD_RUBY_SCOREBOARD_H
#define RD_RUBY_SCOREBOARD_H

#include <ruby.h>

#include "cluster/scoreboard.h"

/* The scoreboard of this object. Raises TypeError for an object of another class, and Rondo::Error
 * if the object is not initialised. */
rd_scoreboard *rd_scoreboard_of(VALUE self);

void rd_init_scoreboard(VALUE rondo);

#endif

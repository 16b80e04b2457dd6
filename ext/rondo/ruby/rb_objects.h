/* SPDX-License-Identifier: MIT
 *
 * Classes that the extension defines and that no other C file uses.
 */
#ifndef RD_RUBY_OBJECTS_H
#define RD_RUBY_OBJECTS_H

#include <ruby.h>

void rd_init_settings(VALUE rondo);
void rd_init_control(VALUE rondo);
void rd_init_hub(VALUE rondo);
void rd_init_process(VALUE rondo);
void rd_init_redirect(VALUE rondo);
void rd_init_load(VALUE rondo);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The extension's table of contents: what `require "rondo/rondo"` defines, in order.
 */
#include "ruby/rb_call.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"

void rd_init_server(VALUE rondo);
void rd_init_settings(VALUE rondo);
void rd_init_scoreboard(VALUE rondo);
void rd_init_control(VALUE rondo);
void rd_init_hub(VALUE rondo);
void rd_init_process(VALUE rondo);
RUBY_FUNC_EXPORTED void Init_rondo(void);

void Init_rondo(void) {
    VALUE rondo = rb_define_module("Rondo");
    rd_init_names();
    rd_init_errors();
    rd_init_input(rondo);
    rd_init_connection(rondo);
    rd_init_client(rondo);
    rd_init_stream(rondo);
    rd_init_scoreboard(rondo);
    rd_init_control(rondo);
    rd_init_hub(rondo);
    rd_init_process(rondo);
    rd_init_server(rondo);
    rd_init_settings(rondo);
}

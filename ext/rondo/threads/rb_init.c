/* SPDX-License-Identifier: MIT
 *
 * The extension's table of contents: what `require "rondo/rondo"` defines, in order.
 */
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "ruby/rb_objects.h"
#include "ruby/rb_scoreboard.h"
#include "ruby/rb_tls.h"
#include "fibers/rb_scheduler.h"
#include "fibers/rb_scheduler_io.h"
#include "fibers/rb_scheduler_waits.h"
#include "rack/rb_connection.h"
#include "rack/rb_input.h"
#include "rack/rb_stream.h"
#include "app/rb_channels.h"
#include "app/rb_client.h"
#include "app/rb_client_event.h"
#include "app/rb_connect.h"
#include "threads/rb_server.h"
#include "app/rb_task.h"

RUBY_FUNC_EXPORTED void Init_rondo(void);

void Init_rondo(void) {
    VALUE rondo = rb_define_module("Rondo");
    rd_init_names();
    rd_init_errors();
    rd_init_input(rondo);
    rd_init_connection(rondo);
    rd_init_client(rondo);
    VALUE client = rb_const_get(rondo, rb_intern("Client"));
    rd_init_client_event(client);
    rd_init_client_connect(client);
    rd_init_channels(client);
    rd_init_stream(rondo);
    rd_init_task(rondo);
    rd_init_scoreboard(rondo);
    rd_init_control(rondo);
    rd_init_hub(rondo);
    rd_init_process(rondo);
    rd_init_redirect(rondo);
    rd_init_load(rondo);
    rd_init_tls(rondo);
    rd_init_scheduler(rondo);
    VALUE scheduler = rb_const_get(rondo, rb_intern("Scheduler"));
    rd_init_scheduler_waits(scheduler);
    rd_init_scheduler_io(scheduler);
    rd_init_server(rondo);
    rd_init_settings(rondo);
}

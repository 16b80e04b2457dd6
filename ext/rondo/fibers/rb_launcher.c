/* SPDX-License-Identifier: MIT
 *
 * Starting fibers from another one than the hub; see rb_launcher.h.
 */
#include "fibers/rb_launcher.h"

static VALUE transfer(VALUE fiber) {
    rb_fiber_transfer(fiber, 0, NULL);
    return Qnil;
}

/* Back at the hub, with what was raised. */
static void go_back(rd_fibers *fibers, int state) {
    fibers->launch_state = state;
    fibers->launch_error = state != 0 ? rb_errinfo() : Qnil;
    if (state != 0) rb_set_errinfo(Qnil);
    fibers->launched = Qfalse;
    rb_protect(transfer, fibers->hub, &state);
    if (state != 0) rb_set_errinfo(Qnil); /* the hub has switched here all the same */
}

/* The whole life of the launcher. When it is switched to again, the hub has the next fiber. */
static VALUE live(RB_BLOCK_CALL_FUNC_ARGLIST(yielded, argument)) {
    (void)yielded, (void)argc, (void)argv, (void)blockarg;
    rd_fibers *fibers = (rd_fibers *)argument;
    for (;;) {
        const VALUE fiber = fibers->launched;
        int state = 0;
        fibers->launched = Qfalse;
        if (fiber != Qfalse) rb_protect(transfer, fiber, &state);
        if (state != 0 || fibers->launched == Qfalse) go_back(fibers, state);
    }
    return Qnil;
}

static void rethrow(rd_fibers *fibers) {
    const int state = fibers->launch_state;
    VALUE error = fibers->launch_error;
    fibers->launch_state = 0;
    fibers->launch_error = Qnil;
    if (rb_obj_is_kind_of(error, rb_eException)) rb_exc_raise(error);
    rb_jump_tag(state);
}

static void enter(rd_fibers *fibers, VALUE launcher) {
    rb_fiber_transfer(launcher, 0, NULL);
    if (fibers->launch_state != 0) rethrow(fibers);
}

VALUE rd_launcher_block(rd_fibers *fibers) {
    return rb_proc_new(live, (VALUE)fibers);
}

void rd_launcher_begin(rd_fibers *fibers, VALUE launcher) {
    const VALUE hub = fibers->hub;
    fibers->hub = rb_fiber_current();
    fibers->launched = Qfalse;
    enter(fibers, launcher); /* it has its stack now */
    fibers->hub = hub;
}

void rd_launcher_start(rd_fibers *fibers, VALUE fiber) {
    fibers->launched = fiber;
    rd_fibers_note_time(fibers);
    enter(fibers, fibers->launcher);
}

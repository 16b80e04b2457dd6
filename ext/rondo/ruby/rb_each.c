/* SPDX-License-Identifier: MIT
 *
 * Bodies that give their parts by `each` (Rack SPEC, "Enumerable Body"): each part leaves at once,
 * a full queue holds the body up until the client has read, a client that leaves stops it. An
 * application may keep the block, or call it on another thread: it ends with the response, not
 * with `each`, and holds what it waits with itself.
 */
#include "base/clock.h"
#include "ruby/rb_call.h"
#include "ruby/rb_error.h"
#include "ruby/rb_fields.h"
#include "ruby/rb_names.h"

/* On the stack of the thread that calls `each`; the block has an object that points to it. */
typedef struct rd_each {
    rd_call *call;
    VALUE self;  /* that object; points to nothing when the response is over */
    VALUE fiber; /* only one that is on the stack below `each` can break out of it */
} rd_each;

static const rb_data_type_t each_type = {
    .wrap_struct_name = "Rondo body",
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static const rd_each *each_of(VALUE self) {
    return RTYPEDDATA_DATA(self);
}

/* The body's `ensure`s run, nothing after them; elsewhere the block can only raise. */
static void stop_body(VALUE self) {
    const rd_each *each = each_of(self);
    if (each != NULL && each->fiber == rb_fiber_current()) rb_iter_break();
    rd_raise_closed();
}

static VALUE each_part(RB_BLOCK_CALL_FUNC_ARGLIST(part, self)) {
    const rd_each *each = each_of(self);
    if (each == NULL) rb_raise(rb_eIOError, "the response is over");
    if (rd_is_forked(each->call->binding)) rb_raise(rb_eIOError, "the parent process answers");
    if (!RB_TYPE_P(part, T_STRING)) rd_refuse_response("body part is not a String", part);
    if (RSTRING_LEN(part) == 0) return Qnil;
    rd_binding *binding = each->call->binding;
    uint64_t waited_ns;
    const int code = rd_send_part(each->call, part, &waited_ns);
    each = each_of(self); /* others ran meanwhile, `each` may have returned on another thread */
    if (code < 0) stop_body(self);
    if (each == NULL) return Qnil;
    each->call->turn_ns += waited_ns;
    rd_borrow_release_all(binding);
    return Qnil;
}

static VALUE call_each(VALUE argument) {
    const rd_each *each = (const rd_each *)argument;
    return rb_block_call(each->call->body, rd_id.each, 0, NULL, each_part, each->self);
}

static VALUE end_each(VALUE argument) {
    RTYPEDDATA_DATA(((const rd_each *)argument)->self) = NULL;
    return Qnil;
}

void rd_give_parts(rd_call *call) {
    rd_each each = {.call = call, .fiber = rb_fiber_current()};
    each.self = TypedData_Wrap_Struct(0, &each_type, &each);
    rb_ensure(call_each, (VALUE)&each, end_each, (VALUE)&each);
}

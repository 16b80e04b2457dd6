/* SPDX-License-Identifier: MIT
 *
 * Bodies that give their parts by `each` (Rack SPEC, "Enumerable Body"): each part leaves at once,
 * a full queue makes the body wait until the client has read, a client that leaves stops the body.
 * An application may keep the block, or call it on another thread: the block works until the
 * response ends, not until `each` ends, and holds its own references.
 */
#include "rack/rb_each.h"

#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_borrowed.h"
#include "binding/rb_fork.h"
#include "rack/rb_fields.h"
#include "rack/rb_part.h"

/* The state of the block. */
typedef struct rd_each {
    rd_binding *binding;
    rd_call *call; /* on the stack of `each`; NULL when the response is over */
    VALUE fiber;   /* only this fiber can break out of `each`; compared while it runs */
} rd_each;

/* Does not move: it is compared. */
static void each_mark(void *pointer) {
    const rd_each *each = pointer;
    rb_gc_mark(each->fiber);
}

static void each_free(void *pointer) {
    rd_each *each = pointer;
    rd_binding_unref(each->binding);
    xfree(each);
}

static const rb_data_type_t each_type = {
    .wrap_struct_name = "Rondo body",
    .function = {.dmark = each_mark, .dfree = each_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static rd_each *each_of(VALUE self) {
    return RTYPEDDATA_DATA(self);
}

/* Breaks out of `each`: the body's `ensure` clauses run, and nothing else. On another fiber the
 * block can only raise. */
static void stop_body(VALUE self) {
    const rd_each *each = each_of(self);
    if (each->call != NULL && each->fiber == rb_fiber_current()) rb_iter_break();
    rd_raise_closed();
}

static VALUE each_part(RB_BLOCK_CALL_FUNC_ARGLIST(part, self)) {
    const rd_each *each = each_of(self);
    /* This is checked first: in a forked process the stack may belong to another thread. */
    if (rd_is_forked(each->binding)) rb_raise(rb_eIOError, "only the parent process can answer");
    if (each->call == NULL) rb_raise(rb_eIOError, "the response is over");
    if (!RB_TYPE_P(part, T_STRING))
        rd_refuse_response("the body has a part that is not a String", part);
    if (RSTRING_LEN(part) == 0) return Qnil;
    uint64_t waited_ns;
    const int code = rd_part_send(each->call, part, &waited_ns);
    if (code < 0) stop_body(self);
    /* Other threads ran meanwhile: `each` may have returned if it runs on one of them. */
    if (each->call == NULL) return Qnil;
    each->call->quantum_since_ns += waited_ns;
    rd_borrowed_release_all(each->binding);
    return Qnil;
}

typedef struct rd_giving {
    VALUE body, self;
} rd_giving;

static VALUE call_each(VALUE argument) {
    const rd_giving *giving = (const rd_giving *)argument;
    return rb_block_call(giving->body, rd_id.each, 0, NULL, each_part, giving->self);
}

static VALUE end_each(VALUE argument) {
    each_of(((const rd_giving *)argument)->self)->call = NULL;
    return Qnil;
}

void rd_send_each(rd_call *call) {
    const VALUE fiber = rb_fiber_current();
    rd_each *each;
    rd_giving giving = {call->answer.body, TypedData_Make_Struct(0, rd_each, &each_type, each)};
    rd_binding_ref(call->binding);
    *each = (rd_each){call->binding, call, fiber};
    rb_ensure(call_each, (VALUE)&giving, end_each, (VALUE)&giving);
}

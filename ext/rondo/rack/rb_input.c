/* SPDX-License-Identifier: MIT
 *
 * Rondo::Input, the rack.input of a request (Rack SPEC, "The Input Stream"): reads the body from
 * memory or its temporary file. If the body has not come yet (Expect: 100-continue), the first read
 * requests it and waits for it. A body that was cut short raises; it does not look complete.
 */
#include "rack/rb_input.h"

#include <ruby/encoding.h>

#include "ruby/rb_error.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "binding/rb_wait.h"

#define GETS_STEP 4096

typedef struct rd_input {
    rd_binding *binding;
    rd_request *request; /* NULL: an empty body, or detached */
    uint64_t at;
    bool whole; /* the body is complete and does not change any more */
    bool closed;
} rd_input;

static VALUE cInput, the_empty_input;

/* Completing the request calls rd_input_detach(). If a request was left open and forgotten, the GC
 * releases it here. */
static void input_free(void *pointer) {
    rd_input *input = pointer;
    if (input->binding != NULL) {
        if (input->request != NULL && !rd_is_forked(input->binding)) {
            rd_lock(input->binding);
            rd_request_unref(input->request);
            rd_unlock(input->binding);
        }
        rd_binding_unref(input->binding);
    }
    xfree(input);
}

static const rb_data_type_t input_type = {
    .wrap_struct_name = "Rondo::Input",
    .function = {.dfree = input_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

VALUE rd_input_new(const rd_call *call) {
    rd_input *input;
    VALUE self = TypedData_Make_Struct(cInput, rd_input, &input_type, input);
    rd_binding_ref(call->binding);
    input->binding = call->binding;
    input->request = call->request;
    input->whole = call->whole;
    rd_lock(call->binding);
    rd_request_ref(call->request);
    rd_unlock(call->binding);
    return self;
}

VALUE rd_input_empty(void) {
    return the_empty_input;
}

void rd_input_detach(VALUE self) {
    rd_input *input = rb_check_typeddata(self, &input_type);
    rd_request *request = input->request;
    if (request == NULL) return;
    input->request = NULL;
    input->closed = true;
    rd_lock(input->binding);
    rd_request_unref(request);
    rd_unlock(input->binding);
}

NORETURN(static void raise_closed(void));
static void raise_closed(void) {
    rb_raise(rb_eIOError, "closed stream");
}

static rd_input *get_open(VALUE self) {
    rd_input *input = rb_check_typeddata(self, &input_type);
    if (input->closed) raise_closed();
    return input;
}

/* In a forked child. What had not come before the fork, the parent receives. */
static void require_body(rd_input *input) {
    input->whole = input->request->body_complete;
    if (!input->whole) raise_closed();
}

/* Waits for the whole body. Raises if it does not come. */
static void await_body(rd_input *input) {
    rd_request *request = input->request;
    if (request == NULL || input->whole) return;
    if (rd_is_forked(input->binding)) {
        require_body(input);
        return;
    }
    rd_lock(input->binding);
    if (request->body_error == 0 && request->responder) request->responder->want_body(request);
    rd_unlock(input->binding);
    rd_wait_until(input->binding, request, rd_has_body);
    if (input->request == NULL) raise_closed();
    rd_lock(input->binding);
    input->whole = request->body_complete;
    const int error = request->body_error;
    rd_unlock(input->binding);
    if (input->whole) return;
    if (error == 0) raise_closed(); /* answered by another thread, without the body */
    rd_raise_body_error(error);
}

static uint64_t bytes_left(const rd_input *input) {
    return input->request == NULL ? 0 : input->request->body.size - input->at;
}

static VALUE buffer_for(VALUE given, long len) {
    if (NIL_P(given)) {
        VALUE fresh = rb_str_buf_new(len);
        return fresh;
    }
    rb_str_modify(given);
    rb_str_set_len(given, 0);
    rb_str_modify_expand(given, len);
    rb_enc_associate_index(given, rb_ascii8bit_encindex());
    return given;
}

static void read_into(rd_input *input, VALUE string, long len) {
    long done = 0;
    while (done < len) {
        ssize_t got = rd_body_read(&input->request->body, input->at, RSTRING_PTR(string) + done,
                                   (size_t)(len - done));
        if (got < 0) rb_sys_fail("reading the request body");
        if (got == 0) rb_raise(rb_eIOError, "the stored request body is shorter than it was");
        done += got;
        input->at += (uint64_t)got;
    }
    rb_str_set_len(string, done);
}

/* @overload read(length = nil, buffer = nil)
 *   @param length [Integer, nil] bytes at most; nil for all that is left
 *   @param buffer [String, nil] is filled and returned instead of a new String
 *   @return [String, nil] ASCII-8BIT; nil at the end when a length above 0 was asked for
 *   @raise [Rondo::BodyError] the client did not send the whole body
 *   @see Rack SPEC, The Input Stream */
static VALUE input_read(int argc, VALUE *argv, VALUE self) {
    VALUE length, buffer;
    rb_scan_args(argc, argv, "02", &length, &buffer);
    /* NUM2LONG may run code while another thread ends the request, so it comes first. */
    const long most = NIL_P(length) ? LONG_MAX : NUM2LONG(length);
    if (most < 0) rb_raise(rb_eArgError, "negative length %ld given", most);
    if (!NIL_P(buffer)) StringValue(buffer);
    rd_input *input = get_open(self);
    await_body(input);
    uint64_t left = bytes_left(input);
    if (most > 0 && left == 0 && !NIL_P(length)) {
        if (!NIL_P(buffer)) buffer_for(buffer, 0);
        return Qnil;
    }
    long wanted = left > LONG_MAX ? LONG_MAX : (long)left;
    if (most < wanted) wanted = most;
    VALUE string = buffer_for(buffer, wanted);
    if (wanted > 0) read_into(input, string, wanted);
    return string;
}

static VALUE next_line(rd_input *input) {
    if (bytes_left(input) == 0) return Qnil;
    VALUE line = rb_str_buf_new(128);
    char step[GETS_STEP];
    for (;;) {
        ssize_t got = rd_body_read(&input->request->body, input->at, step, sizeof(step));
        if (got < 0) rb_sys_fail("reading the request body");
        if (got == 0) return line;
        const char *end = memchr(step, '\n', (size_t)got);
        size_t len = end ? (size_t)(end - step) + 1 : (size_t)got;
        rb_str_cat(line, step, (long)len);
        input->at += len;
        if (end != NULL) return line;
    }
}

/* @return [String, nil] the next line with its "\n", nil at the end
 * @raise [Rondo::BodyError] the client did not send the whole body */
static VALUE input_gets(VALUE self) {
    rd_input *input = get_open(self);
    await_body(input);
    return next_line(input);
}

/* @yieldparam line [String]
 * @return [self]
 * @raise [Rondo::BodyError] the client did not send the whole body */
static VALUE input_each(VALUE self) {
    RETURN_ENUMERATOR(self, 0, 0);
    VALUE line;
    rd_input *input = get_open(self);
    await_body(input);
    while (!NIL_P(line = next_line(get_open(self)))) rb_yield(line);
    return self;
}

/* @return [Integer] 0; the next read starts at the first byte */
static VALUE input_rewind(VALUE self) {
    get_open(self)->at = 0;
    return INT2FIX(0);
}

/* @return [Integer] bytes of the whole body
 * @raise [Rondo::BodyError] the client did not send the whole body */
static VALUE input_size(VALUE self) {
    rd_input *input = get_open(self);
    await_body(input);
    return input->request == NULL ? INT2FIX(0) : ULL2NUM(input->request->body.size);
}

/* @return [nil] reading raises IOError from now on; does nothing to the shared empty input */
static VALUE input_close(VALUE self) {
    rd_input *input = rb_check_typeddata(self, &input_type);
    if (self != the_empty_input) input->closed = true;
    return Qnil;
}

/* @return [Boolean] closed, or the request is over */
static VALUE input_is_closed(VALUE self) {
    rd_input *input = rb_check_typeddata(self, &input_type);
    return input->closed ? Qtrue : Qfalse;
}

/* @return [Boolean] whether everything was read
 * @raise [Rondo::BodyError] the client did not send the whole body
 * @raise [IOError] the input is closed */
static VALUE input_is_eof(VALUE self) {
    rd_input *input = get_open(self);
    await_body(input);
    return bytes_left(input) == 0 ? Qtrue : Qfalse;
}

/* @return [self] it is always binary */
static VALUE input_binmode(VALUE self) {
    return self;
}

/* @return [Encoding] ASCII-8BIT, the encoding of all Strings that it returns */
static VALUE input_external_encoding(VALUE self) {
    (void)self;
    return rb_enc_from_encoding(rb_ascii8bit_encoding());
}

/* @return [String] always the same: applications log what they are given */
static VALUE input_inspect(VALUE self) {
    (void)self;
    return rb_usascii_str_new_cstr("#<Rondo::Input>");
}

/* Document-class: Rondo::Input
 * The body of a request, rack.input. Reading raises IOError once it is closed or the request is
 * over. */
void rd_init_input(VALUE rondo) {
    cInput = rb_define_class_under(rondo, "Input", rb_cObject);
    rb_undef_alloc_func(cInput);
    rb_include_module(cInput, rb_mEnumerable);
    rb_define_method(cInput, "read", input_read, -1);
    rb_define_method(cInput, "gets", input_gets, 0);
    rb_define_method(cInput, "each", input_each, 0);
    rb_define_method(cInput, "rewind", input_rewind, 0);
    rb_define_method(cInput, "size", input_size, 0);
    rb_define_method(cInput, "close", input_close, 0);
    rb_define_method(cInput, "closed?", input_is_closed, 0);
    rb_define_method(cInput, "eof?", input_is_eof, 0);
    rb_define_method(cInput, "binmode", input_binmode, 0);
    rb_define_method(cInput, "external_encoding", input_external_encoding, 0);
    rb_define_method(cInput, "inspect", input_inspect, 0);
    rd_input *empty;
    the_empty_input = TypedData_Make_Struct(cInput, rd_input, &input_type, empty);
    rb_gc_register_mark_object(the_empty_input);
}

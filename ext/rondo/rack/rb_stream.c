/* SPDX-License-Identifier: MIT
 *
 * Rondo::Stream, the argument of a streaming body's call(stream) (Rack SPEC, "Streaming Body"):
 * writes leave at once, a full queue makes the writer wait, reads come from the request body. A
 * stream may outlive the call, and any thread may close it. The GC ends a stream that is forgotten.
 */
#include "rack/rb_stream.h"

#include "ruby/rb_error.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "rack/rb_call.h"
#include "rack/rb_complete.h"
#include "rack/rb_input.h"
#include "rack/rb_part.h"

typedef struct rd_stream {
    rd_call *call; /* that of the dispatch while it runs, then `own`; NULL: the response is over */
    rd_call own;
    rd_binding *binding;
    VALUE input;
    bool read_closed;
} rd_stream;

static VALUE cStream;

static void stream_mark(void *pointer) {
    rd_stream *stream = pointer;
    rb_gc_mark(stream->input);
    /* The binding's objects live as long as the server, and a stream may outlive the server. */
    if (stream->binding != NULL) rb_gc_mark(stream->binding->self);
    if (stream->call != &stream->own) return;
    const rd_call *call = stream->call;
    const VALUE held[] = {call->env,         call->input,         call->connection,
                          call->finished,    call->answer.status, call->answer.headers,
                          call->answer.body, call->error};
    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) rb_gc_mark(held[i]);
}

static void stream_free(void *pointer) {
    rd_stream *stream = pointer;
    if (stream->call == &stream->own && !rd_is_forked(stream->binding)) {
        rd_binding *binding = stream->binding;
        rd_lock(binding);
        rd_request *request = stream->own.request;
        if (request->conn != NULL) request->responder->abort(request);
        rd_request_unref(request);
        rd_unlock(binding);
    }
    rd_binding_unref(stream->binding);
    xfree(stream);
}

static const rb_data_type_t stream_type = {
    .wrap_struct_name = "Rondo::Stream",
    .function = {.dmark = stream_mark, .dfree = stream_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static rd_stream *get(VALUE self) {
    return rb_check_typeddata(self, &stream_type);
}

VALUE rd_stream_new(rd_call *call) {
    rd_stream *stream;
    rd_binding_ref(call->binding);
    VALUE self = TypedData_Make_Struct(cStream, rd_stream, &stream_type, stream);
    stream->binding = call->binding;
    stream->call = call;
    rd_lock(call->binding);
    rd_request_ref(call->request); /* until the response is over */
    rd_unlock(call->binding);
    stream->input = call->input ? call->input : rd_input_empty();
    return self;
}

/* True in a forked process, because its parent answers. */
static bool has_ended(const rd_stream *stream) {
    return stream->call == NULL || rd_is_forked(stream->binding) || stream->call->state.done;
}

static rd_call *writable(rd_stream *stream) {
    if (has_ended(stream)) rb_raise(rb_eIOError, "closed stream");
    return stream->call;
}

/* Ends the response. If the application's call is over, also completes the request. */
static void end_response(rd_stream *stream) {
    if (has_ended(stream)) return;
    rd_call *call = stream->call;
    call->state.done = true;
    rd_lock(call->binding);
    call->request->responder->finish(call->request);
    rd_unlock(call->binding);
    if (call != &stream->own) return;
    stream->call = NULL;
    rd_complete_and_unref(call);
}

void rd_stream_after_call(rd_call *call) {
    rd_stream *stream = get(call->stream);
    if (stream->call == NULL || rd_is_forked(stream->binding)) return;
    if (has_ended(stream) || !rd_call_has_client(call)) {
        stream->call = NULL;
        call->state.done = true;
        rd_lock(call->binding);
        rd_request_unref(call->request);
        rd_unlock(call->binding);
        return;
    }
    stream->own = *call;
    stream->own.visit = NULL;
    stream->call = &stream->own;
    call->state.left_open = true;
    rd_lock(call->binding);
    rd_request_keep(call->request);
    rd_unlock(call->binding);
}

/* @param data [String] sent at once; waits while the client does not read
 * @return [Integer] bytes
 * @raise [IOError] the stream is closed, or the client is gone (Rondo::ClientGone) */
static VALUE stream_write(VALUE self, VALUE data) {
    data = rb_obj_as_string(data); /* may run code that closes the stream, so it comes first */
    rd_stream *stream = get(self);
    rd_call *call = writable(stream);
    if (RSTRING_LEN(data) == 0) return INT2FIX(0);
    uint64_t waited_ns;
    if (rd_part_send(call, data, &waited_ns) < 0) rd_raise_closed();
    if (stream->call == call) call->quantum_since_ns += waited_ns;
    return LONG2NUM(RSTRING_LEN(data));
}

/* The same as {#write}, but returns the stream, for chains.
 * @param data [String]
 * @return [self]
 * @raise [IOError] as {#write} */
static VALUE stream_append(VALUE self, VALUE data) {
    stream_write(self, data);
    return self;
}

/* @return [self] does nothing: what is written leaves at once
 * @raise [IOError] the stream is closed */
static VALUE stream_flush(VALUE self) {
    writable(get(self));
    return self;
}

/* @overload read(length = nil, buffer = nil)
 *   @param length [Integer, nil] bytes at most; nil for all that is left
 *   @param buffer [String, nil] is filled and returned instead of a new String
 *   @return [String, nil] of the body of the request, as {Rondo::Input#read}
 *   @raise [Rondo::BodyError] the client did not send the whole body
 *   @raise [IOError] after {#close_read}, and when the request is over */
static VALUE stream_read(int argc, VALUE *argv, VALUE self) {
    rd_stream *stream = get(self);
    if (stream->read_closed) rb_raise(rb_eIOError, "not opened for reading");
    return rb_funcallv(stream->input, rb_intern("read"), argc, argv);
}

/* @return [String, nil] the next line of the request's body with its "\n", nil at the end
 * @raise [Rondo::BodyError] the client did not send the whole body
 * @raise [IOError] after {#close_read}, and when the request is over */
static VALUE stream_gets(VALUE self) {
    rd_stream *stream = get(self);
    if (stream->read_closed) rb_raise(rb_eIOError, "not opened for reading");
    return rb_funcallv(stream->input, rb_intern("gets"), 0, NULL);
}

/* @return [nil] reading raises IOError from now on; writing still works */
static VALUE stream_close_read(VALUE self) {
    get(self)->read_closed = true;
    return Qnil;
}

/* @return [nil] the response is complete; writing raises IOError from now on */
static VALUE stream_close_write(VALUE self) {
    end_response(get(self));
    return Qnil;
}

/* @return [nil] the response is complete; a second close does nothing */
static VALUE stream_close(VALUE self) {
    rd_stream *stream = get(self);
    stream->read_closed = true;
    end_response(stream);
    return Qnil;
}

/* @return [Boolean] closed, or the client is gone */
static VALUE stream_is_closed(VALUE self) {
    rd_stream *stream = get(self);
    return has_ended(stream) || !rd_call_has_client(stream->call) ? Qtrue : Qfalse;
}

/* @return [String] always the same: applications log what they are given */
static VALUE stream_inspect(VALUE self) {
    (void)self;
    return rb_usascii_str_new_cstr("#<Rondo::Stream>");
}

/* Document-class: Rondo::Stream
 * The argument of a streaming body's call: writes go to the client, reads come from the request's
 * body.
 */
void rd_init_stream(VALUE rondo) {
    cStream = rb_define_class_under(rondo, "Stream", rb_cObject);
    rb_undef_alloc_func(cStream);
    rb_define_method(cStream, "write", stream_write, 1);
    rb_define_method(cStream, "<<", stream_append, 1);
    rb_define_method(cStream, "flush", stream_flush, 0);
    rb_define_method(cStream, "read", stream_read, -1);
    rb_define_method(cStream, "gets", stream_gets, 0);
    rb_define_method(cStream, "close", stream_close, 0);
    rb_define_method(cStream, "close_read", stream_close_read, 0);
    rb_define_method(cStream, "close_write", stream_close_write, 0);
    rb_define_method(cStream, "closed?", stream_is_closed, 0);
    rb_define_method(cStream, "inspect", stream_inspect, 0);
}

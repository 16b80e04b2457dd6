/* SPDX-License-Identifier: MIT
 *
 * Rondo::Connection: one small object per connection, made at its first request. It is the
 * rack.hijack of all requests of that connection (Rack SPEC, "Hijacking") and, with early_hints,
 * gives the callable for 103 responses.
 */
#include <unistd.h>

#include "ruby/rb_call.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"

typedef struct rd_connection {
    rd_call *call;  /* the application call that is going on, or NULL; on its thread's stack */
    VALUE io;       /* after a hijack */
    unsigned forks; /* of the process that serves it */
} rd_connection;

static VALUE cConnection;

static void connection_mark(void *pointer) {
    rd_connection *connection = pointer;
    rb_gc_mark_movable(connection->io);
}

static void connection_compact(void *pointer) {
    rd_connection *connection = pointer;
    connection->io = rb_gc_location(connection->io);
}

static const rb_data_type_t connection_type = {
    .wrap_struct_name = "Rondo::Connection",
    .function = {.dmark = connection_mark,
                 .dfree = RUBY_TYPED_DEFAULT_FREE,
                 .dcompact = connection_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static rd_connection *get(VALUE self) {
    return rb_check_typeddata(self, &connection_type);
}

VALUE rd_connection_new(void) {
    rd_connection *connection;
    VALUE self = TypedData_Make_Struct(cConnection, rd_connection, &connection_type, connection);
    connection->io = Qnil;
    connection->forks = rd_forks();
    return self;
}

/* Of an object that the server made: nothing to check. */
static rd_connection *own(VALUE self) {
    return RTYPEDDATA_DATA(self);
}

void rd_connection_begin(VALUE self, rd_call *call) {
    own(self)->call = call;
}

void rd_connection_end(VALUE self, const rd_call *call) {
    rd_connection *connection = own(self);
    if (connection->call == call) connection->call = NULL; /* else another request's by now */
}

/* ---- hijack ---- */

typedef struct rd_detached {
    int fd;
    rd_buffer rest;
    bool unix_socket;
} rd_detached;

static VALUE wrap_descriptor(VALUE argument) {
    rd_detached *detached = (rd_detached *)argument;
    VALUE socket = rb_path2class(detached->unix_socket ? "UNIXSocket" : "TCPSocket");
    VALUE io = rb_funcall(socket, rd_id.for_fd, 1, INT2NUM(detached->fd));
    detached->fd = -1;
    size_t len = rd_buffer_len(&detached->rest);
    if (len > 0) {
        /* What was read ahead comes first when the application reads. */
        VALUE ahead = rb_str_new(rd_buffer_ptr(&detached->rest), (long)len);
        rb_funcall(io, rd_id.ungetbyte, 1, ahead);
    }
    return io;
}

VALUE rd_connection_detach(rd_call *call) {
    rd_lock(call->binding);
    call->request->responder->flush(call->request);
    if (call->request->conn != NULL) call->request->conn->tell_empty = true;
    rd_unlock(call->binding);
    rd_wait_until(call->binding, call->request, rd_has_sent_all);
    rd_detached detached = {.fd = -1, .unix_socket = call->peer.kind == RD_ADDRESS_UNIX};
    rd_lock(call->binding);
    int fd = call->request->responder->detach(call->request, &detached.rest);
    rd_unlock(call->binding);
    if (fd < 0) rd_raise_closed();
    detached.fd = fd;
    call->done = true;
    int state = 0;
    VALUE io = rb_protect(wrap_descriptor, (VALUE)&detached, &state);
    rd_buffer_clear(&detached.rest);
    if (state != 0) {
        if (detached.fd >= 0) close(detached.fd);
        rb_jump_tag(state);
    }
    return io;
}

/* On another thread the call could end at any moment; in a forked process it is the parent's, and
 * its stack may be another thread's. */
static bool is_called_here(const rd_connection *connection) {
    const rd_call *call = connection->call;
    return call != NULL && connection->forks == rd_forks() && call->runner != NULL &&
           call->runner->thread == rb_thread_current();
}

/* Full hijack: takes the connection out of the server.
 * @return [IO] a TCPSocket or UNIXSocket; bytes that were read ahead come first
 * @raise [IOError] outside of the application call, or when the client has gone
 * @see Rack SPEC, Full Hijack */
static VALUE connection_call(VALUE self) {
    rd_connection *connection = get(self);
    rd_call *call = connection->call;
    if (!NIL_P(connection->io)) return connection->io;
    if (!is_called_here(connection)) {
        rb_raise(rb_eIOError, "hijack is only possible during the request, on its thread");
    }
    if (call->started) rb_raise(rb_eIOError, "the response has begun already");
    VALUE io = rd_connection_detach(call);
    call->hijacked = true;
    RB_OBJ_WRITE(self, &connection->io, io);
    return io;
}

static VALUE connection_inspect(VALUE self) {
    (void)self;
    return rb_usascii_str_new_cstr("#<Rondo::Connection>");
}

/* ---- early hints ---- */

static VALUE send_early_hints(RB_BLOCK_CALL_FUNC_ARGLIST(headers, self)) {
    const rd_connection *connection = get(self);
    rd_call *call = connection->call;
    if (is_called_here(connection) && !call->started && !call->done) {
        rd_early_hints_send(call, headers);
    }
    return Qnil;
}

VALUE rd_early_hints_new(VALUE connection) {
    return rb_proc_new(send_early_hints, connection);
}

/* Document-class: Rondo::Connection
 * What rack.hijack is. */
void rd_init_connection(VALUE rondo) {
    cConnection = rb_define_class_under(rondo, "Connection", rb_cObject);
    rb_undef_alloc_func(cConnection);
    rb_define_method(cConnection, "call", connection_call, 0);
    rb_define_method(cConnection, "inspect", connection_inspect, 0);
}

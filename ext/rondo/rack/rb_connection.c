/* SPDX-License-Identifier: MIT
 *
 * Rondo::Connection: what a request can do with its connection. Each request has its own, as its
 * rack.hijack (Rack SPEC, "Hijacking").
 */
#include "rack/rb_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_pool.h"
#include "binding/rb_wait.h"
#include "rack/rb_call.h"

static VALUE cConnection;
static rb_alloc_func_t allocate; /* that of Object: every request has such an object */
static ID id_io;                 /* after a hijack */
static VALUE never;              /* no interrupts: an argument of Thread.handle_interrupt */

VALUE rd_connection_new(void) {
    return allocate(cConnection);
}

/* The object is compared by its address. That is safe: its caller keeps it alive, and the reference
 * of the call is on a stack, so compaction does not move it. On another thread the call could end
 * at any moment, and in a forked process the call belongs to the parent. */
rd_call *rd_connection_call(VALUE self) {
    rd_call *call = rd_call_current();
    return call != NULL && call->connection == self ? call : NULL;
}

typedef struct rd_detached {
    int fd;   /* -1: the IO has it */
    VALUE io; /* Qnil: there is none yet */
    rd_buffer rest;
} rd_detached;

/* The peer's address does not tell, because some transports give one end of a socket pair. */
static bool is_unix(int fd) {
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(bound);
    return getsockname(fd, (struct sockaddr *)&bound, &len) == 0 && bound.ss_family == AF_UNIX;
}

static VALUE make_io(RB_BLOCK_CALL_FUNC_ARGLIST(unused, argument)) {
    rd_detached *detached = (rd_detached *)argument;
    VALUE socket = rb_path2class(is_unix(detached->fd) ? "UNIXSocket" : "TCPSocket");
    detached->io = rb_funcall(socket, rd_id.for_fd, 1, INT2NUM(detached->fd));
    detached->fd = -1;
    return Qnil;
}

/* What is raised in this thread when `for_fd` returns would leave an IO that nobody knows, and that
 * closes the descriptor a second time when it is collected. */
static VALUE wrap_descriptor(VALUE argument) {
    rd_detached *detached = (rd_detached *)argument;
    rb_block_call(rb_cThread, rb_intern("handle_interrupt"), 1, &never, make_io, argument);
    size_t len = rd_buffer_len(&detached->rest);
    if (len > 0) {
        /* The application first reads the bytes that were read ahead. */
        VALUE ahead = rb_str_new(rd_buffer_ptr(&detached->rest), (long)len);
        rb_funcall(detached->io, rd_id.ungetbyte, 1, ahead);
    }
    return Qnil;
}

VALUE rd_connection_detach(rd_call *call) {
    rd_lock(call->binding);
    call->request->responder->flush(call->request);
    if (call->request->conn != NULL) call->request->conn->notify_drained = true;
    rd_unlock(call->binding);
    rd_wait_until(call->binding, call->request, rd_has_sent_all);
    rd_detached detached = {.fd = -1, .io = Qnil};
    rd_lock(call->binding);
    int fd = call->request->responder->detach(call->request, &detached.rest);
    rd_unlock(call->binding);
    if (fd < 0) rd_raise_closed();
    detached.fd = fd;
    call->state.done = true;
    int state = 0;
    rb_protect(wrap_descriptor, (VALUE)&detached, &state);
    rd_buffer_clear(&detached.rest);
    if (state != 0) {
        VALUE error = rb_errinfo();
        int ignored = 0;
        if (detached.fd >= 0) close(detached.fd);
        if (!NIL_P(detached.io)) rb_protect(rb_io_close, detached.io, &ignored);
        if (rb_obj_is_kind_of(error, rb_eException)) rb_set_errinfo(error);
        rb_jump_tag(state);
    }
    return detached.io;
}

bool rd_connection_is_takeable(const rd_call *call) {
    return call->request->head.version != RD_HTTP_2 || call->upgrade == rd_upgrade_websocket();
}

/* Full hijack: takes the connection out of the server.
 * @return [IO] a TCPSocket or UNIXSocket; bytes that were read ahead come first
 * @raise [IOError] outside of the application call, when the client is gone, or for HTTP/2 unless
 *   it is a WebSocket
 * @see Rack SPEC, Full Hijack */
static VALUE connection_call(VALUE self) {
    VALUE io = rb_attr_get(self, id_io);
    if (!NIL_P(io)) return io;
    rd_call *call = rd_connection_call(self);
    if (call == NULL) {
        rb_raise(rb_eIOError, "hijack is only possible during the request, on its thread");
    }
    if (call->state.started) rb_raise(rb_eIOError, "the response has already begun");
    if (!rd_connection_is_takeable(call)) {
        rb_raise(rb_eIOError,
                 "over HTTP/2 only WebSockets have a full hijack: use a streaming body");
    }
    io = rd_connection_detach(call);
    call->state.hijacked = true;
    rb_ivar_set(self, id_io, io);
    return io;
}

/* The call says that from now on it only waits (Puma's mark_as_io_bound).
 * @return [nil]
 * @see the setting max_io_threads */
static VALUE connection_mark(VALUE self) {
    rd_call *call = rd_connection_call(self);
    if (call != NULL) rd_pool_mark(call->visit);
    return Qnil;
}

/* Its own, or the one that carries it. -1: the client is gone. */
static int descriptor_of(const rd_call *call) {
    rd_conn *conn = call->request->conn;
    if (conn == NULL) return -1;
    rd_conn *carrier = rd_conn_carrier(conn);
    return carrier != NULL ? carrier->source.fd : conn->source.fd;
}

/* @return [String, nil] the address of the server's side of the socket, as the kernel packs it;
 *   nil: the call is over, or the client is gone. Of a request that another worker has read it is
 *   that of a Unix socket between the two */
static VALUE connection_local_address(VALUE self) {
    rd_call *call = rd_connection_call(self);
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    if (call == NULL) return Qnil;
    rd_lock(call->binding);
    const int fd = descriptor_of(call);
    const bool found = fd >= 0 && getsockname(fd, (struct sockaddr *)&bound, &len) == 0;
    rd_unlock(call->binding);
    return found ? rb_str_new((const char *)&bound, (long)len) : Qnil;
}

/* @return [Array(String, Integer), nil] address and port of the client: of the socket, or as a
 *   PROXY header says; nil: as above, or it is a Unix socket */
static VALUE connection_peer(VALUE self) {
    rd_call *call = rd_connection_call(self);
    char text[RD_ADDRESS_TEXT_MAX];
    rd_address peer = {.kind = RD_ADDRESS_NONE};
    if (call == NULL) return Qnil;
    rd_lock(call->binding);
    if (call->request->conn != NULL) peer = call->request->conn->peer;
    rd_unlock(call->binding);
    if (peer.kind != RD_ADDRESS_V4 && peer.kind != RD_ADDRESS_V6) return Qnil;
    const size_t len = rd_address_text(&peer, text);
    return rb_assoc_new(rb_usascii_str_new(text, (long)len), INT2FIX(peer.port));
}

/* @return [String] always the same: applications log what they are given */
static VALUE connection_inspect(VALUE self) {
    (void)self;
    return rb_usascii_str_new_cstr("#<Rondo::Connection>");
}

/* Document-class: Rondo::Connection
 * The object in rack.hijack. */
void rd_init_connection(VALUE rondo) {
    id_io = rb_intern("io");
    never = rb_hash_new();
    rb_hash_aset(never, rb_cObject, ID2SYM(rb_intern("never")));
    rb_obj_freeze(never);
    rb_gc_register_mark_object(never);
    cConnection = rb_define_class_under(rondo, "Connection", rb_cObject);
    allocate = rb_get_alloc_func(cConnection);
    rb_undef_alloc_func(cConnection);
    rb_define_method(cConnection, "call", connection_call, 0);
    rb_define_method(cConnection, "mark_as_io_bound", connection_mark, 0);
    rb_define_method(cConnection, "local_address", connection_local_address, 0);
    rb_define_method(cConnection, "peer", connection_peer, 0);
    rb_define_method(cConnection, "inspect", connection_inspect, 0);
}

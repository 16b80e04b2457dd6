/* SPDX-License-Identifier: MIT
 *
 * The keys of session tickets for Ruby, which never sees a byte of them; see rb_tickets.h.
 */
#include "ruby/rb_tickets.h"

#ifndef RD_WITHOUT_TLS

#include "ruby/rb_error.h"
#include "tls/ticket_keys.h"

static void tickets_free(void *keys) {
    if (keys != NULL) rd_ticket_keys_unref(keys);
}

static const rb_data_type_t tickets_type = {
    .wrap_struct_name = "Rondo::TLS::Tickets",
    .function = {.dfree = tickets_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE tickets_allocate(VALUE klass) {
    return TypedData_Wrap_Struct(klass, &tickets_type, NULL);
}

rd_ticket_keys *rd_ticket_keys_of(VALUE tickets) {
    if (NIL_P(tickets)) return NULL;
    rd_ticket_keys *keys = rb_check_typeddata(tickets, &tickets_type);
    if (keys == NULL) rb_raise(rd_eError, "tickets are not initialised");
    return keys;
}

static VALUE keep(VALUE self, rd_ticket_keys *keys) {
    if (keys == NULL) rb_sys_fail("tickets");
    if (DATA_PTR(self) != NULL) {
        rd_ticket_keys_unref(keys);
        rb_raise(rd_eError, "initialised twice");
    }
    DATA_PTR(self) = keys;
    return self;
}

/* Keys of this process.
 * @overload initialize(descriptor = nil)
 *   @param descriptor [Integer, nil] of the process before, with whose keys it goes on; stays the
 * caller's
 *   @raise [SystemCallError] no memory; EINVAL: the descriptor is of another kind */
static VALUE tickets_initialize(int argc, VALUE *argv, VALUE self) {
    VALUE descriptor;
    rb_scan_args(argc, argv, "01", &descriptor);
    return keep(self, rd_ticket_keys_new(NIL_P(descriptor) ? -1 : NUM2INT(descriptor)));
}

/* The keys of another process, to read.
 * @param descriptor [Integer] of its {#fd}; stays the caller's
 * @return [Tickets]
 * @raise [SystemCallError] EINVAL: the descriptor is of another kind */
static VALUE tickets_open(VALUE klass, VALUE descriptor) {
    return keep(tickets_allocate(klass), rd_ticket_keys_open(NUM2INT(descriptor)));
}

/* Makes a new key if the newest one is eight hours old.
 * @return [nil] */
static VALUE tickets_renew(VALUE self) {
    rd_ticket_keys_renew(rd_ticket_keys_of(self));
    return Qnil;
}

/* @return [Integer] for other processes; the keys own it. -1: another process has it */
static VALUE tickets_fd(VALUE self) {
    return INT2NUM(rd_ticket_keys_fd(rd_ticket_keys_of(self)));
}

/* Document-class: Rondo::TLS::Tickets
 * The keys of session tickets, in memory that the processes of a server share. */
void rd_init_tickets(VALUE tls) {
    VALUE tickets = rb_define_class_under(tls, "Tickets", rb_cObject);
    rb_define_alloc_func(tickets, tickets_allocate);
    rb_define_singleton_method(tickets, "open", tickets_open, 1);
    rb_define_method(tickets, "initialize", tickets_initialize, -1);
    rb_define_method(tickets, "renew", tickets_renew, 0);
    rb_define_method(tickets, "fd", tickets_fd, 0);
}

#else

rd_ticket_keys *rd_ticket_keys_of(VALUE tickets) {
    (void)tickets;
    return NULL;
}

void rd_init_tickets(VALUE tls) {
    (void)tls;
}

#endif

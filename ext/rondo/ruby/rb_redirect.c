/* SPDX-License-Identifier: MIT
 *
 * Rondo::Redirect: what answers on port 80 beside a port for TLS (control/redirect.h), as a Ruby
 * object. lib/rondo/certificates/door.rb uses it. Its native thread never runs this code and never
 * takes the GVL.
 */
#include "ruby/rb_objects.h"

#include "base/alloc.h"
#include "control/redirect.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_listen.h"

#include <pthread.h>

typedef struct rd_redirect_handle {
    rd_list in_all;
    rd_redirect *redirect; /* NULL before initialize, after close and in a forked child */
} rd_redirect_handle;

/* All handles of this process, for forks. Under the GVL, which a thread that forks holds. */
static rd_list all_handles = {&all_handles, &all_handles};

/* ---- forks ---- */

static rd_redirect *redirect_at(rd_list *node) {
    return RD_CONTAINER(node, rd_redirect_handle, in_all)->redirect;
}

static void before_fork(void) {
    for (rd_list *node = all_handles.next; node != &all_handles; node = node->next) {
        rd_redirect_hold(redirect_at(node));
    }
}

static void after_fork_in_parent(void) {
    for (rd_list *node = all_handles.next; node != &all_handles; node = node->next) {
        rd_redirect_release(redirect_at(node));
    }
}

/* Only memory is left of it in the child, and that is lost. */
static void after_fork_in_child(void) {
    for (rd_list *node; (node = rd_list_shift(&all_handles)) != NULL;) {
        rd_redirect_handle *handle = RD_CONTAINER(node, rd_redirect_handle, in_all);
        rd_redirect_abandon(handle->redirect);
        handle->redirect = NULL;
    }
}

/* ---- life ---- */

static void free_nogvl(void *redirect) {
    rd_redirect_free(redirect);
}

static rd_redirect *take_out(rd_redirect_handle *handle) {
    rd_redirect *redirect = handle->redirect;
    if (redirect != NULL) rd_list_unlink(&handle->in_all);
    handle->redirect = NULL;
    return redirect;
}

static void put_in(rd_redirect_handle *handle, rd_redirect *redirect) {
    handle->redirect = redirect;
    rd_list_append(&all_handles, &handle->in_all);
}

static void handle_free(void *pointer) {
    rd_redirect *redirect = take_out(pointer);
    if (redirect != NULL) rd_redirect_free(redirect);
    rd_free(pointer);
}

static const rb_data_type_t handle_type = {
    .wrap_struct_name = "Rondo::Redirect",
    .function = {.dfree = handle_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE redirect_allocate(VALUE klass) {
    rd_redirect_handle *handle = rd_alloc_zero(sizeof(*handle));
    rd_list_init(&handle->in_all);
    return TypedData_Wrap_Struct(klass, &handle_type, handle);
}

static rd_redirect_handle *handle_of(VALUE self) {
    return rb_check_typeddata(self, &handle_type);
}

static rd_redirect *redirect_of(VALUE self) {
    rd_redirect *redirect = handle_of(self)->redirect;
    if (redirect == NULL) rb_raise(rd_eError, "the redirects are closed");
    return redirect;
}

/* Redirect.new(webroot, https_port) */
static VALUE redirect_initialize(VALUE self, VALUE webroot, VALUE https_port) {
    rd_redirect_handle *handle = handle_of(self);
    const char *path = StringValueCStr(webroot);
    const unsigned port = NUM2UINT(https_port);
    if (handle->redirect != NULL) rb_raise(rd_eError, "initialised twice");
    rd_redirect *redirect = rd_redirect_new(path, (uint16_t)port);
    if (redirect == NULL) rb_sys_fail(path);
    put_in(handle, redirect);
    return self;
}

/* Binds and listens at once. Returns {url:, fd:}. */
static VALUE redirect_listen(VALUE self, VALUE address) {
    rd_redirect *redirect = redirect_of(self);
    rd_settings settings;
    rd_settings_init(&settings);
    rd_listener *listener = rd_listener_from(&settings, address, NULL);
    VALUE result = rb_hash_new();
    rb_hash_aset(result, ID2SYM(rb_intern("url")), rb_str_new_cstr(listener->url));
    rb_hash_aset(result, ID2SYM(rb_intern("fd")), INT2NUM(listener->source.fd));
    if (rd_redirect_add_listener(redirect, listener) != 0) {
        rd_listener_close(listener);
        rd_free(listener);
        rb_raise(rd_eAddressError, "the poller does not take the listening socket");
    }
    return result;
}

static VALUE redirect_start(VALUE self) {
    const int code = rd_redirect_start(redirect_of(self));
    if (code != 0) rb_syserr_fail(-code, "redirects");
    return Qnil;
}

/* Waits for the thread, without the GVL. May be called twice. */
static VALUE redirect_close(VALUE self) {
    rd_redirect_handle *handle = handle_of(self);
    for (rd_redirect *redirect; (redirect = take_out(handle)) != NULL;) {
        if (rd_gvl_try(free_nogvl, redirect)) break;
        put_in(handle, redirect);
        rd_gvl_check_interrupts();
    }
    return Qnil;
}

/* Document-class: Rondo::Redirect
 * Answers requests of HTTP with the same address of HTTPS.
 * @api private */
void rd_init_redirect(VALUE rondo) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    VALUE klass = rb_define_class_under(rondo, "Redirect", rb_cObject);
    rb_define_alloc_func(klass, redirect_allocate);
    rb_define_method(klass, "initialize", redirect_initialize, 2);
    rb_define_method(klass, "listen", redirect_listen, 1);
    rb_define_method(klass, "start", redirect_start, 0);
    rb_define_method(klass, "close", redirect_close, 0);
}

/* SPDX-License-Identifier: MIT
 *
 * Rondo::Control::Core: the control server as a Ruby object. lib/rondo/process/control.rb wraps it
 * and documents the public interface. Its native thread never runs this code and never takes the
 * GVL.
 */
#include "ruby/rb_objects.h"

#include "base/alloc.h"
#include "control/access.h"
#include "control/control.h"
#include "control/verbs.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_listen.h"
#include "ruby/rb_scoreboard.h"
#include "ruby/rb_value.h"

#include <pthread.h>

typedef struct rd_control_handle {
    rd_list in_all;
    rd_control *control; /* NULL before initialize, after close and in a forked child */
    VALUE board;         /* whose memory the control server reads */
} rd_control_handle;

/* All handles of this process, for forks. Under the GVL, which a thread that forks holds. */
static rd_list all_handles = {&all_handles, &all_handles};

#define EACH_HANDLE(handle, node)                                                                  \
    for (rd_list *node = all_handles.next; node != &all_handles; node = node->next)                \
        for (rd_control_handle *handle = RD_CONTAINER(node, rd_control_handle, in_all);            \
             handle != NULL; handle = NULL)

/* ---- forks ---- */

static void before_fork(void) {
    EACH_HANDLE(handle, node) {
        rd_control_hold(handle->control);
    }
}

static void after_fork_in_parent(void) {
    EACH_HANDLE(handle, node) {
        rd_control_release(handle->control);
    }
}

/* Only memory is left of it in the child, and that is lost: see rd_control_abandon(). */
static void after_fork_in_child(void) {
    for (rd_list *node; (node = rd_list_shift(&all_handles)) != NULL;) {
        rd_control_handle *handle = RD_CONTAINER(node, rd_control_handle, in_all);
        rd_control_abandon(handle->control);
        handle->control = NULL;
    }
}

/* ---- life ---- */

static void free_nogvl(void *control) {
    rd_control_free(control);
}

static rd_control *take_out(rd_control_handle *handle) {
    rd_control *control = handle->control;
    if (control != NULL) rd_list_unlink(&handle->in_all);
    handle->control = NULL;
    return control;
}

static void put_in(rd_control_handle *handle, rd_control *control) {
    handle->control = control;
    rd_list_append(&all_handles, &handle->in_all);
}

static void handle_mark(void *pointer) {
    rb_gc_mark_movable(((rd_control_handle *)pointer)->board);
}

static void handle_compact(void *pointer) {
    rd_control_handle *handle = pointer;
    handle->board = rb_gc_location(handle->board);
}

static void handle_free(void *pointer) {
    rd_control *control = take_out(pointer);
    if (control != NULL) rd_control_free(control);
    rd_free(pointer);
}

static const rb_data_type_t handle_type = {
    .wrap_struct_name = "Rondo::Control::Core",
    .function = {.dmark = handle_mark, .dfree = handle_free, .dcompact = handle_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE control_allocate(VALUE klass) {
    rd_control_handle *handle = rd_alloc_zero(sizeof(*handle));
    rd_list_init(&handle->in_all);
    handle->board = Qnil;
    return TypedData_Wrap_Struct(klass, &handle_type, handle);
}

static rd_control_handle *handle_of(VALUE self) {
    return rb_check_typeddata(self, &handle_type);
}

static rd_control *control_of(VALUE self) {
    rd_control *control = handle_of(self)->control;
    if (control == NULL) rb_raise(rd_eError, "the control server is closed");
    return control;
}

/* ---- making one ---- */

static const char *text_option(VALUE options, const char *name) {
    VALUE text = rd_option(options, name);
    return NIL_P(text) ? NULL : StringValueCStr(text);
}

static uint32_t verbs_of(VALUE names) {
    uint32_t verbs = 0;
    for (long i = 0; i < RARRAY_LEN(names); i++) {
        VALUE name = RARRAY_AREF(names, i);
        int verb = rd_verb_find(StringValuePtr(name), (size_t)RSTRING_LEN(name));
        if (verb < 0) rb_raise(rb_eArgError, "no such verb: %s", StringValueCStr(name));
        verbs |= 1u << verb;
    }
    return verbs;
}

/* Core.new(scoreboard, {token:, versions:, about:, page:, page_policy:, cluster:, room:, verbs:,
 * answer_timeout_ms:}) */
static VALUE control_initialize(VALUE self, VALUE board, VALUE given) {
    rd_control_handle *handle = handle_of(self);
    VALUE names = rd_option(given, "verbs");
    int process_fd = -1;
    Check_Type(names, T_ARRAY);
    if (handle->control != NULL) rb_raise(rd_eError, "initialised twice");
    rd_control_options options = {.board = rd_scoreboard_of(board),
                                  .token = text_option(given, "token"),
                                  .versions = text_option(given, "versions"),
                                  .about = text_option(given, "about"),
                                  .page = text_option(given, "page"),
                                  .page_policy = text_option(given, "page_policy"),
                                  .cluster = RTEST(rd_option(given, "cluster")),
                                  .room = NUM2UINT(rd_option(given, "room")),
                                  .verbs = verbs_of(names),
                                  .answer_timeout_ms =
                                      NUM2LL(rd_option(given, "answer_timeout_ms"))};
    rd_control *control = rd_control_new(&options, &process_fd);
    if (control == NULL) rb_sys_fail("control server");
    put_in(handle, control);
    RB_OBJ_WRITE(self, &handle->board, board);
    rb_ivar_set(self, rb_intern("@process_fd"), INT2NUM(process_fd));
    return self;
}

/* The descriptor from which the process reads verbs; the caller owns it. */
static VALUE control_process_fd(VALUE self) {
    return rb_ivar_get(self, rb_intern("@process_fd"));
}

/* ---- addresses ---- */

static VALUE described(const rd_listener *listener) {
    VALUE result = rb_hash_new();
    rb_hash_aset(result, ID2SYM(rb_intern("url")), rb_str_new_cstr(listener->url));
    rb_hash_aset(result, ID2SYM(rb_intern("port")), UINT2NUM(listener->port));
    rb_hash_aset(result, ID2SYM(rb_intern("fd")), INT2NUM(listener->source.fd));
    rb_hash_aset(result, ID2SYM(rb_intern("public")),
                 rd_access_is_public(listener) ? Qtrue : Qfalse);
    return result;
}

/* Binds and listens at once. Returns {url:, port:, fd:, public:}. */
static VALUE control_listen(VALUE self, VALUE address) {
    rd_control *control = control_of(self);
    rd_settings settings;
    rd_settings_init(&settings);
    rd_listener *listener = rd_listener_from(&settings, address, NULL);
    VALUE result = described(listener);
    if (rd_control_add_listener(control, listener) != 0) {
        rd_listener_close(listener);
        rd_free(listener);
        rb_raise(rd_eAddressError, "the poller does not take the listening socket");
    }
    return result;
}

/* add_queue(url, descriptor, slot or nil): Rondo::Control#watch for one socket. */
static VALUE control_add_queue(VALUE self, VALUE url, VALUE fd, VALUE slot) {
    rd_control_add_queue(control_of(self), StringValueCStr(url), NUM2INT(fd),
                         NIL_P(slot) ? -1 : NUM2INT(slot));
    return Qnil;
}

static VALUE control_clear_queues(VALUE self) {
    rd_control_clear_queues(control_of(self));
    return Qnil;
}

/* show_certificates([[url, file, names as JSON, seconds of the epoch]]):
 * Rondo::Control#show_certificates */
static VALUE control_show_certificates(VALUE self, VALUE rows) {
    rd_control *control = control_of(self);
    rd_certificate_list list = {0};
    for (long i = 0; i < RARRAY_LEN(rows);
         i++) { /* nothing is added before all of it was looked at */
        VALUE row = rb_ary_entry(rows, i);
        for (long at = 0; at < 3; at++) {
            VALUE text = rb_ary_entry(row, at);
            StringValueCStr(text);
        }
        NUM2LL(rb_ary_entry(row, 3));
    }
    for (long i = 0; i < RARRAY_LEN(rows); i++) {
        VALUE row = RARRAY_AREF(rows, i);
        const rd_certificate_row read = {.url = RSTRING_PTR(RARRAY_AREF(row, 0)),
                                         .file = RSTRING_PTR(RARRAY_AREF(row, 1)),
                                         .names = RSTRING_PTR(RARRAY_AREF(row, 2)),
                                         .expires_s = NUM2LL(RARRAY_AREF(row, 3))};
        rd_certificate_list_add(&list, &read);
    }
    rd_control_show_certificates(control, &list);
    RB_GC_GUARD(rows);
    return Qnil;
}

/* body(id): the bytes of a request that waits for that answer, or nil if none does any more. */
static VALUE control_body(VALUE self, VALUE id) {
    rd_buffer bytes = {0};
    const bool is_there = rd_control_body(control_of(self), NUM2ULL(id), &bytes);
    VALUE text = Qnil;
    if (is_there) text = rb_str_new(rd_buffer_ptr(&bytes), (long)rd_buffer_len(&bytes));
    rd_buffer_clear(&bytes);
    return text;
}

/* ---- running ---- */

static VALUE control_start(VALUE self) {
    int code = rd_control_start(control_of(self));
    if (code != 0) rb_syserr_fail(-code, "control server");
    return Qnil;
}

static VALUE control_leave(VALUE self) {
    rd_control_leave(control_of(self));
    return Qnil;
}

static VALUE control_keep_files(VALUE self) {
    rd_control_keep_files(control_of(self));
    return Qnil;
}

/* Waits for the thread, without the GVL. May be called twice. The handle stays in the list until
 * the wait begins, because an interrupt may raise, fork or close before. */
static VALUE control_close(VALUE self) {
    rd_control_handle *handle = handle_of(self);
    for (rd_control *control; (control = take_out(handle)) != NULL;) {
        if (rd_gvl_try(free_nogvl, control)) break;
        put_in(handle, control);
        rd_gvl_check_interrupts();
    }
    return Qnil;
}

static VALUE verb_table(void) {
    VALUE table = rb_hash_new();
    for (int i = 0; i < RD_VERB_COUNT; i++) {
        const rd_verb_info *row = &rd_verb_table[i];
        VALUE entry = rb_hash_new();
        rb_hash_aset(entry, ID2SYM(rb_intern("answers")), row->answers ? Qtrue : Qfalse);
        rb_hash_aset(entry, ID2SYM(rb_intern("doc")), rb_obj_freeze(rb_str_new_cstr(row->doc)));
        rb_hash_aset(table, rb_obj_freeze(rb_str_new_cstr(row->path)), rb_obj_freeze(entry));
    }
    return rb_obj_freeze(table);
}

void rd_init_control(VALUE rondo) {
    VALUE control = rb_define_class_under(rondo, "Control", rb_cObject);
    rb_define_const(control, "VERBS", verb_table());
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    VALUE core = rb_define_class_under(control, "Core", rb_cObject);
    rb_define_alloc_func(core, control_allocate);
    rb_define_method(core, "initialize", control_initialize, 2);
    rb_define_method(core, "process_fd", control_process_fd, 0);
    rb_define_method(core, "listen", control_listen, 1);
    rb_define_method(core, "add_queue", control_add_queue, 3);
    rb_define_method(core, "clear_queues", control_clear_queues, 0);
    rb_define_method(core, "show_certificates", control_show_certificates, 1);
    rb_define_method(core, "body", control_body, 1);
    rb_define_method(core, "start", control_start, 0);
    rb_define_method(core, "leave", control_leave, 0);
    rb_define_method(core, "keep_files", control_keep_files, 0);
    rb_define_method(core, "close", control_close, 0);
}

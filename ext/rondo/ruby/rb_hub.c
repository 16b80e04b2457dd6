/* SPDX-License-Identifier: MIT
 *
 * Rondo::Hub::Core: the hub of a cluster as a Ruby object. lib/rondo/pubsub/hub.rb wraps it and
 * documents the public interface. Its native thread never runs this code and never takes the GVL.
 */
#include "ruby/rb_objects.h"

#include "base/alloc.h"
#include "base/error.h"
#include "system/fd.h"
#include "cluster/hub_thread.h"
#include "pubsub/glob.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_message.h"
#include "ruby/rb_names.h"
#include "ruby/rb_scoreboard.h"
#include "ruby/rb_value.h"

#include <pthread.h>
#include <sys/mman.h>

typedef struct rd_hub_handle {
    rd_list in_all;
    rd_hub_thread *hub; /* NULL before initialize, after close and in a forked child */
    VALUE board;        /* whose rows the hub writes */
    size_t publish_bytes;
} rd_hub_handle;

/* All handles of this process, for forks. Under the GVL, which a thread that forks holds. */
static rd_list all_handles = {&all_handles, &all_handles};

#define EACH_HANDLE(handle, node)                                                                  \
    for (rd_list *node = all_handles.next; node != &all_handles; node = node->next)                \
        for (rd_hub_handle *handle = RD_CONTAINER(node, rd_hub_handle, in_all); handle != NULL;    \
             handle = NULL)

/* ---- forks ---- */

static void before_fork(void) {
    EACH_HANDLE(handle, node) {
        rd_hub_thread_hold(handle->hub);
    }
}

static void after_fork_in_parent(void) {
    EACH_HANDLE(handle, node) {
        rd_hub_thread_release(handle->hub);
    }
}

/* Only memory is left of it in the child, and that is lost: see rd_hub_thread_abandon(). */
static void after_fork_in_child(void) {
    for (rd_list *node; (node = rd_list_shift(&all_handles)) != NULL;) {
        rd_hub_handle *handle = RD_CONTAINER(node, rd_hub_handle, in_all);
        rd_hub_thread_abandon(handle->hub);
        handle->hub = NULL;
    }
}

/* ---- life ---- */

static void free_nogvl(void *hub) {
    rd_hub_thread_free(hub);
}

static void stop_nogvl(void *hub) {
    rd_hub_thread_stop(hub);
}

static rd_hub_thread *take_out(rd_hub_handle *handle) {
    rd_hub_thread *hub = handle->hub;
    if (hub != NULL) rd_list_unlink(&handle->in_all);
    handle->hub = NULL;
    return hub;
}

static void put_in(rd_hub_handle *handle, rd_hub_thread *hub) {
    handle->hub = hub;
    rd_list_append(&all_handles, &handle->in_all);
}

static void handle_mark(void *pointer) {
    rb_gc_mark_movable(((rd_hub_handle *)pointer)->board);
}

static void handle_compact(void *pointer) {
    rd_hub_handle *handle = pointer;
    handle->board = rb_gc_location(handle->board);
}

static void handle_free(void *pointer) {
    rd_hub_thread *hub = take_out(pointer);
    if (hub != NULL) rd_hub_thread_free(hub);
    rd_free(pointer);
}

static const rb_data_type_t handle_type = {
    .wrap_struct_name = "Rondo::Hub::Core",
    .function = {.dmark = handle_mark, .dfree = handle_free, .dcompact = handle_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE hub_allocate(VALUE klass) {
    rd_hub_handle *handle = rd_alloc_zero(sizeof(*handle));
    rd_list_init(&handle->in_all);
    handle->board = Qnil;
    return TypedData_Wrap_Struct(klass, &handle_type, handle);
}

static rd_hub_handle *handle_of(VALUE self) {
    return rb_check_typeddata(self, &handle_type);
}

static rd_hub_thread *hub_of(VALUE self) {
    rd_hub_thread *hub = handle_of(self)->hub;
    if (hub == NULL) rb_raise(rd_eError, "the hub is closed");
    return hub;
}

/* Core.new(scoreboard, messages, bytes, queue_bytes, publish_bytes): limits of the history, of each
 * link and of a message. */
static VALUE hub_initialize(VALUE self, VALUE board, VALUE messages, VALUE bytes, VALUE queue,
                            VALUE publish) {
    rd_hub_handle *handle = handle_of(self);
    const rd_history_limits limits = {NUM2UINT(messages), NUM2SIZET(bytes)};
    const size_t queue_bytes = NUM2SIZET(queue);
    handle->publish_bytes = NUM2SIZET(publish);
    if (handle->hub != NULL) rb_raise(rd_eError, "initialised twice");
    rd_scoreboard_of(board);
    rd_hub_thread *hub = rd_hub_thread_new(limits, queue_bytes);
    if (hub == NULL) rb_sys_fail("hub");
    put_in(handle, hub);
    RB_OBJ_WRITE(self, &handle->board, board);
    return self;
}

static VALUE hub_start(VALUE self) {
    const int code = rd_hub_thread_start(hub_of(self));
    if (code != 0) rb_syserr_fail(-code, "hub");
    return Qnil;
}

/* Ends the thread and waits for it. All links stay. */
static VALUE hub_stop(VALUE self) {
    /* hub_of() is called again after each interrupt, which may have closed the hub. */
    while (!rd_gvl_try(stop_nogvl, hub_of(self))) rd_gvl_check_interrupts();
    return Qnil;
}

/* May be called twice. The handle stays in the list until the wait begins, because an interrupt may
 * raise, fork or close before. */
static VALUE hub_close(VALUE self) {
    rd_hub_handle *handle = handle_of(self);
    for (rd_hub_thread *hub; (hub = take_out(handle)) != NULL;) {
        if (rd_gvl_try(free_nogvl, hub)) break;
        put_in(handle, hub);
        rd_gvl_check_interrupts();
    }
    return Qnil;
}

/* ---- links ---- */

/* add(descriptor, row of the scoreboard or nil) takes over the descriptor of a worker's socket.
 * @return [Integer] number of the link */
static VALUE hub_add(VALUE self, VALUE fd, VALUE seat) {
    rd_hub_handle *handle = handle_of(self);
    rd_hub_thread *hub = hub_of(self);
    const rd_scoreboard *board = rd_scoreboard_of(handle->board);
    rd_score_row *score = NULL;
    if (!NIL_P(seat)) {
        const unsigned number = NUM2UINT(seat);
        if (number >= board->row_count) rb_raise(rb_eIndexError, "row %u", number);
        score = &board->rows[number];
    }
    const int64_t number = rd_hub_thread_add(hub, NUM2INT(fd), RD_HUB_WORKER, score);
    if (number < 0) rb_sys_fail("hub");
    return LL2NUM(number);
}

static VALUE add_without_score(VALUE self, VALUE fd, rd_hub_kind kind) {
    const int64_t number = rd_hub_thread_add(hub_of(self), NUM2INT(fd), kind, NULL);
    if (number < 0) rb_sys_fail("hub");
    return LL2NUM(number);
}

/* add_engine(descriptor, whether it keeps messages) takes over the descriptor of the engine's
 * socket. @return [Integer] number of the link */
static VALUE hub_add_engine(VALUE self, VALUE fd, VALUE keeps) {
    return add_without_score(self, fd, RTEST(keeps) ? RD_HUB_STREAMS : RD_HUB_ENGINE);
}

/* Until the engine that keeps messages joins, clients that were away wait for it. */
static VALUE hub_expect_streams(VALUE self) {
    rd_hub_thread_expect_streams(hub_of(self));
    return Qnil;
}

/* Messages for an engine are those of this server. */
static VALUE hub_expect_no_engine(VALUE self) {
    rd_hub_thread_expect_no_engine(hub_of(self));
    return Qnil;
}

/* add_root(descriptor) the same for a subscription of this process. @return [Integer] */
static VALUE hub_add_root(VALUE self, VALUE fd) {
    return add_without_score(self, fd, RD_HUB_ROOT);
}

/* The process of this link has ended, or its engine is to end. */
static VALUE hub_remove(VALUE self, VALUE number) {
    rd_hub_thread_remove(hub_of(self), NUM2LL(number));
    return Qnil;
}

/* @return [Integer, nil] number of a link that has begun to lose messages since the last call */
static VALUE hub_outage(VALUE self) {
    const int64_t number = rd_hub_thread_outage(hub_of(self));
    return number == 0 ? Qnil : LL2NUM(number);
}

/* ---- publishing ---- */

static unsigned reach_of(VALUE name) {
    if (name == ID2SYM(rd_id.engine)) return RD_RELAY_ENGINE;
    if (name == ID2SYM(rd_id.siblings)) return RD_RELAY_WORKERS;
    if (name == ID2SYM(rd_id.confirm)) return RD_RELAY_ENGINE | RD_RELAY_CONFIRM;
    return name == ID2SYM(rd_id.root) ? RD_RELAY_ROOT : 0;
}

/* publish(channel, message, :cluster, :engine, :confirm, :siblings or :root). @return [Boolean]
 * whether it was queued for all links that want it */
static VALUE hub_publish(VALUE self, VALUE channel, VALUE message, VALUE reach) {
    rd_hub_thread *hub = hub_of(self);
    VALUE name = rd_channel_name_of(channel), string = rd_message_text_of(message);
    const unsigned flags =
        (rd_message_is_published_as_text(string) ? RD_RELAY_TEXT : 0) | reach_of(reach);
    const size_t note = (flags & RD_RELAY_CONFIRM) ? RD_RELAY_CONFIRM_NOTE : 0;
    if ((size_t)RSTRING_LEN(string) > note + handle_of(self)->publish_bytes) rd_message_too_long();
    const int code =
        rd_hub_thread_publish(hub, rd_slice_of_string(name), rd_slice_of_string(string), flags);
    if (code < 0) rb_raise(rb_eArgError, "%s", rd_error_text(code));
    RB_GC_GUARD(name);
    RB_GC_GUARD(string);
    return code > 0 ? Qtrue : Qfalse;
}

/* give_back(channel, message): of an engine that has left; the message begins with a note.
 * @return [Boolean] false: there is no room */
static VALUE hub_give_back(VALUE self, VALUE channel, VALUE message) {
    VALUE name = rd_channel_name_of(channel), string = rd_message_text_of(message);
    const unsigned text = rd_message_is_published_as_text(string) ? RD_RELAY_TEXT : 0;
    const bool is_taken =
        rd_hub_thread_give_back(hub_of(self), rd_slice_of_string(name), rd_slice_of_string(string),
                                text | RD_RELAY_CONFIRM);
    RB_GC_GUARD(name);
    RB_GC_GUARD(string);
    return is_taken ? Qtrue : Qfalse;
}

static VALUE hub_keep(VALUE self, VALUE channel, VALUE pattern, VALUE size, VALUE ttl_ms,
                      VALUE bytes) {
    rd_hub_thread *hub = hub_of(self);
    VALUE name = rd_channel_name_of(channel);
    const rd_relay_terms terms = {NUM2UINT(size), NUM2ULL(ttl_ms), NUM2ULL(bytes)};
    rd_hub_thread_keep(hub, rd_slice_of_string(name), RTEST(pattern), terms);
    RB_GC_GUARD(name);
    return Qnil;
}

static VALUE hub_stats(VALUE self) {
    rd_hub_stats stats;
    VALUE result = rb_hash_new();
    rd_hub_thread_stats(hub_of(self), &stats);
#define PUT(name) rb_hash_aset(result, ID2SYM(rb_intern(#name)), ULL2NUM(stats.name));
    PUT(links)
    PUT(published)
    PUT(sent)
    PUT(dropped)
    PUT(queue_bytes)
    PUT(kept)
    PUT(unclaimed_lost)
#undef PUT
    return result;
}

/* ---- for the program that this process becomes ---- */

typedef struct rd_hub_descriptor {
    int64_t number;
    int fd;
} rd_hub_descriptor;

/* Runs under the lock, so it makes no Ruby objects. */
static void add_descriptor(void *found, int64_t number, int fd) {
    const rd_hub_descriptor descriptor = {number, fd};
    rd_buffer_append(found, (const char *)&descriptor, sizeof(descriptor));
}

static VALUE descriptors_of(rd_hub_thread *hub) {
    rd_buffer found = {0};
    VALUE result = rb_ary_new();
    rd_hub_thread_each(hub, add_descriptor, &found);
    for (size_t at = 0; at < rd_buffer_len(&found); at += sizeof(rd_hub_descriptor)) {
        rd_hub_descriptor each;
        memcpy(&each, rd_buffer_ptr(&found) + at, sizeof(each));
        rb_ary_push(result, rb_assoc_new(LL2NUM(each.number), INT2NUM(each.fd)));
    }
    rd_buffer_clear(&found);
    return result;
}

/* Between stop and start. @return [Array(Integer, Array)] descriptor of a nameless file with the
 * whole state, which the caller owns, and numbers of the links with their descriptors */
static VALUE hub_save(VALUE self) {
    rd_hub_thread *hub = hub_of(self);
    bool can_be_sealed;
    const int fd = rd_fd_nameless("rondo hub", &can_be_sealed);
    if (fd < 0) rb_sys_fail("hub");
    if (rd_hub_thread_save(hub, fd) != 0) {
        rd_close_keeping_errno(fd);
        rb_sys_fail("hub");
    }
    return rb_assoc_new(INT2NUM(fd), descriptors_of(hub));
}

/* Before start. @return [Boolean] whether it was a file of {#save}, with all its descriptors */
static VALUE hub_restore(VALUE self, VALUE fd) {
    return rd_hub_thread_restore(hub_of(self), NUM2INT(fd)) == 0 ? Qtrue : Qfalse;
}

/* matches?(pattern, name): as rules of the history and subscriptions match. @return [Boolean] */
static VALUE hub_matches(VALUE self, VALUE pattern, VALUE name) {
    (void)self;
    StringValue(pattern);
    StringValue(name);
    const bool is_match = rd_glob_matches(rd_slice_of_string(pattern), rd_slice_of_string(name));
    RB_GC_GUARD(pattern);
    RB_GC_GUARD(name);
    return is_match ? Qtrue : Qfalse;
}

void rd_init_hub(VALUE rondo) {
    VALUE hub = rb_define_class_under(rondo, "Hub", rb_cObject);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    VALUE core = rb_define_class_under(hub, "Core", rb_cObject);
    rb_define_alloc_func(core, hub_allocate);
    rb_define_singleton_method(core, "matches?", hub_matches, 2);
    rb_define_method(core, "initialize", hub_initialize, 5);
    rb_define_method(core, "start", hub_start, 0);
    rb_define_method(core, "stop", hub_stop, 0);
    rb_define_method(core, "close", hub_close, 0);
    rb_define_method(core, "add", hub_add, 2);
    rb_define_method(core, "expect_streams", hub_expect_streams, 0);
    rb_define_method(core, "expect_no_engine", hub_expect_no_engine, 0);
    rb_define_method(core, "add_engine", hub_add_engine, 2);
    rb_define_method(core, "add_root", hub_add_root, 1);
    rb_define_method(core, "remove", hub_remove, 1);
    rb_define_method(core, "outage", hub_outage, 0);
    rb_define_method(core, "publish", hub_publish, 3);
    rb_define_method(core, "give_back", hub_give_back, 2);
    rb_define_method(core, "keep", hub_keep, 5);
    rb_define_method(core, "stats", hub_stats, 0);
    rb_define_method(core, "save", hub_save, 0);
    rb_define_method(core, "restore", hub_restore, 1);
}

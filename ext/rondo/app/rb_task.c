/* SPDX-License-Identifier: MIT
 *
 * Rondo::Task, and Rondo.run; see rb_task.h. lib/rondo/tasks.rb checks the arguments and documents
 * the other methods that make tasks. The binding keeps tasks by index until they are over.
 */
#include "app/rb_task.h"

#include "base/apart.h"
#include "system/clock.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "binding/rb_fork.h"

typedef struct rd_block {
    rd_task task;
    rd_binding *binding; /* a reference; NULL: no server has it */
    VALUE block;
    uint32_t index; /* in the binding's Array, if is_kept */
    bool is_kept;
} rd_block;

static VALUE cTask, eTaskLimit;
static VALUE remembered; /* tasks for the next server of this process */

static void block_mark(void *pointer) {
    const rd_block *block = pointer;
    rb_gc_mark_movable(block->block);
    /* The binding's objects live as long as the server, and a task may outlive the server. */
    if (block->binding != NULL) rb_gc_mark(block->binding->self);
}

static void block_compact(void *pointer) {
    rd_block *block = pointer;
    block->block = rb_gc_location(block->block);
}

static bool cancel(rd_block *block) {
    if (block->binding == NULL) return rd_task_cancel(&block->task);
    if (rd_is_forked(block->binding)) return false;
    rd_lock(block->binding);
    const bool would = rd_task_cancel(&block->task);
    rd_unlock(block->binding);
    return would;
}

static void block_free(void *pointer) {
    rd_block *block = pointer;
    cancel(block);
    if (block->binding != NULL) rd_binding_unref(block->binding);
    xfree(block);
}

static size_t block_size(const void *pointer) {
    (void)pointer;
    return sizeof(rd_block);
}

static const rb_data_type_t block_type = {
    .wrap_struct_name = "Rondo::Task",
    .function = {.dmark = block_mark,
                 .dfree = block_free,
                 .dsize = block_size,
                 .dcompact = block_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static rd_block *block_of(VALUE self) {
    return rb_check_typeddata(self, &block_type);
}

/* ---- the binding's Array ---- */

static void keep(rd_binding *binding, VALUE self, rd_block *block) {
    block->index = rd_indexes_acquire(&binding->tasks.indexes);
    rb_ary_store(binding->tasks.objects, block->index, self);
    block->is_kept = true;
}

/* It is over, and nothing calls its block any more. */
static void let_go(rd_binding *binding, VALUE self, rd_block *block) {
    if (!block->is_kept) return;
    block->is_kept = false;
    rb_ary_store(binding->tasks.objects, block->index, Qnil);
    rd_indexes_release(&binding->tasks.indexes, block->index);
    RB_OBJ_WRITE(self, &block->block, Qnil);
}

/* ---- which server has it ---- */

/* The server that runs in this process, rather one that does not stop. */
static rd_binding *serving(void) {
    rd_binding *found = NULL;
    RD_EACH_BINDING(binding, node) {
        if (!binding->running) continue;
        if (!rd_server_is_stopping(binding->server)) return binding;
        if (found == NULL) found = binding;
    }
    return found;
}

static void begin(rd_binding *binding, VALUE self) {
    rd_block *block = block_of(self);
    if (block->task.state == RD_TASK_OVER) return;
    keep(binding, self, block);
    rd_binding_ref(binding);
    block->binding = binding;
    RB_OBJ_WRITTEN(self, Qundef, binding->self);
    rd_lock(binding);
    rd_tasks_add(&binding->server->tasks, &block->task, rd_clock_ns());
    const bool is_over = block->task.state == RD_TASK_OVER;
    rd_unlock(binding);
    if (is_over) let_go(binding, self, block);
}

RD_APART static void check_room(uint64_t count, int64_t most) {
    if (count < (uint64_t)most) return;
    rb_raise(eTaskLimit, "too many tasks wait and timers are set: max_tasks is %lld",
             (long long)most);
}

static void remember(VALUE self) {
    rd_settings defaults;
    rd_settings_init(&defaults);
    check_room((uint64_t)RARRAY_LEN(remembered), defaults.max_tasks);
    rb_ary_push(remembered, self);
}

void rd_task_begin_remembered(rd_binding *binding) {
    VALUE all = rb_ary_dup(remembered);
    rb_ary_clear(remembered);
    for (long i = 0; i < RARRAY_LEN(all); i++) begin(binding, RARRAY_AREF(all, i));
    RB_GC_GUARD(all);
}

typedef struct rd_drop_report {
    rd_binding *binding;
    uint64_t count;
} rd_drop_report;

static VALUE report_dropped(VALUE argument) {
    const rd_drop_report *report = (const rd_drop_report *)argument;
    return rb_funcall(report->binding->app.reporter, rb_intern("report_dropped_tasks"), 1,
                      ULL2NUM(report->count));
}

void rd_task_end_all(rd_binding *binding) {
    rd_drop_report report = {.binding = binding};
    VALUE all = binding->tasks.objects;
    int state = 0;
    rd_lock(binding);
    rd_tasks_end(&binding->server->tasks);
    report.count = binding->server->tasks.dropped;
    rd_unlock(binding);
    for (long i = 0; i < RARRAY_LEN(all); i++) {
        VALUE self = RARRAY_AREF(all, i);
        if (!NIL_P(self)) block_of(self)->is_kept = false;
    }
    rb_ary_clear(all);
    rd_indexes_clear(&binding->tasks.indexes);
    if (report.count == 0) return;
    rb_protect(report_dropped, (VALUE)&report, &state);
    if (state != 0) rb_set_errinfo(Qnil);
}

/* ---- on the threads of the application ---- */

VALUE rd_task_object(const rd_binding *binding, const rd_task *task) {
    const rd_block *block = RD_CONTAINER(task, const rd_block, task);
    return RARRAY_AREF(binding->tasks.objects, block->index);
}

rd_task *rd_task_next(rd_binding *binding, rd_task *before, bool goes_on) {
    rd_server *server = binding->server;
    rd_block *block = before == NULL ? NULL : RD_CONTAINER(before, rd_block, task);
    VALUE self = block != NULL && block->is_kept ? rd_task_object(binding, before) : Qnil;
    rd_lock(binding);
    const uint64_t now_ns = rd_clock_ns();
    const bool is_over = before != NULL && !rd_tasks_give_back(&server->tasks, before, now_ns);
    rd_task *task = goes_on ? rd_server_next_task(server, now_ns) : NULL;
    rd_unlock(binding);
    if (is_over) let_go(binding, self, block);
    RB_GC_GUARD(self);
    return task;
}

static VALUE call(VALUE block) {
    return rb_proc_call_with_block(block, 0, NULL, Qnil);
}

typedef struct rd_failure {
    const rd_binding *binding;
    VALUE error, block;
} rd_failure;

static VALUE report_failure(VALUE argument) {
    const rd_failure *failure = (const rd_failure *)argument;
    return rb_funcall(failure->binding->app.reporter, rb_intern("report_task"), 2, failure->error,
                      failure->block);
}

/* An exception ends this run and nothing else. A Thread#kill ends the thread. */
RD_APART static int handle_failure(rd_binding *binding, VALUE block, int state) {
    VALUE error = rb_errinfo();
    atomic_fetch_add_explicit(&binding->server->score->tasks_failed, 1, memory_order_relaxed);
    if (!rb_obj_is_kind_of(error, rb_eException)) return state;
    rb_set_errinfo(Qnil);
    const rd_failure failure = {binding, error, block};
    state = 0;
    rb_protect(report_failure, (VALUE)&failure, &state);
    if (state == 0) return 0;
    if (rb_obj_is_kind_of(rb_errinfo(), rb_eException)) state = 0;
    rb_set_errinfo(Qnil);
    return state;
}

int rd_task_run(rd_binding *binding, const rd_task *task) {
    VALUE block = RD_CONTAINER(task, const rd_block, task)->block;
    int state = 0;
    rb_protect(call, block, &state);
    if (state == 0 || rd_is_forked(binding)) return 0;
    state = handle_failure(binding, block, state);
    RB_GC_GUARD(block);
    return state;
}

/* ---- from the application ---- */

static VALUE new_task(VALUE klass, uint64_t interval_ns, uint64_t runs, bool when_idle,
                      VALUE proc) {
    rd_block *block;
    rd_binding *binding = serving();
    if (binding != NULL) {
        check_room(binding->server->tasks.live, binding->server->settings.max_tasks);
    }
    VALUE self = TypedData_Make_Struct(klass, rd_block, &block_type, block);
    rd_task_init(&block->task, interval_ns, runs, when_idle);
    RB_OBJ_WRITE(self, &block->block, proc);
    if (binding == NULL) {
        remember(self);
    } else {
        begin(binding, self);
    }
    return self;
}

RD_APART static void need_block(bool is_one) {
    if (!is_one) rb_raise(rb_eArgError, "a task needs a block");
}

/* begin(interval_ns, runs, when_idle, block): runs 0 is for ever.
 * @api private */
static VALUE task_begin(VALUE klass, VALUE interval_ns, VALUE runs, VALUE when_idle, VALUE proc) {
    const uint64_t ns = NUM2ULL(interval_ns), count = NUM2ULL(runs);
    need_block(RTEST(rb_obj_is_proc(proc)));
    return new_task(klass, ns, count == 0 ? RD_TASK_FOR_EVER : count, RTEST(when_idle), proc);
}

/* Calls the block soon, on an application thread. Tasks begin in the order of these calls. Any
 * thread.
 * @yield
 * @return [Task]
 * @raise [ArgumentError] without a block
 * @raise [TaskLimitError] there are max_tasks tasks and timers already */
static VALUE rondo_run(VALUE rondo) {
    (void)rondo;
    need_block(rb_block_given_p());
    return new_task(cTask, 0, 1, false, rb_block_proc());
}

/* The block is not called again. A call that has begun goes on. Any thread.
 * @return [Boolean] whether there would have been another call */
static VALUE task_cancel(VALUE self) {
    rd_block *block = block_of(self);
    const bool would = cancel(block);
    if (block->binding == NULL) {
        rb_ary_delete(remembered, self);
    } else if (would && block->task.state == RD_TASK_OVER) {
        let_go(block->binding, self, block);
    }
    return would ? Qtrue : Qfalse;
}

/* @return [Boolean] whether the block will not be called again, and no call of it goes on */
static VALUE task_is_over(VALUE self) {
    rd_block *block = block_of(self);
    if (block->binding == NULL) return block->task.state == RD_TASK_OVER ? Qtrue : Qfalse;
    if (rd_is_forked(block->binding)) return Qtrue;
    rd_lock(block->binding);
    const bool is_over = block->task.state == RD_TASK_OVER;
    rd_unlock(block->binding);
    return is_over ? Qtrue : Qfalse;
}

void rd_init_task(VALUE rondo) {
    /* Document-class: Rondo::Task
     * What Rondo.run, run_after, run_every and on_idle return; see docs/TASKS.md. */
    cTask = rb_define_class_under(rondo, "Task", rb_cObject);
    rb_undef_alloc_func(cTask);
    /* Document-class: Rondo::TaskLimitError
     * There are max_tasks tasks and timers already. */
    eTaskLimit = rb_define_class_under(rondo, "TaskLimitError", rd_eError);
    remembered = rb_ary_new();
    rb_gc_register_mark_object(remembered);
    rb_define_singleton_method(cTask, "begin", task_begin, 4);
    rb_define_method(cTask, "cancel", task_cancel, 0);
    rb_define_method(cTask, "over?", task_is_over, 0);
    rb_define_singleton_method(rondo, "run", rondo_run, 0);
}

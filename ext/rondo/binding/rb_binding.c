/* SPDX-License-Identifier: MIT
 *
 * The life of a binding, and what it reports to the garbage collector; see rb_binding.h.
 */
#include "binding/rb_binding.h"

#include "base/alloc.h"
#include "ruby/rb_error.h"
#include "binding/rb_borrowed.h"
#include "binding/rb_cache.h"
#include "binding/rb_fork.h"

static void core_mark(void *pointer) {
    rd_binding *binding = pointer;
    if (binding == NULL) return;
#define MARK(part, name) rb_gc_mark_movable(binding->part.name);
    RD_BINDING_VALUES(MARK)
#undef MARK
}

static void core_compact(void *pointer) {
    rd_binding *binding = pointer;
    if (binding == NULL) return;
#define MOVE(part, name) binding->part.name = rb_gc_location(binding->part.name);
    binding->self = rb_gc_location(binding->self);
    RD_BINDING_VALUES(MOVE)
#undef MOVE
}

static void core_free(void *pointer) {
    if (pointer != NULL) rd_binding_unref(pointer);
}

static size_t core_size(const void *pointer) {
    return pointer == NULL ? 0 : sizeof(rd_binding) + sizeof(rd_server);
}

static const rb_data_type_t core_type = {
    .wrap_struct_name = "Rondo::Server::Core",
    .function = {.dmark = core_mark,
                 .dfree = core_free,
                 .dsize = core_size,
                 .dcompact = core_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

void rd_binding_ref(rd_binding *binding) {
    binding->refs++;
}

static void clear_waiters(rd_binding *binding) {
    rd_lock(binding);
    rd_waiters_clear(&binding->waiters);
    rd_unlock(binding);
}

void rd_binding_unref(rd_binding *binding) {
    if (--binding->refs > 0) return;
    if (rd_is_forked(binding)) return; /* the parent has the same poller */
    if (binding->server != NULL) {
        if (rd_list_is_linked(&binding->in_all)) rd_list_unlink(&binding->in_all);
        if (binding->waiters.loop != NULL) clear_waiters(binding);
        rd_server_free(binding->server);
    }
    rd_tls_transports_clear(&binding->tls);
    rd_tls_transports_clear(&binding->tls_clients);
    rd_borrowed_clear(binding);
    rd_indexes_clear(&binding->clients.indexes);
    rd_indexes_clear(&binding->tasks.indexes);
    rd_cache_clear(binding);
    rd_free(binding->env.cache);
    rd_file_roots_clear(&binding->files.roots);
    rd_free(binding->proxies.trusted);
    rd_free(binding->log.bytes);
    rd_free(binding);
}

rd_binding *rd_binding_allocated(VALUE self) {
    return rb_check_typeddata(self, &core_type);
}

rd_binding *rd_binding_of(VALUE self) {
    rd_binding *binding = rd_binding_allocated(self);
    if (binding == NULL || binding->server == NULL)
        rb_raise(rd_eError, "server is not initialised");
    return binding;
}

rd_binding *rd_own_binding_of(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) rb_raise(rd_eError, "this server belongs to the parent process");
    return binding;
}

VALUE rd_binding_allocate(VALUE klass) {
    VALUE self = TypedData_Wrap_Struct(klass, &core_type, NULL);
    rd_binding *binding = rd_alloc_zero(sizeof(*binding));
    binding->self = self;
    binding->refs = 1;
    binding->forks = rd_forks();
    rd_list_init(&binding->in_all);
#define CLEAR(part, name) binding->part.name = Qnil;
    RD_BINDING_VALUES(CLEAR)
#undef CLEAR
    DATA_PTR(self) = binding;
    return self;
}

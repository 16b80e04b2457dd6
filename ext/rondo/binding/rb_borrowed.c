/* SPDX-License-Identifier: MIT
 *
 * Strings whose bytes are in output queues: kept in an Array until the core has released them. The
 * core releases them under its lock, where no Ruby object may be touched. So a release only takes
 * note, and the loop removes the String from the Array later. Used by rack/rb_part.c and
 * rack/rb_each.c.
 */
#include "binding/rb_borrowed.h"

#include "base/alloc.h"

struct rd_borrowed {
    rd_release release;
    rd_binding *binding;
    rd_borrowed *next;
    uint32_t index;
};

/* Runs under the loop lock, where no Ruby object may be touched: only takes note. */
static void note_release(rd_release *release) {
    rd_borrowed *borrowed = RD_CONTAINER(release, rd_borrowed, release);
    borrowed->next = borrowed->binding->lent.released;
    borrowed->binding->lent.released = borrowed;
}

rd_release *rd_borrow_string(rd_binding *binding, VALUE frozen) {
    rd_borrowed *made = rd_alloc(sizeof(*made));
    made->release.run = note_release;
    made->binding = binding;
    made->index = rd_indexes_acquire(&binding->lent.indexes);
    rb_ary_store(binding->lent.strings, made->index, frozen);
    return &made->release;
}

static rd_borrowed *take_released(rd_binding *binding) {
    rd_server_lock(binding->server);
    rd_borrowed *list = binding->lent.released;
    binding->lent.released = NULL;
    rd_server_unlock(binding->server);
    return list;
}

void rd_borrowed_release_all(rd_binding *binding) {
    for (rd_borrowed *list = take_released(binding); list != NULL;) {
        rd_borrowed *next = list->next;
        rb_ary_store(binding->lent.strings, list->index, Qnil);
        rd_indexes_release(&binding->lent.indexes, list->index);
        rd_free(list);
        list = next;
    }
}

void rd_borrowed_clear(rd_binding *binding) {
    while (binding->lent.released != NULL) {
        rd_borrowed *next = binding->lent.released->next;
        rd_free(binding->lent.released);
        binding->lent.released = next;
    }
    rd_indexes_clear(&binding->lent.indexes);
}

/* SPDX-License-Identifier: MIT
 *
 * Strings whose bytes are in output queues: kept in an Array until the core has released them. The
 * core releases them under its lock, where no Ruby object may be touched. So a release only takes
 * note, and the loop removes the String from the Array later. Used by rb_response.c.
 */
#include "binding/rb_borrow.h"

#include "base/alloc.h"

struct rd_borrow {
    rd_release release;
    rd_binding *binding;
    rd_borrow *next;
    uint32_t slot;
};

/* Runs under the loop lock, where no Ruby object may be touched: only takes note. */
static void note_release(rd_release *release) {
    rd_borrow *borrow = RD_CONTAINER(release, rd_borrow, release);
    borrow->next = borrow->binding->lent.released;
    borrow->binding->lent.released = borrow;
}

rd_release *rd_borrow_string(rd_binding *binding, VALUE frozen) {
    rd_borrow *made = rd_alloc(sizeof(*made));
    made->release.run = note_release;
    made->binding = binding;
    made->slot = rd_slots_take(&binding->lent.slots);
    rb_ary_store(binding->lent.strings, made->slot, frozen);
    return &made->release;
}

static rd_borrow *take_released(rd_binding *binding) {
    rd_server_lock(binding->server);
    rd_borrow *list = binding->lent.released;
    binding->lent.released = NULL;
    rd_server_unlock(binding->server);
    return list;
}

void rd_borrow_release_all(rd_binding *binding) {
    for (rd_borrow *list = take_released(binding); list != NULL;) {
        rd_borrow *next = list->next;
        rb_ary_store(binding->lent.strings, list->slot, Qnil);
        rd_slots_give(&binding->lent.slots, list->slot);
        rd_free(list);
        list = next;
    }
}

void rd_borrow_clear(rd_binding *binding) {
    while (binding->lent.released != NULL) {
        rd_borrow *next = binding->lent.released->next;
        rd_free(binding->lent.released);
        binding->lent.released = next;
    }
    rd_slots_clear(&binding->lent.slots);
}

/* SPDX-License-Identifier: MIT
 *
 * Converts descriptors and rows from Ruby for server/siblings.h; see rb_siblings.h.
 */
#include "binding/rb_siblings.h"

#include "ruby/rb_scoreboard.h"
#include "ruby/rb_value.h"
#include "binding/rb_binding.h"

/* Descriptors by row, -1 if there is none, in a String that the caller keeps. */
static const int *outboxes_of(const rd_scoreboard *board, VALUE inboxes, VALUE *room) {
    Check_Type(inboxes, T_ARRAY);
    *room = rb_str_buf_new((long)(board->row_count * sizeof(int)));
    int *outboxes = (int *)(void *)RSTRING_PTR(*room);
    for (uint32_t i = 0; i < board->row_count; i++) {
        VALUE outbox = rb_ary_entry(inboxes, (long)i);
        outboxes[i] = NIL_P(outbox) ? -1 : NUM2INT(outbox);
    }
    return outboxes;
}

/* inbox: a descriptor; inboxes: those of the siblings by row, nil if there is none. */
static void join_siblings(rd_binding *binding, const rd_scoreboard *board, unsigned own,
                          VALUE inbox, VALUE inboxes) {
    VALUE room;
    const int number = NUM2INT(inbox), *outboxes = outboxes_of(board, inboxes, &room);
    rd_lock(binding);
    int joined = rd_siblings_join(binding->server, board, own, number, outboxes);
    rd_unlock(binding);
    if (joined != 0) rb_sys_fail("inbox");
    RB_GC_GUARD(room);
}

void rd_attach_siblings(rd_binding *binding, VALUE options) {
    VALUE board = rd_option(options, "scoreboard"), row = rd_option(options, "row");
    VALUE inbox = rd_option(options, "inbox"), inboxes = rd_option(options, "inboxes");
    if (NIL_P(board)) return;
    const rd_scoreboard *scoreboard = rd_scoreboard_of(board);
    unsigned number = NUM2UINT(row);
    if (number >= scoreboard->row_count) rb_raise(rb_eIndexError, "row %u", number);
    RD_BINDING_SET(binding, cluster.scoreboard, board);
    binding->server->score = &scoreboard->rows[number];
    if (!NIL_P(inbox)) join_siblings(binding, scoreboard, number, inbox, inboxes);
}

/* Sets the workers that get this worker's connections from now on: their scoreboard, and their
 * inboxes by row. */
static VALUE core_set_heirs(VALUE self, VALUE board, VALUE inboxes) {
    rd_binding *binding = rd_binding_of(self);
    VALUE room;
    const rd_scoreboard *scoreboard = rd_scoreboard_of(board);
    const int *outboxes = outboxes_of(scoreboard, inboxes, &room);
    rd_lock(binding);
    rd_siblings_set_heirs(binding->server, scoreboard, outboxes);
    rd_unlock(binding);
    RD_BINDING_SET(binding, cluster.heirs, board);
    RB_GC_GUARD(room);
    return Qnil;
}

void rd_init_core_siblings(VALUE core) {
    rb_define_method(core, "set_heirs", core_set_heirs, 2);
    rb_define_const(core, "HANDOVER_VERSION", INT2FIX(RD_HANDOVER_VERSION));
}

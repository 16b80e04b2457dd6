/* SPDX-License-Identifier: MIT
 *
 * Rondo::Scoreboard: the shared memory of a server's processes as a Ruby object. Numbers are
 * Integers and have the names and units of cluster/scoreboard.def. `row` is a row, from 0.
 * IndexError: there is no such row. KeyError: there is no such number.
 */
#include "ruby/rb_scoreboard.h"

#include <unistd.h>

#include "base/alloc.h"
#include "ruby/rb_error.h"

static void board_free(void *pointer) {
    rd_scoreboard *board = pointer;
    if (board->rows != NULL) rd_scoreboard_close(board);
    rd_free(board);
}

static const rb_data_type_t board_type = {
    .wrap_struct_name = "Rondo::Scoreboard",
    .function = {.dfree = board_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE board_allocate(VALUE klass) {
    rd_scoreboard *board = rd_alloc_zero(sizeof(*board));
    board->fd = -1;
    return TypedData_Wrap_Struct(klass, &board_type, board);
}

rd_scoreboard *rd_scoreboard_of(VALUE self) {
    rd_scoreboard *board = rb_check_typeddata(self, &board_type);
    if (board->rows == NULL) rb_raise(rd_eError, "scoreboard is not initialised");
    return board;
}

/* @overload initialize(rows, descriptor = nil)
 *   @param rows [Integer] rows, 1 to 512; ignored with a descriptor
 *   @param descriptor [Integer, nil] of a scoreboard that another process made; taken over
 *   @raise [SystemCallError] no memory; EINVAL: the number of rows is out of range, or another
 *     version made the scoreboard of the descriptor */
static VALUE board_initialize(int argc, VALUE *argv, VALUE self) {
    rd_scoreboard *board = rb_check_typeddata(self, &board_type);
    VALUE rows, descriptor;
    rb_scan_args(argc, argv, "11", &rows, &descriptor);
    if (board->rows != NULL) rb_raise(rd_eError, "initialised twice");
    int made = NIL_P(descriptor) ? rd_scoreboard_create(board, NUM2UINT(rows))
                                 : rd_scoreboard_open(board, NUM2INT(descriptor));
    if (made != 0) rb_sys_fail("scoreboard");
    return self;
}

static rd_score_row *row_at(VALUE self, VALUE index) {
    rd_scoreboard *board = rd_scoreboard_of(self);
    long number = NUM2LONG(index);
    if (number < 0 || number >= (long)board->row_count) {
        rb_raise(rb_eIndexError, "row %ld of %u", number, board->row_count);
    }
    return &board->rows[number];
}

static const rd_score_info *info_of(VALUE name) {
    Check_Type(name, T_SYMBOL);
    VALUE text = rb_sym2str(name);
    const rd_score_info *info = rd_score_find(RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    if (info == NULL) rb_raise(rb_eKeyError, "the scoreboard has no %s", RSTRING_PTR(text));
    return info;
}

/* @param index [Integer] of the row, from 0
 * @param name [Symbol] :requests
 * @return [Integer] in the unit of that number
 * @raise [IndexError] no such row
 * @raise [KeyError] no such number */
static VALUE board_get(VALUE self, VALUE index, VALUE name) {
    return ULL2NUM(rd_score_get(row_at(self, index), info_of(name)));
}

/* @param index [Integer] of the row, from 0
 * @param name [Symbol] :state
 * @param value [Integer] from 0, in the unit of that number; a state is its place in STATES
 * @return [Integer] the value
 * @raise [IndexError] no such row
 * @raise [KeyError] no such number
 * @raise [RangeError] a value beyond 64 bits */
static VALUE board_set(VALUE self, VALUE index, VALUE name, VALUE value) {
    rd_score_set(row_at(self, index), info_of(name), NUM2ULL(value));
    return value;
}

/* Sets all numbers of the row to 0, and its histograms.
 * @param index [Integer] of the row, from 0
 * @return [nil]
 * @raise [IndexError] no such row */
static VALUE board_clear(VALUE self, VALUE index) {
    rd_score_clear(row_at(self, index));
    return Qnil;
}

/* @param index [Integer] of the row, from 0
 * @return [Hash{Symbol => Integer}] all its numbers
 * @raise [IndexError] no such row */
static VALUE board_row(VALUE self, VALUE index) {
    const rd_score_row *row = row_at(self, index);
    VALUE result = rb_hash_new();
    for (size_t i = 0; i < rd_score_count; i++) {
        const rd_score_info *info = &rd_score_table[i];
        rb_hash_aset(result, ID2SYM(rb_intern(info->name)), ULL2NUM(rd_score_get(row, info)));
    }
    return result;
}

static VALUE counts(const rd_histogram *histogram) {
    VALUE result = rb_ary_new();
    for (unsigned i = 0; i < RD_HISTOGRAM_BUCKETS; i++) {
        rb_ary_push(result, ULL2NUM(atomic_load(&histogram->buckets[i])));
    }
    return result;
}

static const rd_histogram *histogram_at(VALUE self, VALUE index, VALUE name) {
    const rd_score_row *row = row_at(self, index);
    if (name == ID2SYM(rb_intern("wait"))) return &row->wait;
    if (name == ID2SYM(rb_intern("duration"))) return &row->duration;
    rb_raise(rb_eKeyError, "the scoreboard has no such histogram");
}

/* @param index [Integer] of the row, from 0
 * @param name [Symbol] :wait for the application, or :duration in it
 * @return [Array<Integer>] counts by bucket; BOUNDS_US are their upper ends, the last one has none
 * @raise [IndexError] no such row
 * @raise [KeyError] no such histogram */
static VALUE board_histogram(VALUE self, VALUE index, VALUE name) {
    return counts(histogram_at(self, index, name));
}

/* @param index [Integer] of the row, from 0
 * @param name [Symbol] :wait or :duration
 * @return [Integer] microseconds: the sum of all times that this histogram has counted
 * @raise [IndexError] no such row
 * @raise [KeyError] no such histogram */
static VALUE board_sum_us(VALUE self, VALUE index, VALUE name) {
    return ULL2NUM(atomic_load(&histogram_at(self, index, name)->sum_us));
}

static rd_journal_level level_of(VALUE name) {
    for (unsigned i = 0; i < RD_JOURNAL_LEVEL_COUNT; i++) {
        if (name == ID2SYM(rb_intern(rd_journal_level_name(i)))) return (rd_journal_level)i;
    }
    rb_raise(rb_eKeyError, "the journal has no such level");
}

/* Adds a line to the journal, which the status page shows. It has the last 512 lines of all
 * processes, each of at most 480 bytes.
 * @param level [Symbol] :info, :warn or :error
 * @param worker [Integer, nil] its number; nil: the line is not of a worker
 * @param line [String] UTF-8
 * @return [nil]
 * @raise [KeyError] no such level */
static VALUE board_note(VALUE self, VALUE level, VALUE worker, VALUE line) {
    StringValue(line);
    rd_journal_add(rd_scoreboard_of(self)->journal, level_of(level),
                   NIL_P(worker) ? -1 : NUM2INT(worker), RSTRING_PTR(line),
                   (size_t)RSTRING_LEN(line));
    RB_GC_GUARD(line);
    return Qnil;
}

/* @return [Integer] the descriptor to pass on; the scoreboard owns it */
static VALUE board_fd(VALUE self) {
    return INT2NUM(rd_scoreboard_of(self)->fd);
}

/* @return [Integer] how many rows there are */
static VALUE board_size(VALUE self) {
    return UINT2NUM(rd_scoreboard_of(self)->row_count);
}

static VALUE all_states(void) {
    VALUE states = rb_ary_new();
    for (unsigned i = 0; i < RD_SCORE_STATE_COUNT; i++) {
        rb_ary_push(states, ID2SYM(rb_intern(rd_score_state_name(i))));
    }
    return rb_obj_freeze(states);
}

static VALUE all_bounds(void) {
    VALUE bounds = rb_ary_new();
    for (unsigned i = 0; i + 1 < RD_HISTOGRAM_BUCKETS; i++) {
        rb_ary_push(bounds, ULL2NUM(rd_histogram_bound_us(i)));
    }
    return rb_obj_freeze(bounds);
}

static VALUE all_numbers(void) {
    static const char *const kinds[] = {"fact", "gauge", "counter"};
    VALUE numbers = rb_hash_new();
    for (size_t i = 0; i < rd_score_count; i++) {
        const rd_score_info *info = &rd_score_table[i];
        VALUE row = rb_hash_new();
        rb_hash_aset(row, ID2SYM(rb_intern("kind")), ID2SYM(rb_intern(kinds[info->kind])));
        rb_hash_aset(row, ID2SYM(rb_intern("unit")),
                     rb_obj_freeze(rb_utf8_str_new_cstr(info->unit)));
        rb_hash_aset(row, ID2SYM(rb_intern("doc")), rb_obj_freeze(rb_utf8_str_new_cstr(info->doc)));
        rb_hash_aset(numbers, ID2SYM(rb_intern(info->name)), rb_obj_freeze(row));
    }
    return rb_obj_freeze(numbers);
}

/* Document-class: Rondo::Scoreboard
 * Memory that the processes of a server share: a row for each process that serves, with the
 * numbers of cluster/scoreboard.def.
 * @api private */
void rd_init_scoreboard(VALUE rondo) {
    VALUE board = rb_define_class_under(rondo, "Scoreboard", rb_cObject);
    rb_define_alloc_func(board, board_allocate);
    rb_define_method(board, "initialize", board_initialize, -1);
    rb_define_method(board, "get", board_get, 2);
    rb_define_method(board, "set", board_set, 3);
    rb_define_method(board, "clear", board_clear, 1);
    rb_define_method(board, "row", board_row, 1);
    rb_define_method(board, "histogram", board_histogram, 2);
    rb_define_method(board, "note", board_note, 3);
    rb_define_method(board, "sum_us", board_sum_us, 2);
    rb_define_method(board, "fd", board_fd, 0);
    rb_define_method(board, "size", board_size, 0);
    /* Names of the states; a state's number is its index. */
    rb_define_const(board, "STATES", all_states());
    /* Of each number: kind (:fact, :gauge or :counter), unit and doc, what it means. */
    rb_define_const(board, "NUMBERS", all_numbers());
    /* Microseconds: upper ends of all buckets but the last. */
    rb_define_const(board, "BOUNDS_US", all_bounds());
}

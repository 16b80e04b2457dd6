/* SPDX-License-Identifier: MIT
 *
 * Hooks for descriptors; see rb_scheduler_io.h. Reading and writing here spare Ruby's own way,
 * which releases the GVL for each call: on Ruby 3.3 the thread may then wait 100 ms to get it back.
 */
#include "fibers/rb_scheduler_io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/io.h>
#include <ruby/io/buffer.h>
#include <ruby/thread.h>
#include <ruby/version.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fibers/rb_scheduler.h"

#define RUBY_VERSION_CODE (RUBY_API_VERSION_MAJOR * 100 + RUBY_API_VERSION_MINOR)

static int descriptor_of(VALUE io) {
#ifdef HAVE_RB_IO_DESCRIPTOR
    return rb_io_descriptor(io);
#else
    if (!RB_TYPE_P(io, T_FILE)) return NUM2INT(rb_funcall(io, rb_intern("fileno"), 0));
    rb_io_t *file;
    GetOpenFile(io, file);
    return file->fd;
#endif
}

/* The limit that the IO has for each of its waits, from Ruby 3.2 on. */
static VALUE limit_of(VALUE io) {
#ifdef HAVE_RB_IO_TIMEOUT
    if (RB_TYPE_P(io, T_FILE)) return rb_io_timeout(io);
#endif
    (void)io;
    return Qnil;
}

NORETURN(static void raise_timeout(VALUE limit));

static void raise_timeout(VALUE limit) {
    VALUE io_class = rb_const_get(rb_cObject, rb_intern("IO"));
    rb_raise(rb_const_get(io_class, rb_intern("TimeoutError")),
             "Timeout (%+" PRIsVALUE ") while waiting for IO to become ready!", limit);
}

/* ---- waiting ---- */

/* Returns the directions that are ready, or 0 when the time is up. Raises for a descriptor that
 * cannot be waited for. */
static unsigned wait_for(rd_scheduler *scheduler, int fd, unsigned wanted, uint64_t due_ns) {
    rd_fibers *fibers = &scheduler->fibers;
    rd_parking *parking = rd_parking_begin(fibers);
    const int added = rd_parking_wait_for(parking, fd, wanted);
    if (added != 0) {
        const int result = added > 0 ? (int)wanted : -errno;
        rd_run_list_add(&fibers->runnable, &parking->runnable, result);
    } else if (due_ns != UINT64_MAX) {
        rd_deadline_set(&fibers->deadlines, &parking->deadline, due_ns);
    }
    const int result = rd_fibers_park(parking);
    if (result < 0) rb_syserr_fail(-result, "wait for a descriptor");
    return (unsigned)result;
}

static unsigned directions_of(int events) {
    unsigned wanted = 0;
    if (events & RUBY_IO_READABLE) wanted |= RD_READABLE;
    if (events & RUBY_IO_WRITABLE) wanted |= RD_WRITABLE;
    return wanted;
}

static int events_of(unsigned ready) {
    int events = 0;
    if (ready & RD_READABLE) events |= RUBY_IO_READABLE;
    if (ready & RD_WRITABLE) events |= RUBY_IO_WRITABLE;
    return events;
}

/* @param io [IO]
 * @param events [Integer] IO::READABLE, IO::WRITABLE, IO::PRIORITY, or several of them
 * @param timeout [Numeric, nil] seconds
 * @return [Integer, false] the events that are there; false: time is up
 * @raise [IO::TimeoutError] the time of the IO itself is up */
static VALUE io_wait(VALUE self, VALUE io, VALUE events, VALUE timeout) {
    rd_scheduler *scheduler = rd_scheduler_of(self);
    if (rd_scheduler_is_left(scheduler)) return rb_io_wait(io, events, timeout);
    const unsigned wanted = directions_of(NUM2INT(events));
    if (wanted == 0) return rb_funcall(self, rb_intern("wait_urgent"), 2, io, timeout);
    const VALUE limit = NIL_P(timeout) ? limit_of(io) : timeout;
    const unsigned ready =
        wait_for(scheduler, descriptor_of(io), wanted, rd_fibers_deadline(limit));
    if (ready != 0) return INT2NUM(events_of(ready));
    if (NIL_P(timeout)) raise_timeout(limit);
    return Qfalse;
}

/* ---- several descriptors ---- */

typedef struct rd_any_waiter {
    rd_fd_waiter waiter;
    rd_parking *parking;
} rd_any_waiter;

/* On the heap: the stack of its fiber may be gone when the wait is undone. */
typedef struct rd_any_wait {
    long count;
    rd_any_waiter waiters[];
} rd_any_wait;

static void on_any(rd_fd_waiter *waiter, int ready) {
    (void)ready; /* the caller looks by itself */
    rd_parking *parking = RD_CONTAINER(waiter, rd_any_waiter, waiter)->parking;
    rd_run_list_add(&parking->fibers->runnable, &parking->runnable, 1);
}

static void end_any_wait(rd_parking *parking, void *argument) {
    rd_fibers *fibers = parking->fibers;
    rd_any_wait *wait = argument;
    fibers->ops->lock(fibers);
    for (long i = 0; i < wait->count; i++) {
        rd_waiters_remove(fibers->waiters, &wait->waiters[i].waiter);
    }
    fibers->ops->unlock(fibers);
    rd_free(wait);
}

/* One that cannot be waited for counts as ready. */
static void add_any(rd_any_wait *wait, rd_parking *parking, int fd, unsigned wanted) {
    rd_fibers *fibers = parking->fibers;
    rd_any_waiter *any = &wait->waiters[wait->count++];
    any->parking = parking;
    rd_waiter_init(&any->waiter, on_any);
    fibers->ops->lock(fibers);
    const int added = rd_waiters_add(fibers->waiters, &any->waiter, fd, wanted);
    fibers->ops->unlock(fibers);
    if (added != 0) rd_run_list_add(&fibers->runnable, &parking->runnable, 1);
}

/* @param readers [Array<Integer>] descriptors
 * @param writers [Array<Integer>] descriptors
 * @param timeout [Numeric, nil] seconds
 * @return [Boolean, nil] whether one of them may be ready; false: time is up; nil: this is a forked
 *   child, without a scheduler */
static VALUE wait_any(VALUE self, VALUE readers, VALUE writers, VALUE timeout) {
    rd_scheduler *scheduler = rd_scheduler_of(self);
    if (rd_scheduler_is_left(scheduler)) return Qnil;
    rd_fibers *fibers = &scheduler->fibers;
    const uint64_t due_ns = rd_fibers_deadline(timeout);
    const long reading = RARRAY_LEN(readers), writing = RARRAY_LEN(writers);
    for (long i = 0; i < reading; i++)
        NUM2INT(rb_ary_entry(readers, i)); /* raises now, if at all */
    for (long i = 0; i < writing; i++) NUM2INT(rb_ary_entry(writers, i));
    rd_parking *parking = rd_parking_begin(fibers);
    rd_any_wait *wait =
        rd_alloc_zero(sizeof(*wait) + (size_t)(reading + writing) * sizeof(*wait->waiters));
    parking->undo = end_any_wait;
    parking->undo_argument = wait;
    for (long i = 0; i < reading; i++)
        add_any(wait, parking, NUM2INT(rb_ary_entry(readers, i)), RD_READABLE);
    for (long i = 0; i < writing; i++)
        add_any(wait, parking, NUM2INT(rb_ary_entry(writers, i)), RD_WRITABLE);
    if (due_ns != UINT64_MAX) rd_deadline_set(&fibers->deadlines, &parking->deadline, due_ns);
    return rd_fibers_park(parking) != 0 ? Qtrue : Qfalse;
}

/* ---- reading and writing ---- */

typedef struct rd_transfer {
    int fd;
    bool writes;
    char *bytes;
    size_t count;
    ssize_t result; /* of the system call, and its errno */
    int code;
} rd_transfer;

static void *transfer_nogvl(void *argument) {
    rd_transfer *transfer = argument;
    transfer->result = transfer->writes ? write(transfer->fd, transfer->bytes, transfer->count)
                                        : read(transfer->fd, transfer->bytes, transfer->count);
    transfer->code = errno;
    return NULL;
}

static void on_socket(rd_transfer *transfer) {
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    transfer->result = transfer->writes
                           ? send(transfer->fd, transfer->bytes, transfer->count, flags)
                           : recv(transfer->fd, transfer->bytes, transfer->count, MSG_DONTWAIT);
    transfer->code = errno;
}

static bool is_ready(const rd_transfer *transfer) {
    struct pollfd entry = {.fd = transfer->fd, .events = transfer->writes ? POLLOUT : POLLIN};
    return poll(&entry, 1, 0) != 0;
}

/* Others may share a descriptor that blocks, such as the standard input. So it is left as it is,
 * and used only when it is ready. A pipe that is writable has room for PIPE_BUF bytes. */
static void on_blocking(rd_transfer *transfer) {
    struct stat info;
    const bool is_file = fstat(transfer->fd, &info) == 0 && S_ISREG(info.st_mode);
    if (!is_file && !is_ready(transfer)) {
        transfer->result = -1;
        transfer->code = EAGAIN;
        return;
    }
    if (!is_file && transfer->writes && transfer->count > PIPE_BUF) transfer->count = PIPE_BUF;
    rb_thread_call_without_gvl(transfer_nogvl, transfer, RUBY_UBF_IO, NULL);
}

/* One system call, which does not block. */
static void transfer_once(rd_transfer *transfer) {
    on_socket(transfer);
    if (transfer->result >= 0 || transfer->code != ENOTSOCK) return;
    const int flags = fcntl(transfer->fd, F_GETFL);
    if (flags >= 0 && (flags & O_NONBLOCK) != 0) {
        transfer_nogvl(transfer);
    } else {
        on_blocking(transfer);
    }
}

typedef struct rd_io_call {
    rd_scheduler *scheduler;
    VALUE io, buffer;
    size_t length; /* as many bytes at least; 0: what there is at once */
    size_t offset;
    bool writes;
} rd_io_call;

/* The buffer may move while the fiber waits. */
static void find_bytes(const rd_io_call *call, rd_transfer *transfer) {
    void *base;
    size_t size;
    if (call->writes) {
        const void *readable;
        rb_io_buffer_get_bytes_for_reading(call->buffer, &readable, &size);
        base = (void *)(uintptr_t)readable;
    } else {
        rb_io_buffer_get_bytes_for_writing(call->buffer, &base, &size);
    }
    if (call->offset > size) rb_raise(rb_eArgError, "the offset is behind the buffer");
    transfer->bytes = (char *)base + call->offset;
    transfer->count = size - call->offset;
}

static void wait_for_io(const rd_io_call *call, int fd) {
    const VALUE limit = limit_of(call->io);
    const unsigned wanted = call->writes ? RD_WRITABLE : RD_READABLE;
    const unsigned ready = wait_for(call->scheduler, fd, wanted, rd_fibers_deadline(limit));
    if (ready == 0) raise_timeout(limit);
}

/* Returns the number of bytes, or a negative errno if there are none. */
static ssize_t transfer_all(rd_io_call *call) {
    size_t total = 0;
    for (;;) {
        rd_transfer transfer = {.fd = descriptor_of(call->io), .writes = call->writes};
        find_bytes(call, &transfer);
        if (transfer.count == 0) return (ssize_t)total;
        transfer_once(&transfer);
        if (transfer.result > 0) {
            total += (size_t)transfer.result;
            call->offset += (size_t)transfer.result;
            if (total >= call->length) return (ssize_t)total;
        } else if (transfer.result == 0) {
            return (ssize_t)total;
        } else if (transfer.code == EINTR) {
            rb_thread_check_ints();
        } else if (transfer.code != EAGAIN && transfer.code != EWOULDBLOCK) {
            return total > 0 ? (ssize_t)total : -transfer.code;
        } else if (call->length == 0) {
            return -EAGAIN;
        } else {
            wait_for_io(call, transfer.fd);
        }
    }
}

/* Ruby 3.1 has no offset; 4.1 has it before the length. */
static rd_io_call call_of(int argc, const VALUE *argv, VALUE self, bool writes) {
    const int at_length = RUBY_VERSION_CODE >= 401 ? argc - 1 : 2;
    const int at_offset = RUBY_VERSION_CODE >= 401 ? 2 : 3;
    rb_check_arity(argc, 3, 4);
    return (rd_io_call){.scheduler = rd_scheduler_of(self),
                        .io = argv[0],
                        .buffer = argv[1],
                        .length = NUM2SIZET(argv[at_length]),
                        .offset = argc > 3 ? NUM2SIZET(argv[at_offset]) : 0,
                        .writes = writes};
}

/* In a forked child nobody else waits on this thread, so it may block. */
static VALUE transfer_left(const rd_io_call *call) {
    rd_transfer transfer = {.fd = descriptor_of(call->io), .writes = call->writes};
    find_bytes(call, &transfer);
    do {
        rb_thread_call_without_gvl(transfer_nogvl, &transfer, RUBY_UBF_IO, NULL);
    } while (transfer.result < 0 && transfer.code == EINTR);
    return rb_fiber_scheduler_io_result(transfer.result, transfer.code);
}

static VALUE transfer(rd_io_call *call) {
    if (rd_scheduler_is_left(call->scheduler)) return transfer_left(call);
    const ssize_t result = transfer_all(call);
    return rb_fiber_scheduler_io_result(result < 0 ? -1 : result, result < 0 ? (int)-result : 0);
}

/* @overload io_read(io, buffer, length, offset = 0)
 *   @param io [IO]
 *   @param buffer [IO::Buffer]
 *   @param length [Integer] as many bytes at least; 0: what there is at once
 *   @param offset [Integer] in the buffer; none on Ruby 3.1
 * @return [Integer] bytes; 0 at the end; or a negative errno */
static VALUE io_read(int argc, VALUE *argv, VALUE self) {
    rd_io_call call = call_of(argc, argv, self, false);
    return transfer(&call);
}

#if RUBY_VERSION_CODE >= 303
/* @overload io_write(io, buffer, length, offset = 0)
 *   as io_read
 * @return [Integer] bytes, or a negative errno */
static VALUE io_write(int argc, VALUE *argv, VALUE self) {
    rd_io_call call = call_of(argc, argv, self, true);
    return transfer(&call);
}
#endif

void rd_init_scheduler_io(VALUE klass) {
    rb_define_method(klass, "io_wait", io_wait, 3);
    rb_define_private_method(klass, "wait_any", wait_any, 3);
    rb_define_method(klass, "io_read", io_read, -1);
#if RUBY_VERSION_CODE >= 303
    /* Before, Ruby calls it with nothing to write, and takes the result for an error. */
    rb_define_method(klass, "io_write", io_write, -1);
#endif
}

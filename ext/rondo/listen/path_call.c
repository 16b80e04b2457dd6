/* SPDX-License-Identifier: MIT
 *
 * A call of connect(2) as a job; see path_call.h.
 */
#include "listen/path_call.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "base/alloc.h"

bool rd_target_is_path(const rd_target *target) {
    const struct sockaddr_un *address = &target->address.unix_path;
    return address->sun_family == AF_UNIX && address->sun_path[0] != '\0';
}

static rd_path_call *of_job(rd_disk_job *job) {
    return RD_CONTAINER(job, rd_path_call, job);
}

/* The socket does not block, so this waits for nothing but the lookup of the path. */
static void run(rd_disk_job *job) {
    rd_path_call *call = of_job(job);
    if (atomic_load_explicit(&call->is_dropped, memory_order_relaxed)) return;
    const int result = connect(call->fd, &call->target.address.any, call->target.len);
    call->code = result == 0 ? 0 : errno;
}

static void done(rd_disk_job *job) {
    rd_path_call *call = of_job(job);
    rd_list_unlink(&call->node);
    if (atomic_load_explicit(&call->is_dropped, memory_order_relaxed)) {
        rd_ledger_release(call->ledger, RD_LEDGER_DESCRIPTORS, 1);
        close(call->fd);
    } else {
        call->on_called(call, call->fd, call->code);
    }
    (*call->live)--;
    rd_free(call);
}

/* Without a thread there is none who could wait: that is as if the machine had no memory for it. */
rd_path_call *rd_path_call_new(int fd, const rd_target *target) {
    rd_path_call *call = rd_alloc_zero(sizeof(*call));
    call->job = (rd_disk_job){.run = run, .done = done, .needs_thread = true};
    call->fd = fd;
    call->code = ENOMEM;
    call->target = *target;
    return call;
}

void rd_path_call_begin(rd_loop *loop, rd_path_call *call, rd_list *all) {
    rd_list_append(all, &call->node);
    (*call->live)++;
    rd_disk_do(loop, &call->job, RD_DISK_PATHS);
}

void rd_path_call_drop(rd_path_call *call) {
    atomic_store_explicit(&call->is_dropped, true, memory_order_relaxed);
}

/* SPDX-License-Identifier: MIT
 *
 * Parts of a body; see rb_part.h. After each part, the thread may wait for the client (rb_wait.c)
 * or let others go first.
 */
#include "rack/rb_part.h"

#include "base/error.h"
#include "system/clock.h"
#include "binding/rb_binding.h"
#include "binding/rb_borrowed.h"
#include "binding/rb_fork.h"
#include "binding/rb_pool.h"
#include "binding/rb_wait.h"

#define BORROW_MIN 16384

#define BODY_QUANTUM_NS      2000000 /* of a call, since rd_call.quantum_since_ns, while others wait */
#define LONG_BODY_QUANTUM_NS 100000000 /* of a call that was let in without a place */

bool rd_part_is_small(VALUE part) {
    return RSTRING_LEN(part) < BORROW_MIN;
}

int rd_part_copy(rd_call *call, VALUE part) {
    return call->request->responder->write(call->request, RSTRING_PTR(part),
                                           (size_t)RSTRING_LEN(part));
}

/* Small parts are copied. Large ones are borrowed, and frozen so that they do not change. Ruby
 * objects are made before the lock is taken; only the queueing is under the lock. */
int rd_part_write(rd_call *call, VALUE part) {
    rd_binding *binding = call->binding;
    int code;
    if (rd_part_is_small(part)) {
        rd_lock(binding);
        code = rd_part_copy(call, part);
        rd_unlock(binding);
        return code;
    }
    VALUE frozen = rb_str_new_frozen(part);
    rd_release *held = rd_borrow_string(binding, frozen);
    rd_lock(binding);
    code = call->request->responder->borrow(call->request, RSTRING_PTR(frozen),
                                            (size_t)RSTRING_LEN(frozen), held);
    rd_unlock(binding);
    return code;
}

/* Whether the call is not over, and the code that runs now belongs to it. */
static bool is_own(const rd_visit *visit) {
    return visit != NULL && visit->strand->is_current(visit);
}

/* Ends the turn of a call that has had its time. The leader steps aside even if nothing seems to
 * wait, because no turn has checked since its call began. */
static void end_quantum(rd_call *call, bool is_crowded) {
    const uint64_t since = rd_clock_ns() - call->quantum_since_ns;
    if (since < BODY_QUANTUM_NS || rd_is_forked(call->binding)) return;
    rd_pool *pool = &call->binding->pool;
    rd_visit *visit = call->visit;
    if (!is_own(visit)) return;
    if (visit->is_needed && since < LONG_BODY_QUANTUM_NS) return;
    int state = 0;
    if (is_crowded || pool->leader == visit->runner || !rd_list_is_empty(&pool->resuming) ||
        !rd_list_is_empty(&pool->aside)) {
        state = rd_pool_step_aside(visit);
    }
    call->quantum_since_ns = rd_clock_ns();
    if (state != 0) rb_jump_tag(state);
}

int rd_part_send(rd_call *call, VALUE part, uint64_t *waited_ns) {
    rd_binding *binding = call->binding;
    rd_request *request = call->request;
    int code = rd_part_write(call, part);
    rd_lock(binding);
    if (code >= 0) code = request->responder->flush(request);
    const bool drained = rd_has_drained(request), is_crowded = rd_server_has_calls(binding->server);
    rd_unlock(binding);
    *waited_ns = 0;
    if (code < 0 || drained) {
        end_quantum(call, is_crowded);
        return code;
    }
    const bool is_timed = is_own(call->visit);
    const uint64_t before = rd_clock_ns();
    const bool is_there = rd_wait_until(binding, request, rd_has_drained);
    if (is_timed) *waited_ns = rd_clock_ns() - before;
    return is_there ? 0 : RD_ERR_CLOSED;
}

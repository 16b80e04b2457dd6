/* SPDX-License-Identifier: MIT
 *
 * Taking and giving back; see ledger.h.
 */
#include "base/ledger.h"

#include <assert.h>

#define TELL_MS 1000

void rd_ledger_init(rd_ledger *ledger) {
    *ledger = (rd_ledger){.changed = true};
    for (int kind = 0; kind < RD_LEDGER_KINDS; kind++) ledger->rows[kind].limit = UINT64_MAX;
}

void rd_ledger_refuse(rd_ledger *ledger, rd_ledger_kind kind) {
    ledger->rows[kind].refused++;
    ledger->changed = true;
}

bool rd_ledger_reserve(rd_ledger *ledger, rd_ledger_kind kind, uint64_t amount) {
    if (!rd_ledger_has_room(ledger, kind, amount)) {
        rd_ledger_refuse(ledger, kind);
        return false;
    }
    rd_ledger_add(ledger, kind, amount);
    return true;
}

void rd_ledger_release(rd_ledger *ledger, rd_ledger_kind kind, uint64_t amount) {
    assert(amount <= ledger->rows[kind].held);
    ledger->rows[kind].held -= amount;
    ledger->changed = true;
}

static size_t beyond_free(size_t size) {
    return size > RD_LEDGER_FREE ? size - RD_LEDGER_FREE : 0;
}

bool rd_ledger_resize(rd_ledger *ledger, rd_ledger_kind kind, size_t *counted, size_t size) {
    const size_t wanted = beyond_free(size);
    if (wanted > *counted) {
        if (!rd_ledger_reserve(ledger, kind, wanted - *counted)) return false;
    } else {
        rd_ledger_release(ledger, kind, *counted - wanted);
    }
    *counted = wanted;
    return true;
}

void rd_ledger_recount(rd_ledger *ledger, rd_ledger_kind kind, size_t *counted, size_t size) {
    rd_ledger_release(ledger, kind, *counted);
    *counted = beyond_free(size);
    rd_ledger_add(ledger, kind, *counted);
}

bool rd_ledger_reserve_body_file(rd_ledger *ledger) {
    if (!rd_ledger_has_room(ledger, RD_LEDGER_DESCRIPTORS, 1)) {
        rd_ledger_refuse(ledger, RD_LEDGER_BODY_FILES);
        return false;
    }
    if (!rd_ledger_reserve(ledger, RD_LEDGER_BODY_FILES, 1)) return false;
    rd_ledger_add(ledger, RD_LEDGER_DESCRIPTORS, 1);
    return true;
}

void rd_ledger_release_body_file(rd_ledger *ledger) {
    rd_ledger_release(ledger, RD_LEDGER_BODY_FILES, 1);
    rd_ledger_release(ledger, RD_LEDGER_DESCRIPTORS, 1);
}

bool rd_ledger_lacks_descriptors(const rd_ledger *ledger) {
    const uint64_t bodies = ledger->rows[RD_LEDGER_BODY_FILES].held;
    const uint64_t kept = ledger->body_files_kept;
    return !rd_ledger_has_room(ledger, RD_LEDGER_DESCRIPTORS,
                               1 + (bodies < kept ? kept - bodies : 0));
}

bool rd_ledger_may_log(rd_ledger *ledger, rd_ledger_kind kind, uint64_t now_ms) {
    rd_ledger_row *row = &ledger->rows[kind];
    if (row->logged_ms != 0 && now_ms - row->logged_ms < TELL_MS) return false;
    row->logged_ms = now_ms;
    return true;
}

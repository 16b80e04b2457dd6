/* SPDX-License-Identifier: MIT
 *
 * Limits of the ledger; see budgets.h.
 */
#include "server/budgets.h"

#include <sys/resource.h>

#include "base/error.h"
#include "system/disk_room.h"

#define BODY_FILES_PART 4  /* of the descriptors, at most */
#define BODY_KEPT_PART  16 /* of the descriptors, for bodies alone */

static uint32_t descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > UINT32_MAX) return UINT32_MAX;
    uint32_t descriptors = (uint32_t)limit.rlim_cur;
    return descriptors > 2 * RD_DESCRIPTORS_KEPT ? descriptors - RD_DESCRIPTORS_KEPT
                                                 : descriptors / 2;
}

static void limit_descriptors(rd_server *server) {
    rd_ledger *ledger = &server->conns.ledger;
    const uint32_t descriptors = descriptor_limit(), kept = descriptors / BODY_KEPT_PART;
    rd_ledger_limit(ledger, RD_LEDGER_DESCRIPTORS, descriptors);
    rd_ledger_limit(ledger, RD_LEDGER_BODY_FILES, descriptors / BODY_FILES_PART);
    ledger->body_files_kept = kept;
    server->accepting.limit = server->settings.max_connections > 0
                                  ? (uint32_t)server->settings.max_connections
                                  : descriptors - kept;
}

void rd_budgets_init(rd_server *server) {
    const uint64_t disk = (uint64_t)server->settings.total_body_bytes;
    limit_descriptors(server);
    rd_ledger *ledger = &server->conns.ledger;
    rd_ledger_limit(ledger, RD_LEDGER_BODY_DISK,
                    disk > 0 ? disk : rd_disk_room_for_bodies(server->body_folder));
    rd_ledger_limit(ledger, RD_LEDGER_INPUT, (uint64_t)server->settings.total_input_bytes);
    rd_ledger_limit(ledger, RD_LEDGER_HANDSHAKES, (uint64_t)server->settings.max_handshakes);
    rd_ledger_limit(ledger, RD_LEDGER_OUTPUT, (uint64_t)server->settings.total_output_bytes);
    rd_ledger_limit(ledger, RD_LEDGER_SUBSCRIPTIONS,
                    (uint64_t)server->settings.total_subscription_bytes);
    rd_ledger_limit(ledger, RD_LEDGER_MESSAGES, (uint64_t)server->settings.total_message_bytes);
}

void rd_budgets_share(rd_server *server, uint32_t processes) {
    if (server->settings.total_body_bytes > 0) return;
    rd_ledger_limit(&server->conns.ledger, RD_LEDGER_BODY_DISK,
                    rd_disk_room_for_bodies(server->body_folder) / processes);
}

rd_ledger_kind rd_budget_of(int code) {
    switch (code) {
    case RD_ERR_BODY_DESCRIPTOR:
        return RD_LEDGER_BODY_FILES;
    case RD_ERR_BODY_DISK:
        return RD_LEDGER_BODY_DISK;
    case RD_ERR_INPUT_FULL:
        return RD_LEDGER_INPUT;
    case RD_ERR_HANDSHAKES_FULL:
        return RD_LEDGER_HANDSHAKES;
    case RD_ERR_OUTPUT_FULL:
        return RD_LEDGER_OUTPUT;
    case RD_ERR_REPLAY_LATE: /* not a budget, but logged as often */
    case RD_ERR_REPLAY_UNKNOWN:
    case RD_ERR_CHANNEL_LIMIT: /* a limit of one client, logged alike */
    case RD_ERR_SUBSCRIPTIONS_FULL:
        return RD_LEDGER_SUBSCRIPTIONS;
    case RD_ERR_WS_MESSAGES_FULL:
        return RD_LEDGER_MESSAGES;
    default:
        return RD_LEDGER_KINDS;
    }
}

const char *rd_budget_setting(int code) {
    switch (code) {
    case RD_ERR_BODY_DESCRIPTOR:
        return "ulimit -n";
    case RD_ERR_BODY_DISK:
        return "total_body_bytes";
    case RD_ERR_INPUT_FULL:
        return "total_input_bytes";
    case RD_ERR_HANDSHAKES_FULL:
        return "max_handshakes";
    case RD_ERR_OUTPUT_FULL:
        return "total_output_bytes";
    case RD_ERR_CHANNEL_LIMIT:
        return "max_subscriptions or max_subscription_bytes";
    case RD_ERR_SUBSCRIPTIONS_FULL:
        return "total_subscription_bytes";
    case RD_ERR_WS_MESSAGES_FULL:
        return "total_message_bytes";
    default:
        return NULL;
    }
}

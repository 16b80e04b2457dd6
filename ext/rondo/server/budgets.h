/* SPDX-License-Identifier: MIT
 *
 * How much all clients of a server may hold together: the limits of its ledger, from the settings
 * and from what the system has. Before the server runs, or under its loop lock. See
 * docs/decisions/0019-budgets-in-sum.md.
 */
#ifndef RD_SERVER_BUDGETS_H
#define RD_SERVER_BUDGETS_H

#include "server/server.h"

/* Sets the limits, and server->accepting.limit. Before the server runs. */
void rd_budgets_init(rd_server *server);

/* The server is one of so many processes: what was derived from the free space is shared. */
void rd_budgets_share(rd_server *server, uint32_t processes);

/* The kind whose budget was full when RD_ERR_* was answered, or RD_LEDGER_KINDS: the code is for
 * something else. */
rd_ledger_kind rd_budget_of(int code);

/* What the operator would raise, for the log; NULL: the code is for something else. */
const char *rd_budget_setting(int code);

#endif

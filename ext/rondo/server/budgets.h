/* SPDX-License-Identifier: MIT
 *
 * How much all clients of a server may hold together: the limits of its ledger. They come from the
 * settings and from what the system has. Before the server runs, or under its loop lock. See
 * docs/decisions/0019-budgets-in-sum.md.
 */
#ifndef RD_SERVER_BUDGETS_H
#define RD_SERVER_BUDGETS_H

#include "server/server.h"

/* Sets the limits, and server->accepting.limit. Before the server runs. */
void rd_budgets_init(rd_server *server);

/* The server is one of `processes`: divides among them the limits derived from free disk space. */
void rd_budgets_share(rd_server *server, uint32_t processes);

/* The kind whose budget was full when RD_ERR_* was answered. RD_LEDGER_KINDS: the code does not
 * concern a budget. */
rd_ledger_kind rd_budget_of(int code);

/* For the log: what the operator can raise. NULL: the code does not concern a limit. */
const char *rd_budget_setting(int code);

#endif

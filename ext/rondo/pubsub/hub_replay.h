/* SPDX-License-Identifier: MIT
 *
 * Answers of the hub to clients that were away: the messages that they missed. Under the lock of
 * the hub's loop.
 */
#ifndef RD_PUBSUB_HUB_REPLAY_H
#define RD_PUBSUB_HUB_REPLAY_H

#include "pubsub/hub.h"

/* The replay waits for rd_hub_answer(). Returns 0, or < 0 when the link must be closed. */
int rd_hub_replay(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted);

#endif

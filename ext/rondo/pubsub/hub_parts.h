/* SPDX-License-Identifier: MIT
 *
 * What hub.c (interests, messages, rules) and hub_replay.c ask of each other. Under the lock of the
 * hub's loop.
 */
#ifndef RD_PUBSUB_HUB_PARTS_H
#define RD_PUBSUB_HUB_PARTS_H

#include "pubsub/hub.h"

/* 0, or RD_ERR_CHANNEL_LIMIT. */
int rd_hub_subscribe(rd_hub *hub, rd_hub_link *link, rd_slice name, bool is_pattern);

/* Answers now or later; 0, or < 0 and the link is to be closed. */
int rd_hub_replay(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted);

void rd_hub_forget_replays(rd_hub_link *link);

#endif

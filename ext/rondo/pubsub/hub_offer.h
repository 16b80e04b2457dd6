/* SPDX-License-Identifier: MIT
 *
 * How a message reaches the links of the hub that want it. Under the lock of the hub's loop.
 */
#ifndef RD_PUBSUB_HUB_OFFER_H
#define RD_PUBSUB_HUB_OFFER_H

#include "pubsub/hub.h"

/* Returns false when the link had no room. That is counted. */
bool rd_hub_send_message(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *frame,
                         rd_message *message);

/* Counts a message for which the link has no room. */
void rd_hub_lose_message(rd_hub *hub, rd_hub_link *link);

/* To each link that wants the channel, once. `reach`: ROOT or WORKERS for these alone; 0 for all.
 * `message`, if not NULL, owns the bytes of the frame. */
void rd_hub_offer(rd_hub *hub, const rd_relay_frame *frame, rd_message *message, unsigned reach);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Messages for an engine that cannot take them yet: none is connected, or it has no room for what
 * comes before them. They leave in their order. Under the lock of the hub's loop.
 */
#ifndef RD_PUBSUB_HUB_UNCLAIMED_H
#define RD_PUBSUB_HUB_UNCLAIMED_H

#include "pubsub/hub.h"

/* Sends a message to the engine, behind what waits. Without room it is lost, and counted. */
void rd_hub_publish_by_engine(rd_hub *hub, const rd_relay_frame *from);

/* Drops all that waits. */
void rd_hub_clear_unclaimed(rd_hub *hub);

#endif

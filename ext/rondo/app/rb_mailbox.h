/* SPDX-License-Identifier: MIT
 *
 * Subscribers of the server's own Ruby code, for Rondo::Presence. With the GVL.
 */
#ifndef RD_APP_MAILBOX_H
#define RD_APP_MAILBOX_H

#include <ruby.h>

/* Adds mailbox, mailbox_follow, mailbox_leave, mailbox_take, max_publish_bytes and note_presence
 * to Rondo::Server::Core. */
void rd_init_core_mailbox(VALUE core);

#endif

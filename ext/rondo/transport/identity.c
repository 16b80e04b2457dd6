/* SPDX-License-Identifier: MIT
 *
 * What a transport knows of its peer; see identity.h.
 */
#include "transport/identity.h"

rd_conn *rd_identity_owner(rd_conn *conn) {
    rd_conn *carrier = rd_conn_carrier(conn), *owner = carrier == NULL ? conn : carrier;
    const bool has_one = owner->layered && rd_conn_layer(owner)->identity != 0;
    return has_one && owner->state != RD_CONN_CLOSED ? owner : NULL;
}

void rd_identity_read(rd_identity *identity, rd_conn *owner) {
    owner->transport->identify(owner, identity);
}

void rd_identity_clear(rd_identity *identity) {
    rd_buffer_clear(&identity->certificate);
}

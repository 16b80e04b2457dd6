/* SPDX-License-Identifier: MIT
 *
 * Counting connections in a few places; see busiest.h.
 */
#include "cluster/busiest.h"

#include <stdlib.h>
#include <string.h>

/* Two connections with the same key count as one. Ports and the last bytes of addresses differ
 * most, and stay what they are. */
static uint64_t key_of(const rd_address *peer) {
    uint64_t front, back;
    memcpy(&front, peer->bytes, 8);
    memcpy(&back, peer->bytes + 8, 8);
    const uint64_t key =
        (front ^ (back << 7 | back >> 57)) * 0x9e3779b97f4a7c15u ^ (uint64_t)peer->port << 1;
    return key | 1;
}

static void count_wait(rd_view_client *client, uint64_t waited_us) {
    client->requests++;
    client->bands[rd_view_band(waited_us)]++;
    if (waited_us > client->longest_us) client->longest_us = waited_us;
}

static void take_place(rd_view_client *place, const rd_address *peer, uint32_t requests) {
    *place = (rd_view_client){.peer = *peer, .requests = requests};
}

/* The place of the key, or the one that asked least. */
static unsigned place_of(const rd_busiest *busiest, uint64_t key) {
    unsigned least = 0;
    for (unsigned i = 0; i < RD_BUSIEST_KEPT; i++) {
        if (busiest->keys[i] == key) return i;
    }
    for (unsigned i = 0; i < RD_BUSIEST_KEPT; i++) {
        if (busiest->keys[i] == 0) return i;
        if (busiest->busy[i].requests < busiest->busy[least].requests) least = i;
    }
    return least;
}

static uint64_t shortest_of(const rd_busiest *busiest) {
    uint64_t shortest = UINT64_MAX;
    for (unsigned i = 0; i < RD_VIEW_CLIENTS; i++) {
        const uint64_t longest_us = busiest->late[i].longest_us;
        if (longest_us < shortest) shortest = longest_us;
    }
    return shortest;
}

/* A connection stands in `late` once, with its longest wait. */
static void add_late(rd_busiest *busiest, uint64_t key, const rd_address *peer,
                     uint64_t waited_us) {
    unsigned place = RD_VIEW_CLIENTS;
    for (unsigned i = 0; i < RD_VIEW_CLIENTS; i++) {
        if (busiest->late_keys[i] == key) place = i;
    }
    for (unsigned i = 0; place == RD_VIEW_CLIENTS; i++) {
        if (busiest->late[i].longest_us == busiest->late_above_us) place = i;
    }
    if (busiest->late_keys[place] != key) take_place(&busiest->late[place], peer, 0);
    busiest->late_keys[place] = key;
    count_wait(&busiest->late[place], waited_us);
    busiest->late_above_us = shortest_of(busiest);
}

void rd_busiest_add(rd_busiest *busiest, const rd_address *peer, uint64_t waited_us) {
    const uint64_t key = key_of(peer);
    const unsigned place = place_of(busiest, key);
    if (busiest->keys[place] != key) {
        take_place(&busiest->busy[place], peer, busiest->busy[place].requests);
        busiest->keys[place] = key;
    }
    count_wait(&busiest->busy[place], waited_us);
    if (waited_us > busiest->late_above_us) add_late(busiest, key, peer, waited_us);
}

/* ---- the end of a period ---- */

static int by_requests(const void *a, const void *b) {
    const uint32_t one = ((const rd_view_client *)a)->requests;
    const uint32_t other = ((const rd_view_client *)b)->requests;
    return (one < other) - (one > other);
}

static int by_wait(const void *a, const void *b) {
    const uint64_t one = ((const rd_view_client *)a)->longest_us;
    const uint64_t other = ((const rd_view_client *)b)->longest_us;
    return (one < other) - (one > other);
}

static uint32_t used(const rd_view_client *clients, uint32_t most) {
    uint32_t count = 0;
    while (count < most && clients[count].requests > 0) count++;
    return count;
}

void rd_busiest_take(rd_busiest *busiest, rd_view *view) {
    qsort(busiest->busy, RD_BUSIEST_KEPT, sizeof(rd_view_client), by_requests);
    qsort(busiest->late, RD_VIEW_CLIENTS, sizeof(rd_view_client), by_wait);
    memcpy(view->busy, busiest->busy, sizeof(view->busy));
    memcpy(view->late, busiest->late, sizeof(view->late));
    view->busiest = used(view->busy, RD_VIEW_CLIENTS);
    view->longest = used(view->late, RD_VIEW_CLIENTS);
    memset(busiest, 0, sizeof(*busiest));
}

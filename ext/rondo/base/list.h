/* SPDX-License-Identifier: MIT
 *
 * A circular, intrusive, doubly linked list: the node lives inside its element, so that linking
 * and unlinking never allocates. A node that is in no list points to itself.
 *
 * A ring is such a list without a head: a pointer to its first node, NULL when it is empty. It has
 * half the size, for what every connection has and few use.
 */
#ifndef RD_BASE_LIST_H
#define RD_BASE_LIST_H

#include <stdbool.h>

#include "base/slice.h"

typedef struct rd_list {
    struct rd_list *prev, *next;
} rd_list;

static inline void rd_list_init(rd_list *node) {
    node->prev = node->next = node;
}

static inline bool rd_list_is_empty(const rd_list *list) {
    return list->next == list;
}

/* Whether the node is in a list. */
static inline bool rd_list_is_linked(const rd_list *node) {
    return node->next != node;
}

static inline void rd_list_insert_before(rd_list *at, rd_list *node) {
    node->prev = at->prev;
    node->next = at;
    at->prev->next = node;
    at->prev = node;
}

static inline void rd_list_append(rd_list *list, rd_list *node) {
    rd_list_insert_before(list, node);
}

static inline void rd_list_unlink(rd_list *node) {
    node->prev->next = node->next;
    node->next->prev = node->prev;
    rd_list_init(node);
}

static inline rd_list *rd_list_shift(rd_list *list) {
    rd_list *first = list->next;
    if (first == list) return NULL;
    rd_list_unlink(first);
    return first;
}

/* Moves all nodes of `from` into the empty list `to`. */
static inline void rd_list_take(rd_list *to, rd_list *from) {
    if (rd_list_is_empty(from)) {
        rd_list_init(to);
        return;
    }
    *to = *from;
    to->prev->next = to;
    to->next->prev = to;
    rd_list_init(from);
}

static inline void rd_ring_append(rd_list **ring, rd_list *node) {
    if (*ring != NULL) {
        rd_list_insert_before(*ring, node);
    } else {
        rd_list_init(node);
        *ring = node;
    }
}

static inline void rd_ring_remove(rd_list **ring, rd_list *node) {
    if (*ring == node) *ring = node->next == node ? NULL : node->next;
    rd_list_unlink(node);
}

static inline rd_list *rd_ring_shift(rd_list **ring) {
    rd_list *first = *ring;
    if (first != NULL) rd_ring_remove(ring, first);
    return first;
}

/* The node after this one; NULL: it is the last. */
static inline rd_list *rd_ring_next(const rd_list *ring, const rd_list *node) {
    return node->next == ring ? NULL : node->next;
}

#endif

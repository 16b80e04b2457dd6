/* SPDX-License-Identifier: MIT
 *
 * The parameters of a query: NAME=VALUE, joined by `&` or `;`. Of several with one name the first
 * one counts. A value is taken as it is.
 */
#ifndef RD_REQUEST_QUERY_H
#define RD_REQUEST_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "request/request.h"

/* A parameter without an equals sign has an empty value. */
bool rd_query_find(const rd_request *request, const char *name, rd_slice *value);

/* 0 if it is missing or no number. */
uint64_t rd_query_number(const rd_request *request, const char *name);

/* The name of the first parameter that is none of these. `known` ends with NULL. */
bool rd_query_find_other(const rd_request *request, const char *const *known, rd_slice *name);

/* Reads seconds, such as 5 or 0.25. Returns milliseconds, or -1. */
int64_t rd_query_seconds(rd_slice text);

#endif

/* SPDX-License-Identifier: MIT
 *
 * RD_APART marks a part of a hot function that few of its calls need. The compiler would inline it,
 * and then every call would prepare registers and stack memory for it.
 */
#ifndef RD_BASE_APART_H
#define RD_BASE_APART_H

#define RD_APART __attribute__((noinline))

#endif

/* SPDX-License-Identifier: MIT
 *
 * For a function that few calls of a hot one need: a function of its own. Inlined, its registers
 * and its memory on the stack would be made ready in every call.
 */
#ifndef RD_BASE_APART_H
#define RD_BASE_APART_H

#define RD_APART __attribute__((noinline))

#endif

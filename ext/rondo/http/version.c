/* SPDX-License-Identifier: MIT
 *
 * The table of versions; see version.h.
 */
#include "http/version.h"

const rd_http_version rd_http_versions[RD_HTTP_VERSION_COUNT] = {
#define ROW(name, text, keeps_alive, has_chunked, has_interim)                                     \
    [RD_HTTP_##name] = {RD_SLICE_INIT(text), keeps_alive, has_chunked, has_interim},
    RD_HTTP_VERSIONS(ROW)
#undef ROW
};

/* SPDX-License-Identifier: MIT
 *
 * files/mime: the types the web lives on, what counts as an extension, and that every row is one
 * that can be sent.
 */
#include "check.h"

#include "files/mime.h"

#define OTHER "application/octet-stream"

static void check_type(const char *name, const char *expected) {
    const rd_slice type = rd_mime_type(rd_slice_of(name, strlen(name)));
    CHECK_SAYS(type.len == strlen(expected) && memcmp(type.ptr, expected, type.len) == 0,
               "%s is %.*s instead of %s", name, (int)type.len, type.ptr, expected);
}

static void test_types_browsers_insist_on(void) {
    check_type("index.html", "text/html; charset=utf-8");
    check_type("index.htm", "text/html; charset=utf-8");
    check_type("app.css", "text/css; charset=utf-8");
    check_type("app.js", "text/javascript; charset=utf-8");
    check_type("app.mjs", "text/javascript; charset=utf-8");
    check_type("app.js.map", "application/json");
    check_type("data.json", "application/json");
    check_type("core.wasm", "application/wasm");
    check_type("app.webmanifest", "application/manifest+json");
    check_type("a.svg", "image/svg+xml");
    check_type("a.woff2", "font/woff2");
    check_type("captions.vtt", "text/vtt; charset=utf-8");
}

static void test_other_types(void) {
    check_type("a.3g2", "video/3gpp2"); /* the first row and the last */
    check_type("a.zst", "application/zstd");
    check_type("a.txt", "text/plain; charset=utf-8");
    check_type("a.csv", "text/csv; charset=utf-8");
    check_type("a.md", "text/markdown; charset=utf-8");
    check_type("a.ics", "text/calendar; charset=utf-8");
    check_type("a.xml", "application/xml");
    check_type("a.rss", "application/rss+xml");
    check_type("a.atom", "application/atom+xml");
    check_type("a.jpg", "image/jpeg");
    check_type("a.avif", "image/avif");
    check_type("a.jxl", "image/jxl");
    check_type("favicon.ico", "image/vnd.microsoft.icon");
    check_type("a.mp4", "video/mp4");
    check_type("a.m4s", "video/iso.segment");
    check_type("a.m3u8", "application/vnd.apple.mpegurl");
    check_type("a.mpd", "application/dash+xml");
    check_type("a.ts", "video/mp2t");
    check_type("a.wav", "audio/wav");
    check_type("a.glb", "model/gltf-binary");
    check_type("a.epub", "application/epub+zip");
    check_type("a.pdf", "application/pdf");
    check_type("a.tar.gz", "application/gzip");
    check_type("a.mobileconfig", "application/x-apple-aspen-config");
    check_type("a.pptx",
               "application/vnd.openxmlformats-officedocument.presentationml.presentation");
}

static void test_what_counts_as_an_extension(void) {
    check_type("INDEX.HTML", "text/html; charset=utf-8");
    check_type("assets/v1.2/App.Js", "text/javascript; charset=utf-8");
    check_type("a..css", "text/css; charset=utf-8");
    check_type(" .css", "text/css; charset=utf-8");
    check_type("", OTHER);
    check_type(".", OTHER);
    check_type("css", OTHER);
    check_type("a.", OTHER);
    check_type("a.css.", OTHER);
    check_type("a.css/LICENSE", OTHER);
    check_type("a.css/", OTHER);
    check_type(".css", OTHER);
    check_type("assets/.css", OTHER);
    check_type("a.html ", OTHER);
    check_type("a.xhtmlx", OTHER);
    check_type("a.htm\xc5\x82", OTHER);
    check_type("a.mobileconfigxyz", OTHER);  /* as long as the field of a row */
    check_type("a.mobileconfigxyzz", OTHER); /* longer */
}

static void test_bytes_that_end_no_name(void) {
    static const char bytes[] = "a.css\0b.js";
    CHECK_INT(rd_mime_type(rd_slice_of(bytes, 6)).len, strlen(OTHER)); /* "a.css\0" */
    CHECK_INT(rd_mime_type(rd_slice_of(bytes, 5)).len, strlen("text/css; charset=utf-8"));
    CHECK_INT(rd_mime_type(rd_slice_of(NULL, 0)).len, strlen(OTHER));
}

/* "type/subtype", and the charset where it belongs: only bytes that a field line can carry. */
static void check_is_well_formed(const char *name, rd_slice type) {
    static const char charset[] = "; charset=utf-8";
    const size_t end = sizeof charset - 1;
    const bool has_charset = type.len > end && memcmp(type.ptr + type.len - end, charset, end) == 0;
    const size_t len = type.len - (has_charset ? end : 0);
    unsigned slashes = 0, odd = 0;
    for (size_t i = 0; i < len; i++) {
        const char byte = type.ptr[i];
        slashes += byte == '/';
        odd +=
            !((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || strchr("/+-.", byte));
    }
    CHECK_SAYS(slashes == 1 && odd == 0, "%s: %.*s", name, (int)type.len, type.ptr);
    CHECK_INT(has_charset, strncmp(type.ptr, "text/", 5) == 0);
}

/* All extensions of up to three bytes. */
static void test_every_short_extension(void) {
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    unsigned known = 0;
    for (unsigned i = 1; i < 36 * 36 * 36; i++) {
        char name[8] = "x.";
        size_t len = 2;
        for (unsigned rest = i; rest; rest /= 36) name[len++] = alphabet[rest % 36];
        const rd_slice type = rd_mime_type(rd_slice_of(name, len));
        check_is_well_formed(name, type);
        known += !rd_slice_equal(type, RD_SLICE(OTHER));
    }
    CHECK(known > 100);
}

int main(void) {
    test_types_browsers_insist_on();
    test_other_types();
    test_what_counts_as_an_extension();
    test_bytes_that_end_no_name();
    test_every_short_extension();
    return check_summary();
}

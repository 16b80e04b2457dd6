# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Encoded siblings. RFC 9110 section 12.5.3.

FilesRules.define do
  # Accept-Encoding and the sibling that is sent.
  wanted = lambda do |name, choices|
    choices.each do |accepted, suffix|
      gives get("/#{name}", "Accept-Encoding: #{accepted}"), file(name, suffix, vary: true)
      gives head("/#{name}", "Accept-Encoding: #{accepted}"), file(name, suffix, vary: true).to_head
    end
  end

  row "encoding", "the best of three siblings"
  gives get("/all.js"), file("all.js", vary: true)
  wanted.call("all.js", "gzip" => "gz", "br" => "br", "zstd" => "zst", "gzip, deflate, br, zstd" => "br", "gzip, deflate" => "gz",
                        "gzip, zstd" => "zst", "GZip" => "gz", "BR" => "br", "ZSTD;Q=1" => "zst", "gzip;q=1.0, br;q=0.5" => "gz",
                        "gzip;q=0.5, br;q=0.4, zstd;q=0.6" => "zst", "br;q=0.001" => "br", "gzip;q=0.5" => "gz",
                        "identity, gzip" => "gz", "identity;q=0.5, gzip;q=1" => "gz", "identity;q=0.5, gzip;q=0.4" => nil,
                        "identity;q=0.4, gzip;q=0.5" => "gz", "*" => "br", "*;q=0.5" => "br", "*, br;q=0" => "zst",
                        "*;q=0.5, gzip" => "gz", "br;q=0, zstd;q=0, *" => "gz", " gzip ; q=0.5 ,\tbr ; q=0.6 " => "br",
                        "x-gzip" => "gz", ",,gzip,," => "gz", "gzip;q=0.999, br;q=0.998" => "gz", "gzip;q=1.000" => "gz",
                        "gzip;q=0, br;q=0.1" => "br")

  row "no_encoding", "none that is wanted"
  wanted.call("all.js", "" => nil, "identity" => nil, "deflate" => nil, "compress, deflate" => nil, "gzip;q=0" => nil, "*;q=0" => nil,
                        "gzip;q=0.000, br;q=0, zstd;q=0.0" => nil, "identity;q=0" => nil, "*;q=0, identity;q=0" => nil,
                        "gzipp" => nil, "gz" => nil, "zst" => nil, "brotli" => nil, "gzip;q=2" => nil, "gzip;q=-1" => nil,
                        "gzip;q=1.5" => nil, "gzip;q=0.1234" => nil, "gzip;q=x" => nil, "gzip;q" => nil, "\"gzip\"" => nil,
                        "gzip br" => nil, "identity;q=1, *;q=0" => nil, "br;q=0, gzip;q=0, zstd;q=0, *" => nil)

  row "one_sibling", "the sibling that is there"
  wanted.call("only-gz.css", "gzip" => "gz", "br" => nil, "gzip, br, zstd" => "gz", "br, gzip;q=0.1" => "gz", "br, zstd" => nil,
                             "*" => "gz", "gzip;q=0, br" => nil)
  wanted.call("only-br.txt", "gzip" => nil, "gzip, br" => "br")
  wanted.call("only-zst.txt", "gzip, br" => nil, "zstd;q=0.1, br" => "zst")
  gives get("/only-gz.css"), file("only-gz.css", vary: true)
  gives get("/packed/", "Accept-Encoding: gzip"), file("packed/index.html", "gz")
  gives get("/packed/"), file("packed/index.html", vary: true)
  gives get("/packed", "Accept-Encoding: gzip"), moved("/packed/")
  gives get("/large.js", "Accept-Encoding: gzip"), file("large.js", "gz")
  gives get("/large.js"), file("large.js", vary: true)
  on(:alone) { gives get("/all.js", "Accept-Encoding: gzip"), file("all.js", "gz") }

  row "encoding_lines", "several Accept-Encoding fields"
  gives get("/all.js", "Accept-Encoding: deflate", "Accept-Encoding: gzip"), file("all.js", "gz")
  gives get("/all.js", "Accept-Encoding: gzip;q=0.5", "Accept-Encoding: zstd"), file("all.js", "zst")
  gives get("/all.js", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0"), file("all.js", vary: true)

  row "no_sibling", "what is no sibling"
  %w[plain.txt folder-gz.txt link-gz.txt pipe-gz.txt].each do |name|
    gives get("/#{name}", "Accept-Encoding: gzip"), file(name)
    gives get("/#{name}"), file(name)
  end
  hides "/orphan.txt", "/orphan.txt?x", lines: ["Accept-Encoding: gzip"]
  serves "orphan.txt.gz", "/orphan.txt.gz"
  gives get("/all.js.gz"), file("all.js.gz")
  gives get("/all.js.gz", "Accept-Encoding: gzip"), file("all.js.gz")
  gives get("/all.js.br", "Accept-Encoding: gzip, br"), file("all.js.br")
  gives get("/all.js.zst", "Accept-Encoding: identity"), file("all.js.zst")

  row "stale", "a sibling older than its original"
  gives get("/same-age.txt", "Accept-Encoding: gzip"), file("same-age.txt", "gz")
  gives get("/stale.txt", "Accept-Encoding: gzip"), file("stale.txt")
  gives get("/stale.txt"), file("stale.txt")
  gives get("/stale.txt.gz"), file("stale.txt.gz")
  gives get("/stale-br.txt", "Accept-Encoding: gzip, br"), file("stale-br.txt", "gz")
  gives get("/stale-br.txt", "Accept-Encoding: br"), file("stale-br.txt", vary: true)

  row "encoding_validators", "each sibling has validators of its own"
  all = FilesFolder.public["all.js"]
  FilesRules::ENCODINGS.each do |suffix, coding|
    sent = FilesFolder.public["all.js.#{suffix}"]
    accept = "Accept-Encoding: #{coding}"
    gives get("/all.js", accept, "If-None-Match: #{sent.etag(suffix)}"), not_modified("all.js", suffix)
    gives get("/all.js", accept, "If-None-Match: #{all.etag}"), file("all.js", suffix)
    gives get("/all.js", accept, "If-None-Match: #{sent.etag}"), file("all.js", suffix)
    gives get("/all.js", "If-None-Match: #{sent.etag(suffix)}"), file("all.js", vary: true)
    gives get("/all.js", accept, "If-Match: #{sent.etag(suffix)}"), file("all.js", suffix)
    gives get("/all.js", accept, "If-Match: #{all.etag}"), failed
    gives get("/all.js", accept, "If-Modified-Since: #{sent.last_modified}"), not_modified("all.js", suffix)
    gives get("/all.js", accept, "If-Modified-Since: #{sent.last_modified(-1)}"), file("all.js", suffix)
  end
  gives get("/all.js", "If-None-Match: #{all.etag}"), not_modified("all.js", vary: true)
  gives get("/all.js", "Accept-Encoding: deflate", "If-None-Match: *"), not_modified("all.js", vary: true)

  row "encoding_ranges", "ranges are those of what is sent"
  sent = FilesFolder.public["all.js.gz"]
  gives get("/all.js", "Accept-Encoding: gzip", "Range: bytes=0-3"), part("all.js", 0..3, "gz")
  gives get("/all.js", "Accept-Encoding: gzip", "Range: bytes=-4"), part("all.js", 18..21, "gz")
  gives get("/all.js", "Accept-Encoding: gzip", "Range: bytes=0-99"), part("all.js", 0..21, "gz")
  gives get("/all.js", "Accept-Encoding: gzip", "Range: bytes=22-"), unsatisfiable("all.js", "gz")
  gives get("/all.js", "Range: bytes=22-30"), part("all.js", 22..30, vary: true)
  gives get("/all.js", "Accept-Encoding: gzip", "Range: bytes=0-3,8-9"), file("all.js", "gz") # parts are not encoded
  gives get("/all.js", "Accept-Encoding: gzip", "Range: bytes=0-3", "If-Range: #{sent.etag("gz")}"), part("all.js", 0..3, "gz")
  gives get("/all.js", "Accept-Encoding: gzip", "Range: bytes=0-3", "If-Range: #{all.etag}"), file("all.js", "gz")
  gives get("/all.js", "Range: bytes=0-3", "If-Range: #{sent.etag("gz")}"), file("all.js", vary: true)
  gives get("/large.js", "Accept-Encoding: gzip", "Range: bytes=100-19000"), part("large.js", 100..19_000, "gz")
end

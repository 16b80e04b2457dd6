# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# The fields about a file, and the conditions under which it is sent. RFC 9110 sections 8.8 and 13.

FilesRules.define do
  row "sizes", "files of every size"
  %w[size-0.txt size-1.txt size-16383.txt size-16384.txt size-16385.txt size-65536.txt large.bin size-0.html].each do |name|
    serves name, "/#{name}"
  end

  row "exact", "the form of the validators, in so many words"
  said = { "/plain.txt" => ["\"28-17979cfe3d85cd15\"", "Tue, 14 Nov 2023 22:13:20 GMT"],
           "/first.txt" => ["\"28-0\"", "Thu, 01 Jan 1970 00:00:00 GMT"],
           "/seconds.txt" => ["\"28-16345785d8a00000\"", "Sun, 13 Sep 2020 12:26:40 GMT"],
           "/one-ns.txt" => ["\"28-16345785d8a00001\"", "Sun, 13 Sep 2020 12:26:40 GMT"],
           "/leap.txt" => ["\"28-17b8539f02dc49ff\"", "Thu, 29 Feb 2024 12:00:00 GMT"] }
  said.each do |target, (etag, modified)|
    gives get(target), file(target.delete_prefix("/")).with("etag" => etag, "last-modified" => modified)
  end

  row "types", "Content-Type by the last extension, in any letter case"
  %w[index.html style.css code.js code.mjs data.json PHOTO.JPG photo.JpEg dot.png line.svg module.wasm letter.woff2 pack.gz README
     ends-in-a-dot. what.no-such-type txt two.html.txt].each { |name| serves name, "/#{name}" }

  row "digests", "names with a digest may be kept for ever"
  (FilesFolder::DIGESTS - ["app-0123abcd.js"]).each { |name| serves name, "/#{name}", cache: FilesRules::FOREVER }
  FilesFolder::NO_DIGESTS.each { |name| serves name, "/#{name}" }
  serves "app.0123abcd.css", "/app%2E0123abcd.css", "/app.%30123abcd%2ecss", cache: FilesRules::FOREVER
  serves "app-0123abcd.js", "/app-0123abcd.js", cache: FilesRules::FOREVER, vary: true
  gives get("/app-0123abcd.js", "Accept-Encoding: gzip"), file("app-0123abcd.js", "gz", cache: FilesRules::FOREVER)
  gives get("/app.0123abcd.css", "If-None-Match: *"), not_modified("app.0123abcd.css", cache: FilesRules::FOREVER)
  gives get("/app-0123abcd.js", "If-None-Match: *"), not_modified("app-0123abcd.js", cache: FilesRules::FOREVER, vary: true)

  etag = FilesFolder.public["plain.txt"].etag
  time = FilesFolder.public["plain.txt"].last_modified
  before = FilesFolder.public["plain.txt"].last_modified(-1)
  after = FilesFolder.public["plain.txt"].last_modified(1)
  # Cases of one file: the header lines, and whether the file is sent with them.
  cases = lambda do |lists, answer|
    lists.each do |lines|
      gives get("/plain.txt", *lines), answer
      gives head("/plain.txt", *lines), answer.to_head
    end
  end

  row "none_match", "If-None-Match that names it"
  cases.call([["If-None-Match: #{etag}"], ["If-None-Match: *"], ["If-None-Match: W/#{etag}"], ["if-none-match:#{etag}"],
              ["If-None-Match:  #{etag}\t"], ["If-None-Match: \"a\", #{etag}"], ["If-None-Match: \"a\",#{etag},\"b\""],
              ["If-None-Match: W/\"a\" , W/#{etag} ,\"b\""], ["If-None-Match: \"a,b\", #{etag}"], ["If-None-Match: , #{etag},,"],
              ["If-None-Match: \"a\"", "If-None-Match: #{etag}"], ["If-None-Match: #{(1..50).map { |i| "\"#{i}\"" }.join(", ")}, #{etag}"],
              ["If-None-Match: \"\", #{etag}"], ["If-None-Match: \"a b\", #{etag}"]], not_modified("plain.txt"))

  row "none_match_other", "If-None-Match that does not"
  cases.call([["If-None-Match: \"a\""], ["If-None-Match: #{etag.delete("\"")}"], ["If-None-Match: w/#{etag}"],
              ["If-None-Match: #{etag.upcase}"], ["If-None-Match: \"#{etag}\""], ["If-None-Match: '#{etag.delete("\"")}'"],
              ["If-None-Match: #{etag[0..-2]}-gz\""], ["If-None-Match: #{etag.chop}"], ["If-None-Match:"], ["If-None-Match: \"*\""],
              ["If-None-Match: \"a, #{etag[1..]}"], ["If-None-Match: #{"\"x\"," * 300}\"y\""]], file("plain.txt"))

  row "since", "If-Modified-Since that it is not younger than"
  cases.call([["If-Modified-Since: #{time}"], ["If-Modified-Since: #{after}"], ["If-Modified-Since: Tuesday, 14-Nov-23 22:13:20 GMT"],
              ["If-Modified-Since: Tue Nov 14 22:13:20 2023"], ["if-modified-since:#{time}"]], not_modified("plain.txt"))
  gives get("/first.txt", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"), not_modified("first.txt")
  gives get("/leap.txt", "If-Modified-Since: Thu, 29 Feb 2024 12:00:00 GMT"), not_modified("leap.txt")

  row "since_other", "If-Modified-Since that it is younger than, or that is no date"
  cases.call([["If-Modified-Since: #{before}"], ["If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"], ["If-Modified-Since:"],
              ["If-Modified-Since: never"], ["If-Modified-Since: 1700000000"], ["If-Modified-Since: 2023-11-14T22:13:20Z"],
              ["If-Modified-Since: Tue, 14 Nov 2023 22:13:20"], ["If-Modified-Since: Tue, 14 Nov 2023 22:13:20 +0000"],
              ["If-Modified-Since: Tue, 32 Nov 2023 22:13:20 GMT"], ["If-Modified-Since: Tue, 14 Nov 2023 25:13:20 GMT"],
              ["If-Modified-Since: Thu, 30 Feb 2024 22:13:20 GMT"], ["If-Modified-Since: #{time}x"],
              ["If-Modified-Since: Tue, 14 Nov 99999999999999999999 22:13:20 GMT"], ["If-Modified-Since: #{"9" * 3000}"]], file("plain.txt"))

  row "none_match_wins", "If-None-Match is heard before If-Modified-Since"
  cases.call([["If-None-Match: #{etag}", "If-Modified-Since: #{before}"], ["If-Modified-Since: #{before}", "If-None-Match: #{etag}"]],
             not_modified("plain.txt"))
  cases.call([["If-None-Match: \"a\"", "If-Modified-Since: #{time}"], ["If-Modified-Since: #{after}", "If-None-Match: \"a\""],
              ["If-None-Match:", "If-Modified-Since: #{time}"]], file("plain.txt"))

  row "match", "If-Match and If-Unmodified-Since that hold"
  cases.call([["If-Match: #{etag}"], ["If-Match: *"], ["If-Match: \"a\", #{etag}"], ["If-Match: \"a\"", "If-Match: #{etag}"],
              ["If-Unmodified-Since: #{time}"], ["If-Unmodified-Since: #{after}"], ["If-Unmodified-Since: no date"],
              ["If-Unmodified-Since: Tuesday, 14-Nov-23 22:13:20 GMT"], ["If-Match: #{etag}", "If-Unmodified-Since: #{before}"],
              ["If-Match: *", "If-None-Match: \"a\""], ["If-Unmodified-Since: #{time}", "If-Modified-Since: #{before}"]], file("plain.txt"))
  cases.call([["If-Match: #{etag}", "If-None-Match: #{etag}"], ["If-None-Match: *", "If-Match: *"],
              ["If-Unmodified-Since: #{time}", "If-Modified-Since: #{time}"]], not_modified("plain.txt"))

  row "match_other", "If-Match and If-Unmodified-Since that do not hold"
  cases.call([["If-Match: \"a\""], ["If-Match: W/#{etag}"], ["If-Match: \"a\", W/#{etag}, \"b\""], ["If-Match: #{etag.delete("\"")}"],
              ["If-Match:"], ["If-Match: \"*\""], ["If-Unmodified-Since: #{before}"], ["If-Unmodified-Since: Tue Nov 14 22:13:19 2023"],
              ["If-Match: \"a\"", "If-None-Match: #{etag}"], ["If-Match: \"a\"", "If-Unmodified-Since: #{time}"],
              ["If-Unmodified-Since: #{before}", "If-None-Match: *"], ["If-Match: \"a\"", "Range: bytes=0-1"]], failed)
  gives get("/dir/", "If-Match: \"a\""), failed
  gives get("/dir/", "If-None-Match: *"), not_modified("dir/index.html")

  row "absent_conditions", "conditions say nothing about what is no file"
  ["If-None-Match: *", "If-Match: *", "If-Match: \"a\"", "If-Modified-Since: Fri, 31 Dec 2100 00:00:00 GMT",
   "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT", "Range: bytes=0-1", "Range: bytes=9999-", "Accept-Encoding: gzip"].each do |line|
    hides "/nothing", "/bare/", "/orphan.txt", lines: [line]
  end
end

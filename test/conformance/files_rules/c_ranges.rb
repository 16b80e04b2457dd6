# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Ranges. RFC 9110 section 14.

FilesRules.define do
  name = "size-16385.txt" # 0..16384: one more than goes out with the head
  target = "/#{name}"
  etag = FilesFolder.public[name].etag
  time = FilesFolder.public[name].last_modified
  range = ->(set, *lines) { get(target, "Range: #{set}", *lines) }

  row "range", "one range"
  { "bytes=0-0" => 0..0, "bytes=0-1" => 0..1, "bytes=1-1" => 1..1, "bytes=100-199" => 100..199, "bytes=0-16384" => 0..16_384,
    "bytes=0-16385" => 0..16_384, "bytes=0-99999999" => 0..16_384, "bytes=16384-16384" => 16_384..16_384, "bytes=0-" => 0..16_384,
    "bytes=1-" => 1..16_384, "bytes=16384-" => 16_384..16_384, "bytes=-1" => 16_384..16_384, "bytes=-100" => 16_285..16_384,
    "bytes=-16384" => 1..16_384, "bytes=-16385" => 0..16_384, "bytes=-16386" => 0..16_384, "bytes=-99999999" => 0..16_384,
    "bytes=00-0001" => 0..1, "bytes=-0001" => 16_384..16_384, "BYTES=0-1" => 0..1, "bytes=,0-1," => 0..1, "bytes= 0-1 " => 0..1, "Bytes=5-" => 5..16_384,
    "bytes=0-9223372036854775806" => 0..16_384, "bytes=0-9223372036854775807" => 0..16_384,
    "bytes=0-9223372036854775808" => 0..16_384, "bytes=0-18446744073709551615" => 0..16_384,
    "bytes=0-18446744073709551616" => 0..16_384, "bytes=-18446744073709551617" => 0..16_384,
    "bytes=0-#{"9" * 500}" => 0..16_384, "bytes=-#{"9" * 500}" => 0..16_384, "bytes=#{"0" * 500}1-2" => 1..2 }.each do |set, wanted|
    gives range.call(set), part(name, wanted)
  end
  gives get("/size-1.txt", "Range: bytes=0-0"), part("size-1.txt", 0..0)
  gives get("/size-1.txt", "Range: bytes=-5"), part("size-1.txt", 0..0)
  gives get("/dir/", "Range: bytes=1-3"), part("dir/index.html", 1..3)
  gives get("/link.txt", "Range: bytes=1-3"), part("plain.txt", 1..3)
  on(:alone) { gives get("/plain.txt", "Range: bytes=1-3"), part("plain.txt", 1..3) }

  row "range_large", "ranges of a large file"
  { "bytes=0-0" => 0..0, "bytes=299999-" => 299_999..307_199, "bytes=65535-65536" => 65_535..65_536, "bytes=1-200000" => 1..200_000,
    "bytes=-1" => 307_199..307_199, "bytes=262143-262145" => 262_143..262_145 }.each do |set, wanted|
    gives get("/large.bin", "Range: #{set}"), part("large.bin", wanted)
  end

  row "range_ignored", "what is no range is the whole file"
  ["bytes=5-2", "bytes=1-0", "bytes=#{"9" * 30}-5", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=0-b", "bytes=0x0-0x1", "bytes=+0-1", "bytes=0-+1",
   "bytes=--1", "bytes=-1-", "bytes=0-1-2", "bytes=1", "bytes:0-1", "bytes 0-1", "bytes=0.0-1", "bytes=0 - 1", "bytes=0- 1",
   "bytes =0-1", "octets=0-1", "lines=1-2", "seconds=0-1", "=0-1", "0-1", "none", "", ",", "bytes=0-1;2-3", "bytes=0-1 2-3",
   "bytes=0-1,5-2", "bytes=5-2,0-1", "bytes=0-1,x", "bytes=0-1,octets=2-3", "bytes=\"0-1\"", "bytes=0-1\x80",
   "bytes=0-1,bytes=3-4"].each do |set|
    gives range.call(set), file(name)
  end
  gives range.call("bytes=0-1", "Range: bytes=3-4"), file(name)

  row "range_several", "several ranges"
  { "bytes=0-0,2-2" => [0..0, 2..2], "bytes=0-9,20-29,40-49" => [0..9, 20..29, 40..49], "bytes=0-0,-1" => [0..0, 16_384..16_384],
    "bytes=10-19,0-5" => [10..19, 0..5], "bytes=0-1, 4-5" => [0..1, 4..5], "bytes=0-1 ,4-5" => [0..1, 4..5],
    "bytes=0-1,\t4-5" => [0..1, 4..5], "bytes=16380-,0-1" => [16_380..16_384, 0..1],
    "bytes=0-1,4-5,99999-" => [0..1, 4..5], "bytes=0-1,16380-99999" => [0..1, 16_380..16_384],
    "bytes=#{(0...16).map { |i| "#{i * 10}-#{i * 10}" }.join(",")}" => (0...16).map { |i| (i * 10)..(i * 10) } }.each do |set, wanted|
    gives range.call(set), parts(name, wanted)
  end
  gives get("/large.bin", "Range: bytes=0-69999,100000-199999,-5"), parts("large.bin", [0..69_999, 100_000..199_999, 307_195..307_199])
  gives get("/PHOTO.JPG", "Range: bytes=0-1,4-5"), parts("PHOTO.JPG", [0..1, 4..5])

  row "range_one_left", "several of which one can be satisfied"
  gives range.call("bytes=0-1,99999-"), part(name, 0..1)
  gives range.call("bytes=99999-,3-4,16385-16390"), part(name, 3..4)
  gives range.call("bytes=-0,3-4"), part(name, 3..4)

  row "range_too_much", "overlapping or too many ranges are the whole file"
  ["bytes=0-10,5-15", "bytes=0-,0-", "bytes=0-0,0-0", "bytes=5-15,0-10", "bytes=0-9,3-4", "bytes=-5,-5", "bytes=-10,16384-",
   "bytes=#{(0...17).map { |i| "#{i * 10}-#{i * 10}" }.join(",")}", "bytes=#{(0...1000).map { |i| "#{i * 2}-#{i * 2}" }.join(",")}",
   "bytes=#{(["0-"] * 1000).join(",")}"].each do |set|
    gives range.call(set), file(name)
  end

  row "range_outside", "ranges behind the end"
  ["bytes=16385-", "bytes=16385-16385", "bytes=99999-100000", "bytes=-0", "bytes=-000", "bytes=9223372036854775807-",
   "bytes=9223372036854775808-", "bytes=18446744073709551615-", "bytes=18446744073709551616-", "bytes=#{"9" * 500}-",
   "bytes=#{"9" * 30}-#{"9" * 30}", "bytes=16385-,99999-", "bytes=-0,99999-"].each do |set|
    gives range.call(set), unsatisfiable(name)
  end
  gives get("/size-1.txt", "Range: bytes=1-"), unsatisfiable("size-1.txt")
  gives get("/size-0.txt", "Range: bytes=0-"), unsatisfiable("size-0.txt")
  gives get("/size-0.txt", "Range: bytes=0-0"), unsatisfiable("size-0.txt")
  ["bytes=5-2", "bytes=-1", "bytes=-1,-2", "bytes=-1,0-"].each { |set| gives get("/size-0.txt", "Range: #{set}"), file("size-0.txt") }

  row "range_head", "a range says nothing to a HEAD, nor to another method"
  gives head(target, "Range: bytes=0-1"), file(name).to_head
  gives head(target, "Range: bytes=99999-"), file(name).to_head
  gives head(target, "Range: bytes=0-1,4-5"), file(name).to_head
  gives request("POST", target, "Range: bytes=0-1", "Content-Length: 0"), nothing(target, "POST")

  row "if_range", "If-Range that holds"
  [etag, time, "Tuesday, 14-Nov-23 22:13:20 GMT"].each do |validator|
    gives range.call("bytes=0-1", "If-Range: #{validator}"), part(name, 0..1)
  end
  gives range.call("bytes=0-1,4-5", "If-Range: #{etag}"), parts(name, [0..1, 4..5])
  gives range.call("bytes=99999-", "If-Range: #{etag}"), unsatisfiable(name)
  gives get(target, "If-Range: #{etag}"), file(name)

  row "if_range_other", "If-Range that does not"
  modified = FilesFolder.public[name]
  ["\"a\"", "W/#{etag}", etag.delete("\""), "*", "", modified.last_modified(1), modified.last_modified(-1), "no date",
   "#{etag}, \"a\"", "Tue, 14 Nov 2023 22:13:20", "#{etag[0..-2]}-gz\""].each do |validator|
    gives range.call("bytes=0-1", "If-Range: #{validator}"), file(name)
    gives range.call("bytes=99999-", "If-Range: #{validator}"), file(name)
  end

  row "range_conditions", "conditions are heard before ranges"
  gives range.call("bytes=0-1", "If-None-Match: #{etag}"), not_modified(name)
  gives range.call("bytes=99999-", "If-None-Match: #{etag}"), not_modified(name)
  gives range.call("bytes=0-1", "If-Modified-Since: #{time}"), not_modified(name)
  gives range.call("bytes=0-1", "If-None-Match: \"a\""), part(name, 0..1)
  gives range.call("bytes=0-1", "If-Match: #{etag}"), part(name, 0..1)
  gives range.call("bytes=0-1", "If-Match: \"a\""), failed
  gives range.call("bytes=99999-", "If-Match: \"a\""), failed
  gives range.call("bytes=0-1", "If-Unmodified-Since: #{modified.last_modified(-1)}"), failed
  gives range.call("bytes=0-1", "If-Match: #{etag}", "If-Range: \"a\""), file(name)
end

# frozen_string_literal: true

# Files on their way to a client, and changes to them meanwhile. The table of rules (test/conformance) has the answers
# for each case.
# SPDX-License-Identifier: MIT

require_relative "rack_case"
require "fileutils"
require "tmpdir"

class StaticFilesTest < RackCase
  APP = ->(_env) { [200, { "content-type" => "text/plain" }, ["application"]] }
  LARGE = 12_000_000

  def setup
    super
    @folder = Dir.mktmpdir("rondo-files")
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
  end

  def folder(app = APP, **settings)
    start(app, lint: false, public: @folder, **settings)
  end

  def path(name)
    File.join(@folder, name)
  end

  # The file appears complete under its name.
  def put(name, bytes)
    File.binwrite(path(".new"), bytes)
    File.rename(path(".new"), path(name))
  end

  def bytes_of(count, seed)
    Random.new(seed).bytes(count)
  end

  # ---- slow readers ----

  def test_a_slow_reader_gets_all_of_it_and_delays_nobody
    content = bytes_of(LARGE, 1)
    put "large", content
    put "small", "small"
    folder
    slow = Array.new(3) { connect(receive_buffer: 4096) }
    other = connect
    slow.each { |client| client.write(bytes("GET", "/large", "Connection" => "close")) }
    20.times { assert_equal "small", get(other, "/small").body }
    assert_equal "application", get(other, "/else").body
    slow.each { |client| assert_equal content, client.read_all(timeout: PATIENCE).split("\r\n\r\n", 2).last }
  end

  # ---- files that change ----

  def test_a_file_that_is_removed_while_it_is_sent_arrives_whole
    content = bytes_of(LARGE, 2)
    put "large", content
    folder
    client = connect(receive_buffer: 4096)
    client.write(bytes("GET", "/large", "Connection" => "close"))
    first = client.read_some
    File.delete(path("large"))
    put "large", "another one"
    assert_equal content, (first + client.read_all(timeout: PATIENCE)).split("\r\n\r\n", 2).last
    eventually("the new file") { get(connect, "/large").body == "another one" }
    File.delete(path("large"))
    eventually("the application") { get(connect, "/large").body == "application" }
  end

  # Two names share the only place of the cache, so that each answer opens its file anew.
  def test_a_file_that_is_replaced_is_the_old_one_or_the_new_one
    { "small" => 100, "large" => 200_000 }.each do |name, size|
      versions = [bytes_of(size, 3), bytes_of(size + 1, 4)]
      put name, versions.first
      put "other", "other"
      folder(static_cache_files: 1)
      over = false
      changes = Thread.new { versions.cycle { |content| over ? break : put(name, content) } }
      client = connect
      tags = Array.new(150) do
        response = get(client, "/#{name}")
        assert_includes versions, response.body
        assert_equal "other", get(client, "/other").body
        [response.header("etag")[/\A"\h+/], response.body.bytesize.to_s(16)]
      end
      tags.each { |tag, length| assert_equal "\"#{length}", tag }
    ensure
      over = true
      changes&.join
    end
  end

  # ---- no descriptors ----

  def test_without_descriptors
    put "file", "file"
    alone = connect(folder(nil))
    beside = connect(folder)
    [alone, beside].each { |client| get(client, "/else") } # they are accepted
    without_descriptors do
      [alone, beside].each do |client| # the application does not answer for a file that may exist
        response = get(client, "/file")
        assert_equal [503, "too many files are open\n", "1"], [response.status, response.body, response.header("retry-after")]
      end
    end
    assert_equal %w[file file], [alone, beside].map { |client| get(client, "/file").body }
  end

  private

  def without_descriptors
    soft, hard = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, Dir.children("/proc/self/fd").map(&:to_i).max + 20, hard)
    held = []
    loop { held << File.open(File::NULL) }
  rescue Errno::EMFILE
    yield
  ensure
    Process.setrlimit(:NOFILE, soft, hard)
    held&.each(&:close)
  end
end

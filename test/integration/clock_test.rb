# frozen_string_literal: true

# Someone sets the clock while the server runs: no wait depends on the wall clock. While Ruby is stuck in C, only the
# watch thread can answer. It looks every millisecond, however far the wall clock was stepped.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "tmpdir"
require "support/raw_client"
require "support/server_process"

class ClockTest < Minitest::Test
  SHIM = File.expand_path("../support/clock_step.c", __dir__)
  HOUR = 3600
  # /stuck reads from a pipe in C and keeps the GVL.
  APP = <<~RUBY
    require "fiddle"
    int, pointer = Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP
    read = Fiddle::Function.new(Fiddle.dlopen(nil)["read"], [int, pointer, Fiddle::TYPE_SIZE_T], int, need_gvl: true)
    pipe = File.open(ENV.fetch("PIPE"), "r+")
    run(lambda do |env|
      read.call(pipe.fileno, "x", 1) if env["PATH_INFO"] == "/stuck"
      [200, {}, [Time.now.to_i.to_s]]
    end)
  RUBY

  def setup
    skip "cc is not installed" unless system("command -v cc >/dev/null")
    @folder = Dir.mktmpdir("rondo-clock")
    @library = File.join(@folder, "clock_step.so")
    assert system("cc", "-shared", "-fPIC", "-O1", "-o", @library, SHIM)
    @pipe = File.join(@folder, "pipe")
    File.mkfifo(@pipe)
    @app = File.join(@folder, "config.ru")
    File.write(@app, APP)
  end

  def teardown
    FileUtils.rm_rf(@folder) if @folder
  end

  def environment(step)
    preload = [ENV.fetch("LD_PRELOAD", nil), @library].compact.join(":")
    { "LD_PRELOAD" => preload, "CLOCK_STEP" => step.to_s, "PIPE" => @pipe }
  end

  # The clients' deadline is much shorter than the step.
  def check(step)
    ServerProcess.run(@app, env: environment(step)) do |server|
      told = RawClient.open(server.url) { |client| client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").body }
      assert_in_delta Time.now.to_i + step, told.to_i, HOUR / 2, "the clock is stepped"
      RawClient.open(server.url) do |stuck|
        stuck.write("GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n")
        3.times { RawClient.open(server.url) { |other| assert_equal 400, other.request("NONSENSE\r\n\r\n").status } }
      ensure
        File.open(@pipe, "r+") { |pipe| pipe.write("x") }
        assert_equal 200, stuck.response.status
      end
    end
  end

  def test_a_clock_that_was_stepped_back = check(HOUR)
  def test_a_clock_that_was_stepped_forward = check(-HOUR)
end

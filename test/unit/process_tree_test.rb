# frozen_string_literal: true

# What processes read from the system; see ext/rondo/ruby/rb_process.c.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "open3"
require "rbconfig"

class ProcessTreeTest < Minitest::Test
  # Eight threads exist at the same time, and each one allocates. Prints how many arenas exist beside the first.
  THREADS = <<~RUBY
    require "rondo"
    Rondo::ProcessTree.limit_arenas
    gate = Queue.new
    threads = Array.new(8) { Thread.new { [Array.new(100) { "x" * 1000 }, gate.pop] } }
    Thread.pass until gate.num_waiting == 8
    arenas = File.readlines("/proc/self/maps").count do |line|
      from, to = line[/^\\S+/].split("-").map(&:hex)
      line.include?("---p") && (to - from).between?(60 << 20, 64 << 20)
    end
    print arenas
    8.times { gate << nil }
    threads.each(&:join)
  RUBY

  def setup
    skip "glibc is missing, whose arenas are counted" unless RbConfig::CONFIG["host_os"].include?("linux-gnu")
  end

  def test_few_arenas
    skip "a sanitizer brings its own allocator" if ENV.fetch("LD_PRELOAD", "").match?(/[at]san/)
    assert_operator arenas({}), :<=, 1
    assert_operator arenas({ "MALLOC_ARENA_MAX" => "9" }), :>, 1, "the environment knows better"
  end

  private

  def arenas(environment)
    lib = File.expand_path("../../lib", __dir__)
    blank = { "MALLOC_ARENA_MAX" => nil, "GLIBC_TUNABLES" => nil }
    output, status = Open3.capture2(blank.merge(environment), RbConfig.ruby, "-I", lib, "-e", THREADS)
    assert_predicate status, :success?
    Integer(output)
  end
end

# frozen_string_literal: true

# Ends a test that does not end by itself. A program beside the tests hears of each one as it begins. When it hears
# nothing for too long, it asks the process where its threads are, which fails the test, and the next test runs. If
# Ruby does not answer either (nobody gives up the GVL), it shows the stacks of the C code and ends the process.
# SPDX-License-Identifier: MIT

module TimeLimit
  # A test took too long. No StandardError: what the test rescues is not meant.
  class Expired < Exception; end # rubocop:disable Lint/InheritException

  # Seconds for one test. The slowest one takes a quarter of this under AddressSanitizer.
  SECONDS = Integer(ENV.fetch("RONDO_TEST_LIMIT", 300))
  # Seconds in which Ruby must answer.
  ANSWER = Integer(ENV.fetch("RONDO_TEST_ANSWER", 60))
  # No program of ours has a use for it.
  SIGNAL = "XCPU"

  # It is nobody's child, because tests wait for any child. `read` returns more than 128 when its time is over.
  WATCH = <<~BASH
    (
      limit=$1 answer=$2 signal=$3 process=$4
      while true; do
        read -r -t "$limit" name && { test=$name; continue; }
        [ $? -gt 128 ] || exit 0
        [ "$test" ] || continue
        kill -s "$signal" "$process" || exit 0
        read -r -t "$answer" name && { test=$name; continue; }
        [ $? -gt 128 ] || exit 0
        echo "$test took longer than $limit s, and Ruby does not answer" >&2
        gdb -nx -p "$process" -batch -ex "thread apply all backtrace" >&2 2>&1
        kill -s SEGV "$process" # Ruby tells where it is
        read -r -t "$answer" name # until it has ended
        kill -s KILL "$process"
        exit 1
      done
    ) <&0 &
  BASH

  class << self
    # @return [void]
    def begin
      heard, @said = IO.pipe
      Process.wait(spawn("bash", "-c", WATCH, "bash", *[SECONDS, ANSWER].map(&:to_s), SIGNAL, Process.pid.to_s, in: heard))
      heard.close
      trap(SIGNAL) { expire }
    end

    # @param test [String] what begins
    # @return [void]
    def watch(test)
      @test = test
      @said.write_nonblock("#{test}\n", exception: false)
    rescue Errno::EPIPE
      nil
    end

    private

    def expire
      stacks = Thread.list.map { |thread| "#{thread.inspect}\n    #{thread.backtrace&.join("\n    ")}" }
      warn "#{@test} took longer than #{SECONDS} s", *stacks
      raise Expired, "longer than #{SECONDS} s"
    end
  end

  # For Minitest::Test.
  module Watched
    def before_setup
      TimeLimit.watch("#{self.class}##{name}")
      super
    end
  end
end

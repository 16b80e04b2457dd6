# frozen_string_literal: true

# The terminal of `rondo top`: a screen of its own, keys without waiting for Enter, changes of size;
# and everything as it was at the end, however that comes.
# SPDX-License-Identifier: MIT

require "io/console"

module Rondo
  class Top
    # Takes over a terminal for the time of a block.
    class Terminal
      ENTER = "\e[?1049h\e[?25l"
      LEAVE = "\e[?25h\e[?1049l"
      SIGNALS = %w[TERM HUP WINCH].freeze

      # @param input [IO]
      # @param output [IO]
      def initialize(input, output)
        @input = input
        @output = output
      end

      # @yield with the terminal taken over
      # @return [Object] of the block
      def open
        @signals, @signalled = IO.pipe
        before = SIGNALS.to_h { |name| [name, trap(name) { @signalled.write_nonblock(name[0], exception: false) }] }
        @output.write(ENTER)
        @input.raw { yield self }
      ensure
        @output.write(LEAVE)
        @output.flush
        before&.each { |name, handler| trap(name, handler || "DEFAULT") }
      end

      # @return [Array(Integer, Integer)] width and height
      def size
        height, width = @output.winsize
        [width.zero? ? 80 : width, height.zero? ? 24 : height]
      end

      # @param lines [Array<String>]
      # @return [void]
      def draw(lines)
        @output.write("\e[H", lines.map { |line| "#{line}\e[K" }.join("\r\n"), "\e[J")
        @output.flush
      end

      # Waits for something to happen.
      # @param seconds [Float]
      # @return [Symbol, String, nil] :quit, :resize, the keys, or nil when nothing did
      def wait(seconds)
        ready, = IO.select([@input, @signals], nil, nil, seconds)
        return unless ready
        return @signals.read_nonblock(100).match?(/[TH]/) ? :quit : :resize if ready.include?(@signals)

        key = @input.read_nonblock(100)
        ["q", "Q", "\u0003", "\u0004", "\e"].include?(key) ? :quit : key
      rescue EOFError, Errno::EIO
        :quit # the terminal is gone
      end
    end
  end
end

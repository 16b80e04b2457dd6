# frozen_string_literal: true

# Group 9 of websocket_rules.rb: messages of up to 16 MiB, in fragments, in small writes, and many small messages in
# sequence. They are too large to keep, so frames are made when they are needed, from one block of bytes that is
# repeated. Each message is sent in only one way: whole, unless `writes` says otherwise.
# SPDX-License-Identifier: MIT

require_relative "websocket_rules"

module WebsocketLargeRules
  F = WebsocketFrames
  KIB = 1024
  MIB = 1024 * KIB
  MESSAGE_MAX = 16 * MIB
  BLOCK = 64 * KIB
  TEXT = Random.new(9).bytes(BLOCK / 4 * 3).then { |bytes| [bytes].pack("m0") }.freeze
  BINARY = Random.new(9).bytes(BLOCK).freeze
  # All masks of the repeated blocks are the same, because no fragment is cut inside four bytes.
  MASKED = { TEXT => F.masked(TEXT, F::MASK), BINARY => F.masked(BINARY, F::MASK) }.freeze

  # @!attribute bytesize [Integer] of the message
  # @!attribute fragment [Integer] bytes of each
  # @!attribute writes [Integer, nil] bytes of each
  # @!attribute rounds [Integer] times the message is sent, each after the answer to the one before
  Row = Struct.new(:number, :name, :opcode, :bytesize, :fragment, :writes, :rounds, keyword_init: true) do
    def group
      number.rpartition(".").first
    end

    def payload
      repeat(block, bytesize)
    end

    # @return [String] the message in its fragments
    def bytes
      masked = MASKED.fetch(block)
      return head(opcode, bytesize, true) + repeat(masked, bytesize) if fragment >= bytesize

      frames = cut(masked)
      all = frames * (bytesize / fragment / frames.size)
      all[0] = head(opcode, fragment, false) + cut_one(masked, 0)
      all[-1] = head(F::CONTINUATION, fragment, true) + cut_one(masked, bytesize - fragment)
      all.join
    end

    private

    def block
      opcode == F::TEXT ? TEXT : BINARY
    end

    def repeat(part, size)
      (part * size.fdiv(BLOCK).ceil).byteslice(0, size)
    end

    # The continuations of a block, or the single one that is larger than a block.
    def cut(masked)
      (0...[BLOCK, fragment].max).step(fragment).map do |at|
        head(F::CONTINUATION, fragment, false) + cut_one(masked, at)
      end
    end

    def cut_one(masked, at)
      fragment > BLOCK ? repeat(masked, fragment) : masked.byteslice(at % BLOCK, fragment)
    end

    def head(opcode, size, fin)
      F.head(opcode, size, fin: fin) + F::MASK
    end
  end

  ROWS = []
  SORTS = { "text" => F::TEXT, "binary" => F::BINARY }.freeze

  def self.add(group, sizes, what)
    SORTS.each_with_index do |(sort, opcode), index|
      sizes.each.with_index(1) do |size, number|
        row = { bytesize: size, fragment: MESSAGE_MAX, rounds: 1 }.merge(yield(size))
        ROWS << Row.new(number: "9.#{group + index}.#{number}", name: "#{sort}: #{format(what, size)}", opcode: opcode, **row)
      end
    end
  end

  add(1, [64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB, 16 * MIB], "%d bytes") { {} }
  add(3, [64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB], "4 MiB in fragments of %d") do |size|
    { bytesize: 4 * MIB, fragment: size }
  end
  add(5, [64, 128, 256, 512, 1024, 2048], "1 MiB in writes of %d") { |size| { bytesize: MIB, writes: size } }
  add(7, [0, 16, 64, 256, 1024, 4096], "a thousand of %d") { |size| { bytesize: size, rounds: 1000 } }
end

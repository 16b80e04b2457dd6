# frozen_string_literal: true

# The messages between processes with presence: a line of words, then JSON. What is not valid is nil: another version,
# or somebody else, may have sent it. Any thread.
# SPDX-License-Identifier: MIT

require "json"

module Rondo
  module Presence
    # | kind | head | JSON |
    # |---|---|---|
    # | b | name, number, cycle | [[room, version, ids], …] |
    # | d | name, version before, version | [[[id, info], …], [id, …]] |
    # | s | name, version, page, pages | [[id, info], …] |
    # | e | name, version | [room, …]: nobody is there |
    # | a | name, name of who is asked or * | [room, …] |
    # | x | name | none: it ends |
    # @api private
    module Frames
      # The version of these messages.
      VERSION = "1"
      # Entries of a page have about so many bytes.
      PAGE_BYTES = 24 * 1024
      # The longest message that is read.
      MOST_BYTES = 512 * 1024
      PAGES = 65_536
      NAME = /\A[0-9a-f]{16}\z/
      NUMBER = /\A\d{1,15}\z/
      # How many numbers come after the name, by kind.
      NUMBERS = { "b" => 2, "d" => 2, "s" => 3, "e" => 1, "a" => 0, "x" => 0 }.freeze
      private_constant :NAME, :NUMBER, :NUMBERS

      # @!attribute kind [String]
      # @!attribute name [String] of the process that sent it
      # @!attribute numbers [Array<Integer>]
      # @!attribute asked [String, nil] "*" or the name of a process
      # @!attribute json [String, nil] not read yet
      Frame = Struct.new(:kind, :name, :numbers, :asked, :json)

      module_function

      # @return [Integer] the least max_publish_bytes with which each name, and each info of so many bytes, fits as JSON
      def needed(info_bytes)
        8192 + (3 * info_bytes)
      end

      # @param kind [String]
      # @param words [Array<String, Integer>]
      # @param body [Array, nil]
      # @return [String]
      def make(kind, *words, body: nil)
        head = [VERSION, kind, *words].join(" ")
        body ? "#{head}\n#{JSON.generate(body)}" : head
      end

      # @param bytes [String]
      # @return [Frame, nil]
      def read(bytes)
        return if bytes.bytesize > MOST_BYTES

        line, json = bytes.b.split("\n", 2)
        version, kind, name, *rest = line.to_s.split(" ", 7)
        count = NUMBERS[kind] or return
        return unless version == VERSION && NAME.match?(name.to_s)

        asked = rest.shift if kind == "a"
        return unless rest.size == count && rest.all?(NUMBER)
        return if kind == "a" && asked != "*" && !NAME.match?(asked.to_s)

        Frame.new(kind, name, rest.map(&:to_i), asked, json)
      end

      # @return [Array, nil]
      def body(frame)
        text = String.new(frame.json.to_s, encoding: Encoding::UTF_8)
        return unless text.valid_encoding?

        value = JSON.parse(text, max_nesting: 4)
        value if value.is_a?(Array)
      rescue JSON::ParserError
        nil
      end

      # @param pairs [Array]
      # @return [Boolean] whether these are ids with their info, which may still be no JSON
      def entries?(pairs)
        pairs.is_a?(Array) && pairs.all? do |pair|
          pair.is_a?(Array) && pair.size == 2 && name?(pair[0]) &&
            (pair[1].nil? || (pair[1].is_a?(String) && pair[1].bytesize <= RANGES[:info_bytes].end))
        end
      end

      # @return [Boolean] whether all of these may be rooms or ids
      def names?(names)
        names.is_a?(Array) && names.all? { |name| name?(name) }
      end

      def name?(name)
        name.is_a?(String) && name.bytesize.between?(1, NAME_BYTES)
      end

      # @param entries [Hash{String => String, nil}] ids with their info
      # @param most [Integer] bytes of a page, until one more entry
      # @return [Array<Array>] pages of pairs; one at least
      def pages(entries, most)
        pages, page, bytes = [], [], 0
        entries.each do |id, info|
          bytes += id.bytesize + info.to_s.bytesize + 8
          page << [id, info]
          next if bytes < most

          pages << page
          page, bytes = [], 0
        end
        pages << page unless page.empty? && !pages.empty?
        pages
      end
    end
  end
end

# backtick_javascript: true
# frozen_string_literal: true

# One part of a form: its head and the bytes of its body.
# SPDX-License-Identifier: MIT

require "rack/utils"

module Rack
  module Multipart
    # As Rack's parser reads it, with its limits for one Content-Disposition.
    class Part
      PARAMETER = /;\s*([\w*-]+)=(?:"((?:\\.|[^"\\])*)"|([^;]*))/
      MOST_PARAMETERS = 16
      MOST_BYTES = 1536

      # @param head [String] header lines
      # @param input [Rondo::Input] the body that it is a part of
      def initialize(head, input)
        @head = head
        @input = input
        @fields = read_fields
      end

      # @return [Object] a Buffer
      attr_writer :bytes

      # @return [Integer] characters of the Content-Disposition that are escaped
      def escapes
        @fields["content-disposition"].to_s.scan(/\\./).size
      end

      # @return [String]
      def name
        given = disposition ? parameters["name"] : @fields["content-id"]
        return given unless given.nil? || given.empty?

        filename || "#{@fields["content-type"] || "text/plain"}[]"
      end

      # @return [String, nil] without folders; empty if no file was chosen
      def filename
        given = parameters["filename"] or return
        given = Utils.unescape_path(given) if given.scan(/%.?.?/).all? { |escape| escape.match?(/%\h\h/) }
        given.split(%r{[/\\]}).last || ""
      end

      # @return [String, Hash]
      def value
        return `Opal.rondo.text.fromBytes(#{@bytes})` unless filename

        { filename: filename, type: @fields["content-type"], name: name, tempfile: file, head: "#{@head}\r\n" }
      end

      private

      # Its bytes are those of the body, so it is closed together with it.
      def file
        input = Rondo::Input.new
        `Object.assign(input, { bytes: #{@bytes}, position: 0, closed: false })`
        `(#{@input}.files ??= []).push(input)`
        input
      end

      # The first field of each name; folded lines are one.
      def read_fields
        @head.gsub(/\r\n([ \t])/) { Regexp.last_match(1) }.split("\r\n").reverse.to_h do |line|
          name, value = line.split(":", 2)
          [name.downcase, value.to_s.strip]
        end
      end

      def disposition
        given = @fields["content-disposition"]
        given if given && given.bytesize <= MOST_BYTES
      end

      def parameters
        @parameters ||= disposition.to_s.scan(PARAMETER).first(MOST_PARAMETERS).to_h do |(name, quoted, plain)|
          [name, quoted ? unescape(name, quoted) : plain.strip]
        end
      end

      # Some browsers send the path of a file with its backslashes.
      def unescape(name, quoted)
        quoted.gsub(/\\(.)/) do |escaped|
          char = Regexp.last_match(1)
          name == "filename" && char != '"' ? escaped : char
        end
      end
    end
  end
end

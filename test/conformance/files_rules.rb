# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# The rules of the static folder as data: the bytes that are sent, and every byte that must come back. The rows are in
# files_rules/*.rb; this file has the small language that they are written in. The files are those of files_folder.rb.
# The table knows nothing of sockets; test_files.rb delivers it.

require_relative "files_folder"

module FilesRules
  # statuses: the status is one of them; fields: all fields except Date; a Regexp if a value is not known in advance,
  # nil if any value is right;
  # body: String, or nil for anything; parts: the parts of a multipart body, each a Content-Range and its bytes.
  Answer = Struct.new(:statuses, :fields, :body, :parts, :head) do
    # The same answer to a HEAD.
    def to_head
      Answer.new(statuses, fields, "", nil, true)
    end

    # @param more [Hash{String => String}] other or further fields
    def with(more)
      Answer.new(statuses, fields.merge(more), body, parts, head)
    end
  end

  # settings: one of SERVERS; ends: :open, :closed or :any.
  Case = Struct.new(:id, :title, :bytes, :answers, :ends, :settings, :half_close, :tcp_only)

  # app: the first folder before an application; alone: only that folder;
  # pages, failing: the second folder, alone and before an application.
  SERVERS = %i[app alone pages failing].freeze

  TEXT = FilesFolder::TEXT
  HOUR = "max-age=3600"
  FOREVER = "public, max-age=31536000, immutable"
  ENCODINGS = { "br" => "br", "zst" => "zstd", "gz" => "gzip" }.freeze

  @cases = []
  class << self
    # @return [Array<Case>]
    attr_reader :cases

    # Adds rows to the table.
    def define(&block)
      Table.new.instance_eval(&block)
    end
  end

  # The possible answers.
  module Answers
    # The whole file.
    # @param suffix [String, nil] of the encoded sibling that is sent
    # @param vary [Boolean] it has siblings
    # @param cache [String] Cache-Control
    def file(name, suffix = nil, vary: !suffix.nil?, cache: HOUR)
      sent = sibling(name, suffix)
      Answer.new([200], facts(name, suffix, vary, cache).merge("content-length" => sent.content.bytesize.to_s), sent.content)
    end

    # One range of the file.
    def part(name, range, suffix = nil, vary: !suffix.nil?)
      content = sibling(name, suffix).content
      fields = { "content-length" => range.size.to_s, "content-range" => content_range(range, content) }
      Answer.new([206], facts(name, suffix, vary, HOUR).merge(fields), content[range])
    end

    # Several ranges.
    def parts(name, ranges, suffix = nil, vary: !suffix.nil?)
      sent = sibling(name, suffix)
      fields = { "content-length" => /\A\d+\z/, "content-type" => %r{\Amultipart/byteranges; boundary=[0-9A-Za-z_-]{1,70}\z} }
      Answer.new([206], facts(name, suffix, vary, HOUR).merge(fields), nil,
                 ranges.map { |range| [entry(name).type, content_range(range, sent.content), sent.content[range]] })
    end

    def not_modified(name, suffix = nil, vary: !suffix.nil?, cache: HOUR)
      kept = %w[etag last-modified cache-control vary]
      Answer.new([304], facts(name, suffix, vary, cache).slice(*kept), "")
    end

    def failed
      Answer.new([412], { "content-length" => "0" }, "")
    end

    def unsatisfiable(name, suffix = nil)
      size = sibling(name, suffix).content.bytesize
      Answer.new([416], { "content-range" => "bytes */#{size}", "accept-ranges" => "bytes", "content-length" => "0" }, "")
    end

    def moved(location)
      Answer.new([301], { "location" => location, "content-length" => "0" }, "")
    end

    def missing
      return page(404) if %i[pages failing].include?(@server)

      refusal(404, "not found\n")
    end

    def page(status)
      content = FilesFolder.pages.fetch("#{status}.html").content
      refusal(status, content, "content-type" => FilesFolder::HTML)
    end

    def not_allowed
      refusal(405, "method not allowed\n", "allow" => "GET, HEAD")
    end

    # The server's own answer to an invalid request.
    def refused(status)
      Answer.new([*status], { "content-type" => nil, "content-length" => nil }, nil)
    end

    # The application has got the request.
    def app(request_line, input = "")
      text = "app #{request_line} #{input}"
      Answer.new([200], { "content-type" => "text/plain", "content-length" => text.bytesize.to_s }, text)
    end

    # The answer to a request that names no file.
    def nothing(target, method = "GET", input = "")
      return app("#{method} #{target}", input) if @server == :app || @server == :failing

      %w[GET HEAD].include?(method) ? missing : not_allowed
    end

    private

    def refusal(status, text, more = {})
      fields = { "content-type" => TEXT, "content-length" => text.bytesize.to_s, "x-content-type-options" => "nosniff" }
      Answer.new([status], fields.merge(more), text)
    end

    def entry(name)
      (%i[pages failing].include?(@server) ? FilesFolder.pages : FilesFolder.public).fetch(name)
    end

    def sibling(name, suffix)
      entry(suffix ? "#{name}.#{suffix}" : name)
    end

    def content_range(range, content)
      "bytes #{range.begin}-#{range.end}/#{content.bytesize}"
    end

    def facts(name, suffix, vary, cache)
      sent = sibling(name, suffix)
      fields = { "content-type" => entry(name).type, "etag" => sent.etag(suffix), "last-modified" => sent.last_modified,
                 "accept-ranges" => "bytes", "cache-control" => cache, "x-content-type-options" => "nosniff" }
      fields["content-encoding"] = ENCODINGS.fetch(suffix) if suffix
      fields["vary"] = "accept-encoding" if vary
      fields
    end
  end

  # Collects the cases of the blocks in files_rules/*.rb.
  class Table
    include Answers

    def initialize
      @server = :app
    end

    # Starts a row: the following cases get its word and a number as their name.
    def row(word, title)
      raise ArgumentError, word if FilesRules.cases.any? { |test| test.id.start_with?("#{word}_") }

      @word = word
      @title = title
      @number = 0
    end

    # The cases of the block are run on each of these servers.
    def on(*servers, &block)
      servers.each do |server|
        raise ArgumentError, server unless SERVERS.include?(server)

        before, @server = @server, server
        block.call
        @server = before
      end
    end

    # The answer of the block on that server.
    def expecting(server)
      answer = nil
      on(server) { answer = yield self }
      answer
    end

    # The bytes that are sent, and the answers to them in order.
    def gives(bytes, *answers, ends: :open, half_close: false)
      @number += 1
      FilesRules.cases << Case.new("#{@word}_#{@number}", @title, bytes.b, answers, ends, @server, half_close, false)
    end

    # A request with more header lines.
    def request(method, target, *lines, minor: 1, body: "")
      "#{method} #{target} HTTP/1.#{minor}\r\nHost: a\r\n#{lines.map { |line| "#{line}\r\n" }.join}\r\n#{body}"
    end

    def get(target, *lines)
      request("GET", target, *lines)
    end

    def head(target, *lines)
      request("HEAD", target, *lines)
    end

    # Each of the targets names this file; a HEAD gets the same answer.
    def serves(name, *targets, **facts)
      targets.each do |target|
        gives get(target), file(name, **facts)
        gives head(target), file(name, **facts).to_head
      end
    end

    # None of the targets names a file, with or without an application.
    def hides(*targets, lines: [])
      on(:app, :alone) do
        targets.each { |target| gives get(target, *lines), nothing(target) }
      end
    end
  end
end

Dir[File.join(__dir__, "files_rules/*.rb")].sort.each { |path| require path }

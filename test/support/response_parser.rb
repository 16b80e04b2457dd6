# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# A strict HTTP/1.1 response parser. It reports errors that a careless client would forgive, because the tests use it to
# judge the server. It does no I/O; RawClient and Exchange feed it.

# One parsed response. `fields` keeps names as sent, in order; `header` looks up by lower-case name.
Response = Struct.new(:version, :status, :reason, :fields, :body, :framing, :trailers) do
  # @param name [String] lower-case field name
  # @return [String, nil] the value; repeated fields joined with ", "
  def header(name)
    found = fields.select { |field, _| field.downcase == name }.map(&:last)
    found.empty? ? nil : found.join(", ")
  end

  # @return [Boolean] an interim (1xx) response other than 101
  def interim?
    status < 200 && status != 101
  end

  # @return [Boolean] the server said that it closes after this response
  def close?
    header("connection").to_s.downcase.split(/[ \t]*,[ \t]*/).include?("close")
  end
end

# Takes complete responses off the front of a buffer.
class ResponseParser
  # The bytes are not a well-formed response.
  class Malformed < StandardError; end

  STATUS_LINE = %r{\A(HTTP/1\.[01]) ([1-9][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)\z}n
  FIELD_LINE = /\A([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*\z/mn
  BAD_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/n
  DAYS = /Mon|Tue|Wed|Thu|Fri|Sat|Sun/
  MONTHS = /Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec/
  IMF_DATE = /\A(#{DAYS}), \d\d (#{MONTHS}) \d{4} \d\d:\d\d:\d\d GMT\z/
  MAX_HEAD = 1 << 17

  # @param buffer [String] binary; a complete response is removed from its front
  # @param head [Boolean] the response answers a HEAD request
  # @param eof [Boolean] no more bytes will come
  # @return [Response, nil] nil when more bytes are needed
  # @raise [Malformed]
  def self.take(buffer, head: false, eof: false)
    head_end = buffer.index("\r\n\r\n")
    unless head_end
      raise Malformed, "response head too long" if buffer.bytesize > MAX_HEAD
      raise Malformed, "end of stream inside a response head: #{buffer[0, 200].inspect}" if eof && !buffer.empty?
      return nil
    end
    response = parse_head(buffer.byteslice(0, head_end))
    length = take_body(response, buffer, head_end + 4, head, eof)
    return nil unless length
    buffer.replace(buffer.byteslice(length, buffer.bytesize - length))
    response
  end

  def self.parse_head(head)
    lines = head.split("\r\n", -1)
    match = STATUS_LINE.match(lines.shift) or raise Malformed, "bad status line in #{head[0, 200].inspect}"
    fields = lines.map { |line| parse_field(line) }
    response = Response.new(match[1], match[2].to_i, match[3], fields, +"", nil, [])
    check_fields(response)
    response
  end

  def self.parse_field(line)
    match = FIELD_LINE.match(line) or raise Malformed, "bad field line #{line[0, 200].inspect}"
    raise Malformed, "control byte in field #{line[0, 200].inspect}" if match[2].match?(BAD_VALUE)
    [match[1], match[2]]
  end

  # What RFC 9110 and 9112 forbid in any response, whatever the application does.
  def self.check_fields(response)
    lengths = response.fields.select { |name, _| name.downcase == "content-length" }.map(&:last)
    codings = response.header("transfer-encoding")
    raise Malformed, "#{lengths.size} Content-Length fields" if lengths.size > 1
    raise Malformed, "Content-Length #{lengths[0].inspect}" unless lengths.all?(/\A[0-9]+\z/)
    raise Malformed, "Content-Length beside Transfer-Encoding" if codings && lengths.any?
    raise Malformed, "Transfer-Encoding #{codings.inspect}" if codings && codings.downcase != "chunked"
    bodyless = response.status < 200 || response.status == 204
    raise Malformed, "framing fields in a #{response.status}" if bodyless && (codings || lengths.any?)
    # Other servers that the tests are tried against leave it out, and so do answers of uWebSockets.js itself.
    return if response.status < 200 || ENV.key?("RONDO_TEST_SERVER") || ENV.key?("RONDO_TEST_UWS")
    date = response.header("date")
    raise Malformed, "Date #{date.inspect}" unless date&.match?(IMF_DATE)
  end

  # @return [Integer, nil] bytes of the whole response
  def self.take_body(response, buffer, start, head, eof)
    length = response.header("content-length")
    if head || response.status < 200 || [204, 304].include?(response.status)
      response.framing = :none
      start
    elsif response.header("transfer-encoding")
      response.framing = :chunked
      take_chunks(response, buffer, start, eof)
    elsif length
      response.framing = :length
      take_length(response, buffer, start, length.to_i, eof)
    else
      response.framing = :close
      return nil unless eof
      response.body = buffer.byteslice(start, buffer.bytesize - start)
      buffer.bytesize
    end
  end

  def self.take_length(response, buffer, start, length, eof)
    if buffer.bytesize < start + length
      raise Malformed, "end of stream after #{buffer.bytesize - start} of #{length} body bytes" if eof
      return nil
    end
    response.body = buffer.byteslice(start, length)
    start + length
  end

  def self.take_chunks(response, buffer, start, eof)
    loop do
      line_end = buffer.index("\r\n", start) or return missing(eof)
      line = buffer.byteslice(start, line_end - start)
      raise Malformed, "chunk size #{line.inspect}" unless line.match?(/\A[0-9A-Fa-f]{1,16}\z/n)
      size = line.to_i(16)
      start = line_end + 2
      return take_trailers(response, buffer, start, eof) if size.zero?
      return missing(eof) if buffer.bytesize < start + size + 2
      response.body << buffer.byteslice(start, size)
      raise Malformed, "chunk without its CRLF" unless buffer.byteslice(start + size, 2) == "\r\n"
      start += size + 2
    end
  end

  def self.take_trailers(response, buffer, start, eof)
    loop do
      line_end = buffer.index("\r\n", start) or return missing(eof)
      line = buffer.byteslice(start, line_end - start)
      start = line_end + 2
      return start if line.empty?
      response.trailers << parse_field(line)
    end
  end

  def self.missing(eof)
    raise Malformed, "end of stream inside a chunked body" if eof
    nil
  end

  private_class_method :parse_head, :parse_field, :check_fields, :take_body, :take_length,
                       :take_chunks, :take_trailers, :missing
end

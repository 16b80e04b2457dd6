# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What a browser does and these tests need, over Net::HTTP: one kept-alive connection, a jar of
# cookies, forms, uploads of any size that are made up as they are sent, redirects on demand, and
# WebSockets with the same cookies.

require "digest"
require "net/http"
require "support/websocket_peer"
require "uri"

class Browser
  READ_TIMEOUT = 60

  attr_reader :cookies, :http, :response

  def initialize(url)
    @url = URI(url)
    @http = Net::HTTP.new(@url.hostname, @url.port, nil)
    @http.read_timeout = READ_TIMEOUT
    # A request that is quietly sent a second time would hide a fault of the server.
    @http.max_retries = 0
    @http.keep_alive_timeout = 30
    @http.start
    @cookies = {}
  end

  def get(path, headers = {}, &block)
    perform(Net::HTTP::Get.new(path, headers), &block)
  end

  def head(path)
    perform(Net::HTTP::Head.new(path))
  end

  # Sends a form as application/x-www-form-urlencoded.
  def post(path, fields = {}, headers = {})
    request = Net::HTTP::Post.new(path, headers)
    request.set_form_data(fields)
    perform(request)
  end

  # Sends a form of fields and one file as multipart/form-data.
  # @param file [MadeUpFile]
  # @param chunked [Boolean] say no length
  def upload(path, file, fields: {}, name: "file", chunked: false)
    body = MultipartBody.new(file, name, fields)
    request = Net::HTTP::Post.new(path, "content-type" => body.content_type)
    chunked ? request["transfer-encoding"] = "chunked" : request.content_length = body.size
    request.body_stream = body
    perform(request)
  end

  # @return [WebsocketPeer] opened as by a page of the server: with its origin, and the jar of cookies
  def websocket(path, origin: @url.to_s)
    fields = { "Host" => @url.authority, "Origin" => origin, "Cookie" => cookie_line }
    peer = WebsocketPeer.new(@url.to_s, path.delete_prefix("/"), fields: fields)
    peer.head.scan(/^set-cookie: ([^\r]*)/i) { |line,| keep(line) }
    peer
  end

  # Goes where the last response points to.
  def follow
    get(URI.join(@url.to_s, @response["location"]).request_uri)
  end

  def close
    @http.finish if @http.started?
  end

  private

  def perform(request, &block)
    request["cookie"] = cookie_line if cookie_line
    @response = @http.request(request, &block)
    (@response.get_fields("set-cookie") || []).each { |line| keep(line) }
    @response
  end

  def cookie_line
    @cookies.map { |name, value| "#{name}=#{value}" }.join("; ") unless @cookies.empty?
  end

  def keep(line)
    pair, *attributes = line.split(/;\s*/)
    name, value = pair.split("=", 2)
    gone = attributes.any? { |attribute| attribute.match?(/\A(max-age=0|expires=.* 1970 )/i) }
    gone ? @cookies.delete(name) : @cookies[name] = value
  end
end

# A file that exists only while it is read; every block of it is different.
class MadeUpFile
  BLOCK = Random.new(42).bytes(1 << 16).freeze

  attr_reader :size

  def initialize(size)
    @size = size
    rewind
  end

  def rewind
    @position = 0
  end

  # @return [String, nil] the next part, at most a block
  def next_part
    left = @size - @position
    return nil if left <= 0
    part = BLOCK.dup
    part[0, 8] = [@position].pack("Q>")
    part = part.byteslice(0, left) if left < part.bytesize
    @position += part.bytesize
    part
  end

  # @return [String] hexadecimal
  def digest
    rewind
    digest = Digest::SHA256.new
    while (part = next_part)
      digest << part
    end
    rewind
    digest.hexdigest
  end
end

# The body of a form with one file, as IO.copy_stream wants to read it.
class MultipartBody
  BOUNDARY = "----a-boundary-that-no-file-holds"

  def initialize(file, name, fields)
    @file = file
    @file.rewind
    @head = fields.map { |field, value| "#{part_head(field)}\r\n#{value}\r\n" }.join.b
    @head << part_head(name, "; filename=\"made up.bin\"") << "Content-Type: application/octet-stream\r\n\r\n"
    @tail = "\r\n--#{BOUNDARY}--\r\n"
    @waiting = @head.dup
    @ends = false
  end

  def content_type
    "multipart/form-data; boundary=#{BOUNDARY}"
  end

  def size
    @head.bytesize + @file.size + @tail.bytesize
  end

  def read(length = nil, into = nil)
    fill(length)
    return into&.clear && nil if length&.positive? && @waiting.empty?
    part = @waiting.slice!(0, length || @waiting.bytesize)
    into ? into.replace(part) : part
  end

  def readpartial(length, into = nil)
    read(length, into) or raise EOFError
  end

  private

  def part_head(name, more = "")
    "--#{BOUNDARY}\r\nContent-Disposition: form-data; name=\"#{name}\"#{more}\r\n"
  end

  def fill(length)
    until @ends || (length && @waiting.bytesize >= length)
      part = @file.next_part
      @ends = part.nil?
      @waiting << (part || @tail)
    end
  end
end

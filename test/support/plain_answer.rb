# frozen_string_literal: true

# What a response says, without what is each server's own: how fields are written and in which order, how the message is
# framed, the date. uWebSockets.js writes these itself.
# SPDX-License-Identifier: MIT

module PlainAnswer
  OWN = /\A(?:connection|content-length|date|keep-alive|transfer-encoding|uwebsockets):/i

  module_function

  # @param bytes [String] one response, to the end of its connection
  # @return [Array(String, Array<String>, String)] status line, fields in small letters, body
  def of(bytes)
    head, body = bytes.split("\r\n\r\n", 2)
    status, *fields = head.to_s.split("\r\n")
    body = joined(body.to_s) if fields.any?(/\Atransfer-encoding: *chunked\z/i)
    [status, fields.grep_v(OWN).map { |field| field.sub(/\A[^:]+/, &:downcase) }.sort, body]
  end

  def joined(chunks)
    body = +""
    while (line = chunks[/\A\h+\r\n/])
      body << chunks.byteslice(line.bytesize, line.hex)
      chunks = chunks.byteslice((line.bytesize + line.hex + 2)..).to_s
    end
    body
  end
end

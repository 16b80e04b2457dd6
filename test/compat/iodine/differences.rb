# frozen_string_literal: true

# Where Rondo does something else than iodine 0.7.60, line by line of the transcripts, and why.
# SPDX-License-Identifier: MIT

module Differences
  # By scenario: what iodine says, what Rondo says instead (nil: nothing), and the reason. A line without iodine's side
  # comes behind the one before it.
  LINES = {
    "readme_upgrade_tcp" => [
      ['Ann < ""', 'Ann < "hello\n"', "iodine 0.7.60 closes this connection after its 101, against its README"]
    ],
    "readme_x_sendfile" => [
      ["  cache-control: max-age=3600", "  accept-ranges: bytes", "the application alone says how long a file may be kept; ranges can be asked for"],
      ["GET /file\n  200", "GET /file\n  200\n  accept-ranges: bytes", "ranges of a file can be asked for"]
    ],
    "x_sendfile" => [
      ["  cache-control: max-age=3600", "  accept-ranges: bytes", "the application alone says how long a file may be kept; ranges can be asked for"]
    ],
    "readme_client" => [
      ["output: * Client closed.", "output: Received: Hello World!\noutput: Received: I'm alive and sending messages\n" \
                                   "output: Received: I also receive messages\noutput: Received: now that we all know this...\n" \
                                   "output: Received: I can stop.\noutput: Received: Goodbye.\noutput: * Client closed.",
       "iodine 0.7.60 closes a WebSocket over TLS after its 101, against its README"]
    ],
    "rack3" => [
      ["  content-length: 0", nil, "a 204 has no Content-Length: RFC 9110, section 8.6"]
    ],
    "echo" => [
      ['Ann < frame 10 ""', 'Ann < close "\x03\xE9going away"', "a WebSocket ends with a Close, and 1001 where the server goes away"]
    ],
    "config" => [
      ['Ann < frame 10 ""', 'Ann < close "\x03\xE9going away"', "a WebSocket ends with a Close, and 1001 where the server goes away"]
    ]
  }.freeze

  # Snippets that no scenario runs, and why.
  NOT_RUN = {
    "readme_redis_cmd.rb.txt" => "it needs a Redis server: redis_test.rb runs it on both"
  }.freeze

  # @param name [String] of a scenario
  # @param transcript [String] of iodine
  # @return [String] what Rondo has to say
  def self.apply(name, transcript)
    LINES.fetch(name, []).reduce(transcript) do |text, (theirs, ours, _reason)|
      line = /^#{Regexp.escape(theirs.b)}\n/n
      raise "#{name}: iodine does not say #{theirs}" unless text.match?(line)

      text.sub(line) { ours ? "#{ours}\n".b : "" }
    end
  end
end

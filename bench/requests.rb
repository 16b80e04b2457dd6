# frozen_string_literal: true

# The requests the scenarios send, byte by byte, by name. measure.rb writes them into files for
# the client.
# SPDX-License-Identifier: MIT

module Bench
  # Raw requests.
  module Requests
    HEAD = "%s / HTTP/1.1\r\nHost: 127.0.0.1\r\n"

    # What a browser sends for a page: 13 headers with Host.
    BROWSER = [
      "Connection: keep-alive",
      'sec-ch-ua: "Chromium";v="142", "Not_A Brand";v="24"',
      "sec-ch-ua-mobile: ?0",
      'sec-ch-ua-platform: "Linux"',
      "Upgrade-Insecure-Requests: 1",
      "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " \
      "Chrome/142.0.0.0 Safari/537.36",
      "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
      "Sec-Fetch-Site: none",
      "Sec-Fetch-Mode: navigate",
      "Sec-Fetch-Dest: document",
      "Accept-Encoding: gzip, deflate, br, zstd",
      "Accept-Language: en-US,en;q=0.9,de;q=0.8"
    ].freeze

    # What it sends besides once it is logged in: a session of Rails, and what statistics keep.
    COOKIE = "Cookie: _app_session=#{"0123456789abcdefghijklmnopqrstuv" * 8}; theme=dark; " \
             "_ga=GA1.2.1234567890.1234567890".freeze

    FILES = %w[1k 64k 9mb cold0 cold1 cold2 cold3].to_h do |name|
      [:"file#{name}", "GET /#{name}.bin HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"]
    end.freeze

    ALL = {
      **FILES,
      plain: "#{format(HEAD, "GET")}\r\n",
      wait: "GET /wait HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
      close: "#{format(HEAD, "GET")}Connection: close\r\n\r\n",
      browser: "#{format(HEAD, "GET")}#{BROWSER.join("\r\n")}\r\n\r\n",
      cookie: "#{format(HEAD, "GET")}#{[*BROWSER, COOKIE].join("\r\n")}\r\n\r\n",
      post: "#{format(HEAD, "POST")}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nab",
      chunked: "#{format(HEAD, "POST")}Content-Type: text/plain\r\n" \
               "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    }.freeze
  end
end

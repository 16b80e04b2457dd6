# frozen_string_literal: true

# The pages for the real clients of clients_test.rb: every way to frame a response, and bodies that come back as their
# digest.
# SPDX-License-Identifier: MIT

require "digest/sha2"
require "rack/lint"

use Rack::Lint if ENV["RONDO_TEST_LINT"]

parts = Class.new do
  def each
    20.times { |n| yield "part #{n}\n" }
  end
end

digest = lambda do |env|
  sum = Digest::SHA256.new
  count = 0
  while (part = env["rack.input"]&.read(65_536))
    sum << part
    count += part.bytesize
  end
  "#{count} #{sum.hexdigest}"
end

file = Class.new do
  def to_path = __FILE__
  def each = yield(File.binread(__FILE__))
end

run lambda { |env|
  text = { "content-type" => "text/plain" }
  case env["PATH_INFO"]
  when "/hello" then [200, text, ["Hello, World!\n"]]
  when "/env" then [200, text, [env.values_at("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "HTTP_X_ONE").inspect]]
  when "/parts" then [200, text, parts.new]
  when "/file" then [200, text, file.new]
  when "/digest" then [200, text, [digest.call(env)]]
  when "/large" then [200, text, ["x" * 1_000_000] * 5]
  when "/empty" then [204, {}, []]
  when "/redirect" then [302, { "location" => "/hello" }, []]
  when "/cookies" then [200, text.merge("set-cookie" => %w[a=1 b=2]), [env["HTTP_COOKIE"].to_s]]
  when "/stream"
    [200, text, lambda { |stream|
      20.times { |n| stream.write("part #{n}\n") }
      stream.close
    }]
  else [404, text, ["nothing here\n"]]
  end
}

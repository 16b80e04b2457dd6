# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# The application behind the static folder of the conformance tests. It answers which request reached it, so that a test
# sees when a request goes on to the application.

SPECIAL = {
  "/app-404" => [404, { "content-type" => "text/plain" }, ["the application's own"]],
  "/app-500" => [500, { "content-type" => "text/plain" }, ["the application's own"]]
}.freeze

run lambda { |env|
  raise "the application failed" if env["PATH_INFO"] == "/raise"

  status, fields, body = SPECIAL[env["PATH_INFO"]]
  next [status, fields.dup, body] if status

  query = env["QUERY_STRING"].empty? ? "" : "?#{env["QUERY_STRING"]}"
  input = env["rack.input"]&.read.to_s
  text = "app #{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}#{query} #{input}"
  [200, { "content-type" => "text/plain", "content-length" => text.bytesize.to_s }, [text]]
}

# frozen_string_literal: true

# Forms on both engines: the same parameters, and the same refusals at the limits of Rack's parser
# (node/lib/rondo/node/opal/shims/rack/multipart).
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/node_process"
require "support/raw_client"

class NodeMultipartTest < Minitest::Test
  APP = File.expand_path("forms.ru", __dir__)
  TYPE = "multipart/form-data; boundary=b"

  def self.part(fields, body) = "--b\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}\r\n"

  def self.named(name, body = "x") = part({ "Content-Disposition" => "form-data; name=\"#{name}\"" }, body)

  def self.file(name, body = "x", more = "") = part({ "Content-Disposition" => "form-data; name=\"#{name}\"; filename=\"f\"#{more}" }, body)

  LAST = "--b--\r\n"
  FORMS = {
    "one" => named("a", "1") + LAST, "file" => file("a") + LAST, "no file" => part({ "content-disposition" => "form-data; name=a; filename=\"\"" }, "") + LAST,
    "without a name" => part({ "Content-Type" => "text/x" }, "1") + LAST, "only the end" => LAST, "two ends" => LAST + named("a") + LAST,
    "by id" => part({ "Content-ID" => "c" }, "1") + LAST, "plain name" => part({ "Content-Disposition" => "form-data; name=a" }, "1") + LAST,
    "folded" => "--b\r\nContent-Disposition: form-data;\r\n name=\"a\"\r\n\r\n1\r\n#{LAST}", "preamble" => "before\r\n#{named("a")}#{LAST}",
    "empty" => named("a", "") + LAST, "almost a boundary" => named("a", "1\r\n--bx\r\n--b-") + LAST, "epilogue" => "#{named("a")}#{LAST}after",
    "escapes" => part({ "Content-Disposition" => "form-data; name=\"a\\\"\\\\b\"; filename=\"c:\\\\d\\e\\\"\"" }, "1") + LAST,
    "no end" => named("a"), "half a head" => "--b\r\nContent-Disposition: form-data; name=a", "no boundary" => "nothing",
    "a late boundary" => "#{"x" * 3_000_000}\r\n#{named("a")}#{LAST}", "a long head" => "--b\r\n#{"x: #{"y" * 3_000_000}"}\r\n\r\n1\r\n#{LAST}",
    "many parts" => (named("a") * 4095) + LAST, "too many parts" => (named("a") * 4096) + LAST,
    "many files" => (file("a") * 127) + LAST, "too many files" => (file("a") * 128) + LAST,
    "much text" => named("a", "x" * 16_777_000) + LAST, "too much text" => named("a", "x" * 16_777_300) + LAST,
    "many escapes" => (file("a", "x", "; d=\"#{"\\x" * 400}\"") * 25) + LAST,
    "a long disposition" => part({ "Content-Disposition" => "form-data; name=\"a\"; #{"x" * 1600}" }, "1") + LAST,
    "many parameters" => part({ "Content-Disposition" => "form-data#{"; x=1" * 16}; name=\"a\"" }, "1") + LAST
  }.freeze
  TYPES = {
    "a long boundary" => "multipart/form-data; boundary=#{"b" * 71}", "two boundaries" => "#{TYPE}; boundary=c",
    "a blank before the sign" => "multipart/form-data; boundary =b", "quotes" => "multipart/form-data; boundary=\"b\""
  }.freeze

  def self.servers
    @servers ||= begin
      started = [ServerProcess.new(APP), NodeProcess.new(APP)]
      Minitest.after_run { started.each(&:stop) }
      started
    end
  end

  FORMS.each { |name, form| define_method("test_#{name.tr(" ", "_")}") { same(TYPE, form) } }

  TYPES.each { |name, type| define_method("test_#{name.tr(" ", "_")}") { same(type, FORMS["one"]) } }

  # Millions of boundaries are cut no further than a limit.
  def test_very_many_boundaries
    assert_match(/MultipartTotalPartLimitError/, answer(self.class.servers.last, TYPE, "--b\r\n\r\n\r\n\r\n" * 1_500_000))
    assert_match(/EmptyContentError/, answer(self.class.servers.last, TYPE, "--b\r\n\r\n\r\n#{"\r\n--bx" * 1_500_000}"))
  end

  private

  def same(type, form)
    mri, node = self.class.servers.map { |server| answer(server, type, form) }
    assert_equal mri, node
  end

  def answer(server, type, form)
    RawClient.open(server.url) do |client|
      client.request("POST / HTTP/1.1\r\nhost: a\r\ncontent-type: #{type}\r\ncontent-length: #{form.bytesize}\r\n\r\n#{form}").body
    end
  end
end

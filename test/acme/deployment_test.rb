# frozen_string_literal: true

# What docs/DEPLOYMENT.md has instead of Thruster, as it stands there: certificates, redirects, files, compression,
# X-Sendfile.
# SPDX-License-Identifier: MIT

require "integration/tls/acme_case"
require "zlib"

class DeploymentTest < AcmeCase
  SECTION = File.read(File.join(ROOT, "docs/DEPLOYMENT.md"))[/^### Instead of Thruster\n.*?(?=^## )/m]
  BLOCKS = SECTION.scan(/^```ruby\n# (\S+)\n(.*?)^```/m).to_h
  APP = <<~RUBY
    require "rack"
    App = lambda do |env|
      case env["PATH_INFO"]
      when "/report" then [200, { "content-type" => "text/plain", "x-sendfile" => File.expand_path("storage/report.txt", __dir__) }, []]
      when "/events" then [200, { "content-type" => "text/event-stream" }, ["data: 1\\n\\n"]]
      when "/stream" then [200, { "content-type" => "text/plain" }, ->(out) { out.write("a stream") && out.close }]
      when "/picture" then [200, { "content-type" => "image/png" }, ["png" * 100]]
      else [200, { "content-type" => "text/html" }, ["<p>hello</p>" * 100]]
      end
    end
  RUBY

  def setup
    super
    BLOCKS.each { |name, text| write name, text }
    write "config.ru", APP + BLOCKS.fetch("config.ru")
    write "public/app.css", "body {}"
    Zlib::GzipWriter.open(File.join(@folder, "public/app.css.gz")) { |gz| gz.write("body {}") }
    write "storage/report.txt", "a report"
  end

  # @return [Array(String, String)] the coding, and the body without it
  def ask(path)
    head, body = fetch(NAME, path, "-i", "--compressed", "-H", "accept-encoding: gzip").out.split("\r\n\r\n", 2)
    [head[/^content-encoding: (\S+)/, 1], body]
  end

  def test_instead_of_thruster
    assert_equal %w[config/rondo.rb config.ru], BLOCKS.keys
    fetching(names: [])
    eventually("a certificate") { shown }
    assert_equal ["gzip", "<p>hello</p>" * 100], ask("/")
    assert_equal ["gzip", "body {}"], ask("/app.css")
    assert_equal [nil, "a report"], ask("/report")
    assert_equal [nil, "data: 1\n\n"], ask("/events")
    assert_equal [nil, "a stream"], ask("/stream")
    assert_equal [nil, "png" * 100], ask("/picture")
    assert_match(%r{\AHTTP/1\.1 308 .*^location: https://www\.example\.com/x\r}m, plain("/x", "-H", "host: www.example.com").out)
  end
end

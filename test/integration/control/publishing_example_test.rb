# frozen_string_literal: true

# The example: a page with a signed name hears from the command line and from a job, in workers too.
# SPDX-License-Identifier: MIT

require_relative "control_case"
require "cgi"
require "support/open_stream"

class PublishingExampleTest < ControlCase
  EXAMPLE = File.join(ROOT, "examples/publishing")

  def test_the_page_hears
    [[], %w[-w 2]].each do |words|
      server = start("-C", "#{EXAMPLE}/rondo.rb", "-S", "publishing.state", *words, "#{EXAMPLE}/config.ru", env: { "CONTROL" => "tcp://127.0.0.1:0" })
      server.wait_for_log(/Use Ctrl-C to stop/)
      name = get(server).body[/encodeURIComponent\("([^"]+)"\)/, 1]
      stream = OpenStream.new(server.port, "/events?channel=#{CGI.escape(name)}")
      eventually("it is subscribed") { rondo("publish", "jobs", "from the command line", "-S", "publishing.state").code.zero? && stream.heard?("from the command line") }
      job = run_command(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "#{EXAMPLE}/job.rb", "the report is ready",
                        env: { "TOKEN" => "publishing", "CONTROL" => "tcp://127.0.0.1:#{control_port(server)}" })
      assert_equal 0, job.code, job.err
      assert stream.hears?("the report is ready")
      server.stop
    ensure
      stream&.close
    end
  end
end

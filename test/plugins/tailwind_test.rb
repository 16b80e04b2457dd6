# frozen_string_literal: true

# The plugin of tailwindcss-rails, which starts Tailwind's own program to watch the files of an application.
# SPDX-License-Identifier: MIT

require_relative "plugin_case"

class TailwindTest < PluginCase
  def setup
    super
    lay_out "styles"
    write "config/puma.rb", "plugin :tailwindcss\n"
  end

  def css
    read("app/assets/builds/tailwind.css")
  rescue SystemCallError
    ""
  end

  # A rule that is written to the source is in the file for browsers soon.
  def assert_watched(rule)
    write "app/assets/tailwind/application.css", "@import \"tailwindcss\";\n.#{rule} { opacity: 0.5; }\n"
    eventually("the rule #{rule}") { css.include?(rule) }
  end

  def watchers(server)
    descendants(server.pid).select { |pid| title(pid).match?(/tailwindcss-i/) }
  end

  def check(server)
    assert_equal "styles", get(server).body
    eventually("the first file") { css.include?("tailwindcss") }
    assert_watched("first-rule")
    yield if block_given?
    pids = descendants(server.pid)
    server.stop
    wait_for_end_of(*pids)
  end

  def test_without_workers
    check(start("-w", "0"))
  end

  def test_with_workers
    server = cluster
    check(server) do
      after_signal(server, "USR1", /(phase: 1.*){2}/m)
      eventually("one watcher") { watchers(server).one? }
      assert_watched("second-rule")
    end
  end
end

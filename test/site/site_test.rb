# frozen_string_literal: true

# The site of `rake site` (tools/reference/site.rb): links lead somewhere, nothing comes from elsewhere, a browser finds
# things in it and shows it on a phone.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "tmpdir"
require "support/browser"

class SiteTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  PAGES = %w[index.html file.CONFIGURATION.html Rondo/Client.html].freeze

  # @return [String] its folder; building it takes seconds, so once
  def self.folder
    @folder ||= Dir.mktmpdir("rondo-site").tap do |folder|
      Minitest.after_run { FileUtils.rm_rf(folder) }
      output, status = Open3.capture2e(RbConfig.ruby, File.join(ROOT, "tools/build_site"), folder)
      raise "it is not built: #{output}" unless status.success? && output.empty?
    end
  end

  def test_it_has_a_page_for_each_guide_and_each_public_class
    guides = Dir.glob(%w[README.md docs/*.md docs/decisions/*.md], base: ROOT).map { |path| "file.#{File.basename(path, ".md")}.html" }
    assert_empty guides + %w[Rondo.html Rondo/Server.html Rondo/Configuration/Verbs.html _index.html search.js site.css] - files
    assert_empty files.grep(/Supervisor|Scoreboard|Launcher/), "pages of what is private"
    assert_includes text("Rondo/Configuration/Verbs.html"), "persistent_timeout"
  end

  # A link may leave the site; what the browser loads by itself may not.
  def test_it_loads_nothing_from_elsewhere
    loaded = files.grep(/html\z/).flat_map { |name| text(name).scan(/<(?:link|script|img|iframe|source)\b[^>]*?(?:href|src)="([^"]*)"/) }
    assert_operator loaded.size, :>, 100
    assert_empty loaded.flatten.uniq.grep(%r{\A(?:\w+:|//)})
    refute_match(/url\(|@import/, text("site.css"))
    refute_match(/\bfetch\(|\bimport\b|https?:/, text("search.js"))
  end

  def test_links_between_guides_are_links_between_pages
    readme = text("index.html")
    assert_includes readme, 'href="file.TLS.html"'
    assert_includes text("file.ARCHITECTURE.html"), 'href="file.0006-molds-and-orphans.html"'
    assert_empty files.grep(/html\z/).select { |name| text(name).match?(/href="(?!\w+:)[^"]*\.md["#]/) }
  end

  def test_the_browser_finds_a_method_a_setting_and_a_guide
    { "publish" => "Rondo.html#publish-class_method", "persistent_timeout" => "persistent_timeout-instance_method",
      "idle connections move" => "file.0022-idle-connections-move.html" }.each do |words, address|
      found = at("Rondo/Client.html") { |page| search(page, words) }
      assert(found.first(5).any? { |url| url.include?(address) }, "#{words}: #{found.first(5)}")
    end
    assert_empty at("index.html") { |page| search(page, "nosuchwordanywhere") }
  end

  def test_enter_goes_to_what_was_found_first
    at("Rondo.html") do |page| # so that it stays the same page
      search(page, "Rondo.run_every")
      page.run(%(document.getElementById("query").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }))))
      page.wait_for(%(location.hash === "#run_every-class_method" && document.getElementById("run_every-class_method")))
    end
  end

  def test_a_phone_needs_no_scrolling_to_the_side
    PAGES.each do |name|
      width = at(name) do |page|
        page.resize(360, 740)
        page.wait_for("innerWidth === 360")
        page.run("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
      end
      assert_operator width, :<=, 360, name
    end
  end

  def test_it_is_light_and_dark
    colours = %w[light dark].map do |scheme|
      at("index.html") do |page|
        page.prefer(scheme)
        page.run("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
      end
    end
    assert_equal 4, colours.flatten.uniq.size
  end

  private

  def files
    @files ||= Dir.glob("**/*", base: self.class.folder)
  end

  def text(name)
    File.read(File.join(self.class.folder, name))
  end

  def at(name)
    page = Chromium.shared.open("file://#{self.class.folder}/#{name}")
    result = yield page
    assert_empty page.errors
    result
  ensure
    page&.close
  end

  def search(page, words)
    page.run("{ const query = document.getElementById('query'); query.value = #{words.to_json}; query.dispatchEvent(new Event('input')) }")
    page.run("[...document.querySelectorAll('#found a')].map((link) => link.href)")
  end
end

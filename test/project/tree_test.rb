# frozen_string_literal: true

# What holds for the files of the tree: how they begin, which links lead somewhere, that generated
# sources are what their generators write, that version, lock and changelog agree.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rondo/version"

class TreeTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  SOURCES = %w[
    ext/rondo/**/*.{c,h} lib/**/*.rb test/**/*.{rb,c,h} bench/**/*.{rb,c} bin/* tools/**/*
  ].freeze

  def test_sources_name_their_licence
    sources = files(*SOURCES).grep_v(%r{\Abench/(?:\.build|scenarios|apps)/|\Atest/corpus/})
    without = sources.reject { |path| text(path)[0, 1500].include?("SPDX-License-Identifier: MIT") }
    assert_empty without
  end

  def test_ruby_sources_freeze_their_strings
    sources = files("lib/**/*.rb", "test/**/*.rb", "bench/**/*.rb", "examples/**/*.ru")
    without = sources.reject { |path| text(path)[0, 200].include?("# frozen_string_literal: true") }
    assert_empty without
  end

  def test_headers_are_guarded_by_their_path
    files("ext/rondo/**/*.h").each do |path|
      next unless text(path) =~ /^#ifndef (\w+)$/

      guard = Regexp.last_match(1)
      assert_includes text(path), "#define #{guard}", path
    end
  end

  def test_generated_sources_are_up_to_date
    files("tools/gen_*", "tools/draw_pictures").each do |generator|
      output, status = Open3.capture2e(File.join(ROOT, generator), "--check")
      assert status.success?, "#{generator} --check: #{output}\nrun: rake generate"
    end
  end

  def test_links_between_the_pages_lead_somewhere
    broken = files("*.md", "docs/**/*.md", "bench/*.md", "examples/*.md").flat_map do |page|
      text(page).scan(/\]\(([^)#\s]+)(?:#[^)]*)?\)/).flatten
                .grep_v(/\A(?:https?|mailto):/)
                .reject { |link| File.exist?(File.join(ROOT, File.dirname(page), link)) }
                .map { |link| "#{page}: #{link}" }
    end
    assert_empty broken
  end

  def test_version_lock_and_changelog_agree
    assert_includes text("Gemfile.lock"), "rondo (#{Rondo::VERSION})"
    assert_match(/^## \[Unreleased\]$/, text("CHANGELOG.md"))
  end

  def test_files_that_contributing_names_exist
    named = text("CONTRIBUTING.md").scan(%r{`([\w.-]+(?:/[\w.-]+)+)`}).flatten
    assert_empty(named.reject { |path| exists_somewhere?(path) })
  end

  # By its path, or by its end: `server/server.c`, `rb_pool.c`. Files of config/ are an application's.
  def test_sources_that_the_pages_name_exist
    sources = files("*", "{bench,bin,examples,exe,ext,lib,test,tools}/**/*").map { |path| "/#{path}" }
    broken = files("*.md", "docs/**/*.md", "bench/results/README.md").flat_map do |page|
      names = text(page).scan(%r{`([\w.-]+(?:/[\w.-]+)*\.(?:c|h|rb|def|ru))`}).flatten.uniq
      names.grep_v(%r{\Aconfig/}).reject { |name| sources.any? { |path| path.end_with?("/#{name}") } }
           .map { |name| "#{page}: #{name}" }
    end
    assert_empty broken
  end

  # `rd_hub_take()`, `WORKER_HOOKS`, `boot`: words of some source.
  def test_names_that_the_guides_use_exist
    sources = files("{bin,exe,ext,lib,test,tools,bench}/**/*", "Rakefile").grep_v(/corpus|results/)
    words = sources.flat_map { |path| text(path).scrub.scan(/\w+/).uniq }.to_h { |word| [word, true] }
    broken = %w[CONTRIBUTING.md docs/ARCHITECTURE.md].flat_map do |page|
      names = text(page).scan(/`(\w+)(?:\(\))?`/).flatten.uniq
      names.reject { |name| words[name] }.map { |name| "#{page}: #{name}" }
    end
    assert_empty broken
  end

  private

  def files(*patterns)
    Dir.glob(patterns, base: ROOT).select { |path| File.file?(File.join(ROOT, path)) }
  end

  def text(path)
    File.binread(File.join(ROOT, path)).force_encoding(Encoding::UTF_8)
  end

  def exists_somewhere?(path)
    File.exist?(File.join(ROOT, path)) || File.exist?(File.join(ROOT, "ext", "rondo", path))
  end
end

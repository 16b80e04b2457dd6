# frozen_string_literal: true

# Rules for the files of the tree: how they begin, that links lead somewhere, that generated sources are what their
# generators write, that version, lock file and changelog agree.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rondo/version"

class TreeTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  SOURCES = %w[
    ext/rondo/**/*.{c,h} gems/**/*.rb lib/**/*.rb node/lib/**/*.{rb,js} test/**/*.{rb,c,h} bench/**/*.{rb,c} bin/* tools/**/*
  ].freeze

  def test_sources_name_their_licence
    sources = files(*SOURCES).grep_v(%r{\Abench/(?:\.build|scenarios|apps)/|\Atest/corpus/})
    without = sources.reject { |path| text(path)[0, 1500].include?("SPDX-License-Identifier: MIT") }
    assert_empty without
  end

  def test_ruby_sources_freeze_their_strings
    sources = files("gems/**/*.rb", "lib/**/*.rb", "node/lib/**/*.rb", "test/**/*.rb", "bench/**/*.rb", "examples/**/*.ru")
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
    broken = files("*.md", "docs/**/*.md", "gems/**/*.md", "node/*.md", "bench/**/*.md", "examples/*.md", "test/*.md").flat_map do |page|
      text(page).scan(/\]\(([^)#\s]+)(?:#[^)]*)?\)/).flatten
                .grep_v(/\A(?:https?|mailto):/)
                .reject { |link| File.exist?(File.join(ROOT, File.dirname(page), link)) }
                .map { |link| "#{page}: #{link}" }
    end
    assert_empty broken
  end

  def test_every_table_of_results_is_in_their_list
    list = text("bench/results/README.md")
    tables = files("bench/results/*.md").map { |path| File.basename(path) } - ["README.md"]
    assert_empty tables.reject { |name| list.include?("](#{name})") }
  end

  # A published gem has nothing but its own files.
  def test_links_of_a_gem_stay_in_it
    assert_empty files("gems/**/*.md", "node/*.md").select { |page| text(page).include?("](..") }
  end

  def test_every_suite_has_its_row
    rows = text("test/README.md").scan(/^\| `(\w+)` \|/).flatten
    assert_equal Dir.children(File.join(ROOT, "test")).grep_v(/\.|support/).sort, rows.sort
  end

  def test_every_target_has_a_corpus_and_every_corpus_a_target
    sources = files("test/fuzz/*.c").select { |path| text(path).include?("LLVMFuzzerTestOneInput") } - ["test/fuzz/replay_main.c"]
    assert_equal sources.map { |path| File.basename(path, ".c") }.sort, Dir.children(File.join(ROOT, "test/corpus")).sort
  end

  def test_version_lock_and_changelog_agree
    assert_includes text("Gemfile.lock"), "rondo (#{Rondo::VERSION})"
    assert_match(/^## \[Unreleased\]$/, text("CHANGELOG.md"))
  end

  private

  def files(*patterns)
    Dir.glob(patterns, base: ROOT).select { |path| File.file?(File.join(ROOT, path)) }
  end

  def text(path)
    File.binread(File.join(ROOT, path)).force_encoding(Encoding::UTF_8)
  end
end

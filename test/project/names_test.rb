# frozen_string_literal: true

# The pages name only things that exist, in the place that they name: files and folders, functions, types, constants,
# methods, settings. So do the heads of the C tests. A page must not describe how the code was before a change.
# SPDX-License-Identifier: MIT

require "test_helper"

class NamesTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  PAGES = Dir.glob(["*.md", "docs/**/*.md", "test/*.md", "examples/*.md", "bench/results/README.md"], base: ROOT).sort -
          ["CHANGELOG.md"]
  # Pages about the sources. The other pages also describe what an application sees.
  GUIDES = %w[CONTRIBUTING.md docs/ARCHITECTURE.md docs/STYLE.md test/README.md].freeze

  # Names of other projects: systems, gems, servers, applications.
  FOREIGN = %w[
    ASCII-8BIT CurrentAttributes RAILS_SERVE_STATIC_FILES SO_ATTACH_REUSEPORT_CBPF SO_ATTACH_REUSEPORT_EBPF
    TypedData app-0a1b2c3d.css app.0a1b2c3d.chunk.js GC.stress cachestat(2) clone(CLONE_PARENT) close_range(2)
    config.action_dispatch.x_sendfile_header mincore(2) net.ipv4.tcp_migrate_req Rack::Static readahead(2) rsync
    /srv/reports2 statx(2) vfork GENEROUS FIO_FORCE_MALLOC FIO_LOG_LENGTH_LIMIT jemalloc
    worker_pool_size allowed_request_origins recordDisconnect OTEL_RESOURCE_ATTRIBUTES
  ].freeze
  # Parts of names in the rules of STYLE.
  PARTS = %w[rd_noun_verb() _t _new _free _init _clear _ref _unref _open _close is_ has_ worker_].freeze

  def test_files_exist
    assert_empty(missing(PAGES + ["CHANGELOG.md"]) { |span| span.match?(%r{\A[\w.*/-]+\.(?:c|h|rb|def|ru|md|svg)\z}) && !path?(span) })
  end

  def test_folders_and_programs_of_the_guides_exist
    folders = %r{\A(?:(?:bench|bin|docs|examples|exe|ext|lib|test|tools)/[\w./*-]+|[\w/]+/)\z}
    assert_empty(missing(GUIDES) { |span| span.match?(folders) && !span.start_with?("build/") && !path?(span.chomp("/")) })
  end

  # `rd_hub_receive()`, `Supervisor#settle`, `conn->input`, `max_body`, `Rondo::Server::Core`
  def test_names_exist
    names = missing(PAGES) do |span|
      span.match?(/\A[\w:#.>()?!*-]+\z/) && !span.scan(/[A-Za-z_]\w+\*?|\*\w+/).all? { |word| word?(word) } && !path?(span)
    end
    assert_empty names
  end

  def test_functions_of_the_guides_are_defined
    functions = missing(GUIDES) do |span|
      name = span[/(\w+)\(\)\z/, 1]
      name && !tree.functions.key?(name)
    end
    assert_empty functions
  end

  def test_types_and_constants_of_the_core_are_in_its_code
    names = missing(PAGES) do |span|
      span.scan(/\b(?:rd|RD)_\w+(?![\w*])/).any? { |name| !PARTS.include?("#{name}()") && !tree.code_words.key?(name) }
    end
    assert_empty names
  end

  def test_methods_of_the_guides_are_defined_in_their_class
    methods = missing(GUIDES) do |span|
      type, method = span.match(/\A(?:\w+::)*(\w+)[#.](\w+[?!]?)\z/)&.captures
      type&.match?(/\A[A-Z]/) && tree.sources.none? do |path, text|
        path.end_with?(".rb") && text.match?(/(?:class|module) (?:\w+::)*#{type}\b/) &&
          text.match?(/def (?:self\.)?#{Regexp.escape(method)}(?!\w)/)
      end
    end
    assert_empty methods
  end

  # Rows of the scoreboard make metrics; MONITORING's table is generated from them.
  def test_metrics_that_other_pages_name_exist
    known = text("docs/MONITORING.md").scan(/^\| `(rondo_\w+)`/).flatten
    assert_operator known.size, :>, 20
    assert_empty(missing(PAGES) { |span| span.match?(/\Arondo_\w+_(?:total|seconds|bytes)\z/) && !known.include?(span) })
  end

  # `may_call_early()` in `ext/rondo/protocol/http1_body.c`, `rd_protocols` (`protocol/request_protocols.c`)
  def test_names_are_in_the_file_that_the_pages_say
    places = PAGES.flat_map do |page|
      text(page).scan(/`([^`\n]+)`\s(?:in\s|\()`([\w.\/-]+\.(?:c|h|rb|def))`/).map { |place| [page, *place] }
    end
    assert_operator places.size, :>, 40
    assert_empty(places.reject { |_, name, file| in_file?(name, file) })
  end

  # A file by its name alone is in the folder of the last path before it in its row.
  def test_files_of_the_table_of_changes_are_where_they_seem_to_be
    rows = text("CONTRIBUTING.md").scan(/^\| (.*) \|$/).flatten
    assert_operator rows.size, :>, 60
    assert_empty(rows.flat_map { |row| strays(row).map { |file| "#{row[/\A[^|]*/]}: #{file}" } })
  end

  def test_each_room_of_the_shell_has_its_row
    rooms = Dir.glob("lib/rondo/*/", base: ROOT).map { |path| File.basename(path) }
    section = text("docs/ARCHITECTURE.md")[/^## The rooms of the shell\n(.*?)^## /m, 1]
    assert_equal rooms.sort, section.scan(/^\| `(\w+)` \|/).flatten.sort
  end

  # The head of a C test begins with its file, or names the files of its subject.
  def test_heads_of_the_c_tests_name_their_files
    heads = Dir.glob("test/core/*/test_*.c", base: ROOT).to_h { |path| [path, text(path)[%r{\A.*?\*/}m]] }
    assert_operator heads.size, :>, 80
    wrong = heads.select { |_, head| head[%r{^ \* (\w+/\w+):}, 1]&.then { |file| !core?(file) } }
    assert_empty wrong.keys
    without = heads.reject do |path, head|
      core?(path.delete_prefix("test/core/").sub("test_", "").delete_suffix(".c")) ||
        [*head.scan(%r{\b([\w/]+)\.[ch]\b}), *head.scan(%r{^ \* (\w+/\w+):})].flatten.any? { |file| core?("**/#{file}") }
    end
    assert_empty without.keys
  end

  private

  def in_file?(name, file)
    words = name.scan(/[A-Za-z_]\w*/)
    tree.sources.any? do |path, text|
      File.fnmatch("**/#{file}", "/#{path}") && words.all? { |word| path.include?(word) || text.match?(/\b#{word}\b/) }
    end
  end

  def strays(row)
    folder = nil
    row.scan(/`([\w.\/-]+\.(?:c|h|rb|def))`/).flatten.reject do |file|
      folder = File.dirname(file) if file.include?("/")
      file.include?("/") ? path?(file) : folder && tree.paths.include?("/#{folder}/#{file}")
    end
  end

  # @param file [String] "loop/timer", without an ending
  def core?(file)
    Dir.glob("ext/rondo/#{file}.[ch]", base: ROOT).any?
  end

  # @return [Array<String>] "page: span" for each code span of these pages for which the block is true
  def missing(pages, &block)
    pages.select { |page| File.file?(File.join(ROOT, page)) }.flat_map do |page|
      spans = own(page).gsub(/^ *```.*?^ *```/m, "").scan(/`([^`\n]+)`/).flatten.uniq - FOREIGN - PARTS
      spans.select(&block).map { |span| "#{page}: #{span}" }
    end
  end

  # The left columns of MOVING are of other servers (moving_test.rb has the right ones).
  def own(page)
    page == "docs/MOVING.md" ? text(page).gsub(/^\| (?:[^|\\]|\\.)*\|/, "") : text(page)
  end

  # Finds a file by its path or the end of its path. Files of config/ belong to an application.
  def path?(span)
    span.start_with?("config/") || tree.paths.any? { |path| File.fnmatch("**/#{span}", path) }
  end

  def word?(word)
    return tree.words.any? { |other, _| File.fnmatch(word, other) } if word.include?("*")

    tree.words.key?(word) || tree.words.key?(word.delete_prefix("rondo_").delete_suffix("_total"))
  end

  def tree
    TREE
  end

  def text(path)
    Tree.text(path)
  end

  # The text of all files, read when it is first needed.
  class Tree
    FOLDERS = "{bench,bin,examples,exe,ext,gems,lib,node/lib,test,tools}/**/*"
    LEFT_OUT = %r{\Atest/corpus/|\Abench/(?:results|\.build)/|\.(?:so|bundle|mark|md)\z|\Atest/project/names_test\.rb\z}

    def self.text(path)
      File.binread(File.join(ROOT, path)).force_encoding(Encoding::UTF_8)
    end

    def paths
      @paths ||= Dir.glob("**/*", base: ROOT).grep_v(%r{\A(?:build|doc|pkg|tmp)/}).map { |path| "/#{path}" }
    end

    def sources
      @sources ||= Dir.glob([FOLDERS, "Rakefile"], base: ROOT).grep_v(LEFT_OUT)
                      .select { |path| File.file?(File.join(ROOT, path)) }
                      .to_h { |path| [path, Tree.text(path).scrub] }
    end

    def words
      @words ||= sources.values.flat_map { |text| text.scan(/\w+/).uniq }.to_h { |word| [word, true] }
    end

    # What is called, defined, or a member.
    def functions
      @functions ||= code.scan(/\b\w+(?=\s*\(|\)\()|\bdef (?:self\.)?\K\w+|->\K\w+/).to_h { |name| [name, true] }
    end

    def code_words
      @code_words ||= code.scan(/\b(?:rd|RD)_\w+/).to_h { |word| [word, true] }
    end

    private

    # The text without C comments.
    def code
      @code ||= sources.values.join("\n").gsub(%r{/\*.*?\*/}m, "")
    end
  end

  TREE = Tree.new
end

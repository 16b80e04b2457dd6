# frozen_string_literal: true

# bin/setup, tools/compile and bin/test, in the parts that install nothing.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

class SetupTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)

  def test_setup_has_nothing_to_do_a_second_time
    run_program("bin/setup")
    output, status = run_program("bin/setup")
    assert status.success?
    assert_equal "setup: nothing is missing\n", output
  end

  def test_setup_names_an_unknown_option
    output, status = run_program("bin/setup", "--fast")
    assert_equal 2, status.exitstatus
    assert_includes output, "unknown option --fast"
  end

  def test_a_second_compile_touches_nothing
    run_program("tools/compile")
    before = File.mtime(extension)
    output, status = run_program("tools/compile")
    assert status.success?
    assert_empty output
    assert_equal before, File.mtime(extension)
  end

  # What is configured in build/ names the tree by its path, and the copy has it, too.
  def test_a_copied_tree_compiles_its_own_sources
    Dir.mktmpdir do |folder|
      one, two = %w[one two].map { |name| File.join(folder, name) }
      copy_compile(one)
      File.write(File.join(one, "ext/rondo/extconf.rb"), "require 'mkmf'\ncreate_makefile('rondo')\n")
      assert_equal "one", compiled(one)
      FileUtils.cp_r(one, two, preserve: true)
      assert_equal "two", compiled(two)
    end
  end

  def test_the_first_build_says_how_far_it_is
    Dir.mktmpdir do |folder|
      copy_compile(folder)
      File.write(File.join(folder, "ext/rondo/extconf.rb"), "require 'mkmf'\ncreate_makefile('rondo')\n")
      File.write(File.join(folder, "ext/rondo/rondo.c"), "void Init_rondo(void); void Init_rondo(void) {}\n")
      output, status = compile(folder)
      assert status.success?, output
      assert_equal ["building the extension", "checking the compiler, Ruby's headers, zlib, OpenSSL and libnghttp2",
                    "1 of 1 files", "linking; the linker optimises across all files, which takes a while"],
                   output.lines(chomp: true).map { |line| line.delete_prefix("compile: ") }
    end
  end

  HEADERS = %w[zlib.h openssl/ssl.h nghttp2/nghttp2.h].freeze
  private_constant :HEADERS

  # Compilers find these first, and each of them fails.
  def test_all_headers_that_are_missing_are_named_at_once
    Dir.mktmpdir do |folder|
      copy_compile(folder)
      FileUtils.cp(File.join(ROOT, "ext/rondo/extconf.rb"), File.join(folder, "ext/rondo"))
      HEADERS.each do |header|
        FileUtils.mkdir_p(File.dirname(File.join(folder, "headers", header)))
        File.write(File.join(folder, "headers", header), "#error missing\n")
      end
      output, status = compile(folder, "CPATH" => File.join(folder, "headers"))
      assert_equal 1, status.exitstatus
      assert_equal %w[zlib OpenSSL libnghttp2], output.scan(/^(\w+)(?: \S+ or newer)? is missing: install /).flatten
      packages = /zlib1g-dev libssl-dev libnghttp2-dev$/
      assert_match(/^Here this installs what is missing: apt-get install #{packages}/, output)
      refute_match(/checking for |Provided configuration options/, output)
    end
  end

  def test_a_clone_in_a_gemfile_says_what_to_do
    Dir.mktmpdir do |folder|
      clone = File.join(folder, "rondo")
      FileUtils.mkdir_p([clone, File.join(clone, "tools")])
      %w[lib exe rondo.gemspec].each { |name| FileUtils.cp_r(File.join(ROOT, name), clone) }
      FileUtils.rm(Dir[File.join(clone, "lib/rondo/rondo.{so,bundle}")])
      FileUtils.cp(File.join(ROOT, "tools/compile"), File.join(clone, "tools"))
      File.write(File.join(folder, "Gemfile"), "gem \"rondo\", path: \"rondo\"\n")
      output = Bundler.with_unbundled_env { bundled(folder) }
      assert_equal "rondo: the extension of Rondo is not compiled for Ruby #{RUBY_VERSION}, because Bundler compiles no " \
                   "gem of path:; compile it first: #{clone}/tools/compile\n", output.lines.last
    end
  end

  def test_without_the_extension_one_line_says_what_to_do
    Dir.mktmpdir do |folder|
      %w[lib exe].each { |name| FileUtils.cp_r(File.join(ROOT, name), folder) }
      FileUtils.rm(Dir[File.join(folder, "lib/rondo/rondo.{so,bundle}")])
      output, status = Open3.capture2e(RbConfig.ruby, "-I#{folder}/lib", "#{folder}/exe/rondo")
      assert_equal 1, status.exitstatus
      assert_match(/\Arondo: the extension of Rondo is not compiled .*: gem pristine rondo\n\z/, output)
      FileUtils.mkdir(File.join(folder, "tools"))
      FileUtils.touch(File.join(folder, "tools/compile"))
      output, = Open3.capture2e(RbConfig.ruby, "-I#{folder}/lib", "-e", "require 'rondo'")
      assert_includes output, "compile it first: #{folder}/tools/compile (Rondo::NotCompiled)\n"
      assert_operator output.lines.size, :<, 3, output
    end
  end

  def test_the_core_has_no_ruby_in_it
    sources = Dir[File.join(ROOT, "ext/rondo/*/*.c")].select { |path| core_folder?(File.basename(File.dirname(path))) }
    objects = sources.flat_map { |path| Dir[File.join(ROOT, "build/ext/*", "#{File.basename(path, ".c")}.o")] }
    assert_operator objects.size, :>=, sources.size
    symbols, status = Open3.capture2("nm", "--undefined-only", *objects)
    assert status.success?
    assert_empty symbols.scan(/ U (rb_\w+|ruby_\w+)/).flatten.uniq
  end

  def test_the_extension_shows_only_its_entry
    symbols, = Open3.capture2("nm", "--dynamic", "--defined-only", "--extern-only", extension)
    assert_equal ["Init_rondo"], symbols.scan(/ T (\w+)/).flatten
  end

  def test_the_stages_of_the_whole_run_have_names
    output, status = run_program("bin/test", "--list")
    assert status.success?
    assert_includes output.lines(chomp: true), "unit"
  end

  private

  BINDING = %w[ruby fibers binding rack app threads].freeze
  private_constant :BINDING

  def core_folder?(name)
    !BINDING.include?(name)
  end

  def extension
    Dir[File.join(ROOT, "lib/rondo/rondo.{so,bundle}")].fetch(0)
  end

  # @return [String] what the extension of that tree says, whose source says the name of the tree
  def compiled(tree)
    File.write(File.join(tree, "ext/rondo/rondo.c"), <<~C)
      #include <ruby.h>
      void Init_rondo(void) { rb_define_global_const("SAYS", rb_str_new_cstr("#{File.basename(tree)}")); }
    C
    output, status = compile(tree)
    assert status.success?, output
    Open3.capture2e(RbConfig.ruby, "-I#{tree}/lib/rondo", "-e", "require 'rondo'; print SAYS").first
  end

  def copy_compile(folder)
    FileUtils.mkdir_p(%w[tools ext/rondo].map { |name| File.join(folder, name) })
    FileUtils.cp(File.join(ROOT, "tools/compile"), File.join(folder, "tools"))
  end

  def compile(tree, environment = {})
    Open3.capture2e({ "RONDO_SANITIZE" => nil, "RONDO_DEBUG" => nil, **environment }, File.join(tree, "tools/compile"))
  end

  # The gems of Ruby's own folders are enough: rack.
  def bundled(folder)
    environment = { "BUNDLE_GEMFILE" => File.join(folder, "Gemfile"), "RUBYLIB" => nil }
    installed, status = Open3.capture2e(environment, "bundle", "install", "--local", chdir: folder)
    assert status.success?, installed
    Open3.capture2e(environment, "bundle", "exec", "rondo", chdir: folder).first
  end

  def run_program(path, *arguments)
    Open3.capture2e(File.join(ROOT, path), *arguments)
  end
end

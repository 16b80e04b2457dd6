# frozen_string_literal: true

# tools/check_layers: the tree keeps the law, and the check notices who breaks it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

class LayersTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)

  def test_the_tree_keeps_the_law
    assert_equal ["", true], check(ROOT)
  end

  def test_an_include_from_the_left_and_from_the_own_folder_is_fine
    assert_equal ["", true], check_source("http/one.c", <<~C)
      #include "http/one.h"
      #include "base/slice.h"
      #include <stdint.h>
    C
  end

  def test_an_include_from_the_right_is_a_breach
    output, fine = check_source("base/one.c", "\n#include \"loop/timer.h\"\n")
    refute fine
    assert_match(%r{ext/rondo/base/one\.c:2: .*base/ may not know loop/}, output)
  end

  def test_ruby_is_a_breach_outside_of_its_folder
    ["<ruby.h>", "<ruby/thread.h>", "\"ruby/rb_gvl.h\""].each do |header|
      output, fine = check_source("server/one.c", "#include #{header}\n")
      refute fine, header
      assert_includes output, "ext/rondo/server/one.c:1:"
    end
    assert_equal ["", true], check_source("ruby/rb_one.c", "#include <ruby.h>\n#include <ruby/thread.h>\n")
  end

  def test_an_include_without_a_folder_is_a_breach
    refute check_source("base/one.c", "#include \"one.h\"\n").last
  end

  def test_a_folder_without_a_place_is_a_breach
    refute check_source("more/one.c", "").last
  end

  def test_two_sources_of_one_name_are_a_breach
    Dir.mktmpdir do |root|
      %w[base loop].each { |folder| write(root, "#{folder}/one.c", "") }
      output, fine = check(root)
      refute fine
      assert_includes output, "one.c: in more than one folder (base, loop)"
    end
  end

  private

  def check(root)
    output, status = Open3.capture2e(File.join(ROOT, "tools", "check_layers"), root)
    [output, status.success?]
  end

  def check_source(path, text)
    Dir.mktmpdir do |root|
      write(root, path, text)
      check(root)
    end
  end

  def write(root, path, text)
    file = File.join(root, "ext", "rondo", path)
    FileUtils.mkdir_p(File.dirname(file))
    File.write(file, text)
  end
end

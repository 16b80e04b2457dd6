# frozen_string_literal: true

# tools/check_structs: structs of the core are small, and the check counts members as a reader does.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

class StructsTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)

  def test_the_tree_keeps_the_limit
    assert_equal ["", true], check
  end

  def test_what_counts_as_a_member
    output, fine = check_source(<<~C)
      typedef struct rd_one {
          uint64_t a, b; /* c; d, e */
          char *names[4], byte;
          unsigned wide : 3, narrow : 1;
          int (*call)(int first, void (*then)(int a, int b));
          struct {
              int inner, more;
          };
          union {
              int as_number;
              char as_text[8];
          } named;
      #define X(name, value) int name;
      #include "base/one.def"
      #undef X
      } rd_one;

      struct rd_two {
          int one;
      };
    C
    assert fine
    assert_equal "13 rd_one ext/rondo/base/one.h:1\n1 rd_two ext/rondo/base/one.h:18\n", output
  end

  def test_a_struct_beyond_the_limit_is_a_breach
    members = (1..31).map { |number| "    int m#{number};\n" }.join
    output, fine = check_source("\nstruct rd_big {\n#{members}};\n")
    refute fine
    assert_includes output, "ext/rondo/base/one.h:2: rd_big has 31 members, 30 at most"
    assert check_source("struct rd_big {\n#{members.sub("    int m9;\n", "")}};\n").last
  end

  private

  def check(*arguments)
    output, status = Open3.capture2e({ "RUBYOPT" => "--disable-gems" }, File.join(ROOT, "tools", "check_structs"), *arguments)
    [output, status.success?]
  end

  def check_source(text)
    Dir.mktmpdir do |root|
      FileUtils.mkdir_p(File.join(root, "ext/rondo/base"))
      File.write(File.join(root, "ext/rondo/base/one.h"), text)
      check("--sizes", root)
    end
  end
end

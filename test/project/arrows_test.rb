# frozen_string_literal: true

# tools/check_arrows finds calls that run in a circle inside a folder, and reports no other calls.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

class ArrowsTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)

  def test_calls_that_go_one_way_are_fine
    assert_equal ["", true], check(
      "loop/low.c" => "int rd_low(void) {\n    return 1;\n}\n",
      "loop/high.c" => "int rd_high(void) {\n    return rd_low();\n}\n"
    )
  end

  def test_a_circle_is_a_breach_with_its_functions
    output, fine = check(
      "loop/one.c" => "int rd_one(int left) {\n    return left > 0 ? rd_two(left - 1) : 0;\n}\n",
      "loop/two.c" => "static int step(int left) {\n    return rd_three(left) + rd_three(left);\n}\n\n" \
                      "int rd_two(\n    int left) {\n    return step(left);\n}\n",
      "loop/three.c" => "rd_number rd_three(int left) {\n    return rd_one(left);\n}\n",
      "loop/apart.c" => "int rd_apart(void) {\n    return rd_one(3);\n}\n"
    )
    refute fine
    assert_match(%r{\Aloop/: a circle of 3: }, output)
    assert_equal 1, output.scan(/^  \w+ -> \w+$/).size, output
    assert_match(/^    loop\/(one\.c: rd_one uses rd_two|two\.c: step uses rd_three|three\.c: rd_three uses rd_one)$/, output)
    refute_includes output, "apart"
  end

  def test_objects_and_inline_functions_count_for_the_file_that_has_them
    output, fine = check(
      "http/table.c" => "const rd_ops rd_table = {\n    .call = rd_call,\n};\n",
      "http/call.c" => "int rd_other(void) {\n    return 0;\n}\n\nint rd_call(void) {\n    return rd_inline();\n}\n",
      "http/inline.h" => "extern const rd_ops rd_table;\n\nstatic inline int rd_inline(void) {\n    return rd_table.size;\n}\n"
    )
    refute fine
    assert_includes output, "http/: a circle of 3"
  end

  def test_a_header_and_its_source_are_one_file
    output, fine = check(
      "http/a.h" => "int rd_a(void);\n\nstatic inline int rd_quick_a(void) {\n    return 0;\n}\n",
      "http/a.c" => "int rd_a(void) {\n    return rd_b();\n}\n",
      "http/b.c" => "int rd_b(void) {\n    return rd_quick_a();\n}\n"
    )
    refute fine
    assert_includes output, "http/: a circle of 2: "
  end

  def test_what_only_looks_like_an_arrow_is_none
    assert_equal ["", true], check(
      "http/a.h" => "int rd_a(void);\nint rd_shared(\n    int a,\n    int b);\nextern const int rd_b_table[];\n",
      "http/a.c" => <<~C,
        /* rd_b() comes after this. */
        static int local;

        int rd_a(void) {
            puts("rd_b()"); // rd_b()
            return it->rd_b + it.rd_b + '"' + local;
        }
      C
      "http/b.c" => "static int local(void) {\n    return 0;\n}\n\nint rd_b(void) {\n    return rd_a();\n}\n\n" \
                    "const int rd_b_table[] = {1};\n",
      "files/c.c" => "int rd_c(void) {\n    return rd_a();\n}\n"
    )
  end

  def test_no_call_runs_to_a_later_folder
    files = { "loop/a.h" => "int rd_b(void);\n", "http/b.c" => "int rd_b(void) {\n    return 0;\n}\n",
              "loop/a.c" => "int rd_a(void) {\n    return rd_b() + rd_b();\n}\n" }
    assert_equal ["loop/a.c: rd_a uses rd_b of http/, a later folder\n", false], check(files)
    assert_equal ["", true], check(files.merge("loop/b.c" => "int rd_b(void) {\n    return 1;\n}\n"))
  end

  # In the order of a folder, each file comes after the files that it calls.
  def test_the_order_begins_with_the_lowest
    output, fine = check({ "loop/a.c" => "int rd_a(void) {\n    return rd_z();\n}\n",
                           "loop/z.c" => "int rd_z(void) {\n    return 0;\n}\n" }, "--order")
    assert fine
    assert_equal "loop: z a\n", output
  end

  private

  def check(files, *options)
    Dir.mktmpdir do |root|
      files.each do |path, text|
        file = File.join(root, "ext", "rondo", path)
        FileUtils.mkdir_p(File.dirname(file))
        File.write(file, text)
      end
      output, status = Open3.capture2e({ "RUBYOPT" => "--disable-gems" }, File.join(ROOT, "tools", "check_arrows"), *options, root)
      [output, status.success?]
    end
  end
end

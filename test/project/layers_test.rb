# frozen_string_literal: true

# tools/check_layers: the tree keeps the law, and the check finds files that break it.
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

  def test_the_table_is_all_that_is_known_of_protocols
    %w[server control ruby app].each do |layer|
      ["protocol/http1.h", "endpoint/sse.h"].each do |header|
        output, fine = check_source("#{layer}/rb_one.c", "#include \"#{header}\"\n")
        refute fine
        assert_includes output, "#{layer}/ may not know #{header}"
      end
      assert_equal ["", true], check_source("#{layer}/rb_one.c", "#include \"protocol/protocols.h\"\n")
    end
    assert_equal ["", true], check_source("protocol/one.c", "#include \"endpoint/sse.h\"\n")
  end

  def test_the_binding_knows_addresses_and_files_of_transports
    assert_equal ["", true], check_source("ruby/rb_one.c", %(#include "transport/address.h"\n#include "transport/file.h"\n))
    refute check_source("ruby/rb_one.c", %(#include "transport/conn.h"\n)).last
    assert_equal ["", true], check_source("server/one.c", %(#include "transport/conn.h"\n))
  end

  def test_what_a_connection_is_made_of_is_asked_below
    ["if (conn->protocol == &x) return;", "n = request->conn->transport->scheme;", "rd_http1_of(conn)->served++;"].each do |line|
      %w[server control ruby app].each do |layer|
        output, fine = check_source("#{layer}/rb_one.c", "\n#{line}\n")
        refute fine, line
        assert_includes output, "asks what a connection is made of"
      end
      assert_equal ["", true], check_source("protocol/one.c", "\n#{line}\n")
    end
    assert_equal ["", true], check_source("server/one.c", "\nlistener->transport = transport; /* as conn->protocol */\n")
  end

  def test_ruby_is_a_breach_outside_of_its_folder
    ["<ruby.h>", "<ruby/thread.h>", "\"ruby/rb_gvl.h\""].each do |header|
      output, fine = check_source("server/one.c", "#include #{header}\n")
      refute fine, header
      assert_includes output, "ext/rondo/server/one.c:1:"
    end
    assert_equal ["", true], check_source("ruby/rb_one.c", "#include <ruby.h>\n#include <ruby/thread.h>\n")
  end

  def test_what_follows_the_locale_is_a_breach
    ["#include <ctype.h>", "#include <strings.h>", "    key[i] = (char)toupper(byte);", "if (isalpha (c)) return;",
     "x = strncasecmp(a, b, 4);", "double d = strtod(text, &end);", "strftime(time, 9, \"%b\", &at);",
     "printf(\"%d %.1f\", 1, 2.0);", "rd_text_add(text, \"%-8.*g s\", 3, seconds);"].each do |line|
      output, fine = check_source("server/one.c", "\n#{line}\n")
      refute fine, line
      assert_match %r{\Aext/rondo/server/one\.c:2: .*locale}, output
    end
    assert_equal ["", true], check_source("ruby/rb_one.c", "rb_sprintf(\"%.1f s\", seconds);\n")
  end

  def test_the_wall_clock_is_a_breach_but_in_one_file
    ["clock_gettime(CLOCK_REALTIME, &now);", "clock_gettime(CLOCK_REALTIME_COARSE, &now);", "gettimeofday(&now, NULL);",
     "time_t now = time(NULL);", "sem_timedwait(&one, &until);", "pthread_cond_timedwait(&a, &b, &until);"].each do |line|
      output, fine = check_source("ruby/rb_one.c", "\n#{line}\n")
      refute fine, line
      assert_match %r{\Aext/rondo/ruby/rb_one\.c:2: .*wall clock}, output
    end
    assert_equal ["", true], check_source("system/clock.c", "clock_gettime(CLOCK_REALTIME, &now);\n")
    assert_equal ["", true], check_source("base/one.c", <<~C)
      pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
      pthread_cond_timedwait(&a, &b, &until);
    C
    assert_equal ["", true], check_source("base/one.c", "log_time(NULL); rd_time(&now); time(3); clock_gettime(CLOCK_MONOTONIC, &a);\n")
  end

  # Time.now follows changes of the wall clock. It is only for times that people read, for dates of certificates, and
  # for Puma's statistics and the begin of a worker in them, and for what Rails tells browsers: the time of a heartbeat, an id of the history. OpenTelemetry wants
  # the time of its points, and a signed name has the date on which it expires. Ids of JetStream are times.
  def test_durations_of_the_shell_are_monotonic
    with_dates = Dir[File.join(ROOT, "{lib,exe}", "**", "*")].select do |file|
      File.file?(file) && File.extname(file) != ".so" && File.read(file).match?(/\bTime\.now\b|CLOCK_REALTIME/)
    end
    assert_equal %w[lib/rondo/command/bench/document.rb lib/rondo/command/top/figures.rb lib/rondo/command/top/screen.rb
                    lib/rondo/config/options.rb lib/rondo/logger.rb lib/rondo/metrics/open_telemetry.rb
                    lib/rondo/pubsub/nats/stream.rb lib/rondo/pubsub/signed.rb lib/rondo/puma/hook_arguments.rb lib/rondo/puma/statistics.rb lib/rondo/rails/cable/history.rb lib/rondo/rails/cable/server.rb],
                 with_dates.map { |file| file.delete_prefix("#{ROOT}/") }.grep_v(%r{\Alib/rondo/certificates/}).sort
  end

  def test_what_only_looks_like_it_is_none
    assert_equal ["", true], check_source("server/one.c", <<~'C')
      /* As toupper(3) or strtod(3), without locale: tolower(x) */
      /*
       * not strcasecmp(a, b)
       */
      rd_ascii_upper(c); is_digit(c); my_isalpha(c); char *tolower; rd_text_add(text, "50%free %d\"%u", 1, 2);
      long n = strtol(text, &end, 10); printf("100%% %s%.3s", a, b);
    C
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

  def test_a_room_with_too_many_files_is_a_breach
    { "ext/rondo/base" => ["c", 32], "lib/rondo/cluster" => ["rb", 16] }.each do |room, (ending, most)|
      Dir.mktmpdir do |root|
        FileUtils.mkdir_p([File.join(root, "ext/rondo"), File.join(root, room)])
        most.times { |number| File.write(File.join(root, room, "one#{number}.#{ending}"), "") }
        assert_equal ["", true], check(root)
        File.write(File.join(root, room, "more.#{ending}"), "")
        assert_equal ["#{room}: #{most + 1} files, and a room has at most #{most}\n", false], check(root)
      end
    end
  end

  private

  def check(root)
    output, status = Open3.capture2e({ "RUBYOPT" => "--disable-gems" }, File.join(ROOT, "tools", "check_layers"), root)
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

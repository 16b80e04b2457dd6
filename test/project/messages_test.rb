# frozen_string_literal: true

# test/project/messages.txt lists every message of the sources; tree_test.rb compares it with them. These tests check
# that every text a user may read is in the list, and that other strings are not.
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "../../tools/messages"

class MessagesTest < Minitest::Test
  def test_finds_messages_of_c
    source = <<~'C'
      #include "not this.h"
      /* "not this" */
      _Static_assert(sizeof(int) == 4, "not this one");
      static const char quote = '"';
      rb_raise(rb_eArgError, "the \"first\" one");
      RD_ERROR(SECOND, PEER, 400, "the second "
                                  "one")
      printf("%" PRIu64 " times the third\n", times); // "nor this one"
      rb_intern("name");
    C
    assert_equal ['the \"first\" one', "the second one", '%<PRIu64> times the third\n'], found("a.c", source)
  end

  def test_finds_messages_of_ruby
    source = <<~'RUBY'
      # "not this one"
      NAMES = %w[not these].grep(/nor this/) + [:"nor this"]
      raise Error, "cannot read #{path}: #{error["the reason"]}"
      raise Error, "the second " \
                   "one"
      puts "name", 'the third'
      ROWS = { "the fourth": 1 }.freeze
      say("the fifth") if late
    RUBY
    expected = ["the reason", 'cannot read #{path}: #{error["the reason"]}', "the second one", "the third", "the fourth", "the fifth"] # rubocop:disable Lint/InterpolationCheck
    assert_equal expected, found("a.rb", source)
  end

  def test_finds_here_documents
    source = <<~'RUBY'
      raise Error, <<~TEXT, "the tail"
        Usage: #{name}
          --option
      TEXT
    RUBY
    assert_equal ["the tail", "Usage: \#{name}\n  --option\n"], found("a.rb", source)
  end

  # The list has only messages of our own code. Each of these files has some.
  def test_the_list_has_messages_of_every_kind
    list = File.read(File.expand_path("messages.txt", __dir__))
    ["base/error.def", "base/settings.def", "control/verbs.def", "binding/rb_binding.c", "rack/rb_response.c", "app/rb_client.c",
     "ruby/rb_message.c"].each { |path| assert_includes list, "ext/rondo/#{path}\n" }
    ["boot/lines.rb", "command/check.rb", "command/ctl.rb", "command/top.rb", "config/options.rb", "server.rb"].each do |path|
      assert_includes list, "lib/rondo/#{path}\n"
    end
  end

  private

  def found(path, source)
    Messages.of(path, source)
  end
end

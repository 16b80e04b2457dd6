# frozen_string_literal: true

# When an application cannot be loaded: which place is named, and what the log shows.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "stringio"
require "tmpdir"
require "rondo/boot/application"
require "rondo/config/settings"
require "rondo/logger"

class BootFailureTest < Minitest::Test
  # What goes wrong: [files, the line of the log].
  TABLE = {
    "raised in the rackup file" =>
      [{ "config.ru" => "\nraise 'no database'" },
       "config.ru:2: no database (RuntimeError), at `raise 'no database'`"],
    "raised in a file of the application" =>
      [{ "config.ru" => "require_relative 'config/one'", "config/one.rb" => "\n\n  Integer(ENV.fetch('NO_SUCH_KEY'))" },
       "config/one.rb:3: key not found: \"NO_SUCH_KEY\" (KeyError), at `Integer(ENV.fetch('NO_SUCH_KEY'))`"],
    "raised deeper than another file of the application" =>
      [{ "config.ru" => "load 'one.rb'", "one.rb" => "load 'two.rb'", "two.rb" => "raise 'two'" },
       "two.rb:1: two (RuntimeError), at `raise 'two'`"],
    "raised by a gem in vendor/bundle" =>
      [{ "config.ru" => "load 'one.rb'", "one.rb" => "load 'vendor/bundle/gem.rb'", "vendor/bundle/gem.rb" => "raise 'gem'" },
       "one.rb:1: gem (RuntimeError), at `load 'vendor/bundle/gem.rb'`"],
    "raised by a gem that the rackup file called" =>
      [{ "config.ru" => "load 'vendor/bundle/gem.rb'", "vendor/bundle/gem.rb" => "raise 'gem'" },
       "config.ru:1: gem (RuntimeError), at `load 'vendor/bundle/gem.rb'`"],
    "raised by the standard library" =>
      [{ "config.ru" => "load 'one.rb'", "one.rb" => "require 'json'\nJSON.parse('{')" }, /\Aone\.rb:2: .*\(JSON::ParserError\), at `/],
    "raised anew by a gem, the application as the cause" =>
      [{ "config.ru" => "load 'vendor/bundle/gem.rb'", "one.rb" => "raise 'in one'",
         "vendor/bundle/gem.rb" => "begin\n  load 'one.rb'\nrescue RuntimeError\n  raise ArgumentError, 'wrapped'\nend" },
       "one.rb:1: wrapped (ArgumentError), at `raise 'in one'`"],
    "a library that is not there" =>
      [{ "config.ru" => "load 'one.rb'", "one.rb" => "require 'no/such/library'" },
       "one.rb:1: cannot load such file -- no/such/library (LoadError), at `require 'no/such/library'`"],
    "a syntax error in the rackup file" => [{ "config.ru" => "\ndef one\n" }, /\Aconfig\.ru:[23]: .*\(SyntaxError\)/],
    "a syntax error in a file" =>
      [{ "config.ru" => "load 'one.rb'", "one.rb" => "x = 1\nx +* 2\n" }, /\Aone\.rb:2: .*\(SyntaxError\), at `x \+\* 2`\z/],
    "exit" =>
      [{ "config.ru" => "load 'one.rb'", "one.rb" => "exit 3" },
       "one.rb:1: it called exit at boot (status 3), at `exit 3`"],
    "an endless recursion" =>
      [{ "config.ru" => "load 'one.rb'", "one.rb" => "def deeper_and_deeper = deeper_and_deeper\ndeeper_and_deeper" },
       /\Aone\.rb:1: stack level too deep \(SystemStackError\), at `/],
    "an exception that is frozen" =>
      [{ "config.ru" => "raise RuntimeError.new('cold').freeze" }, /\Aconfig\.ru(:1)?: cold \(RuntimeError\)/],
    "an exception without a class name" =>
      [{ "config.ru" => "raise Class.new(StandardError), 'nameless'" }, /\Aconfig\.ru:1: nameless \(#<Class:/],
    "an exception whose message raises" =>
      [{ "config.ru" => "raise Class.new(StandardError) { def message = raise('no words') }" },
       /\Aconfig\.ru:1: its message cannot be shown: RuntimeError/],
    "an exception whose message is nothing" =>
      [{ "config.ru" => "raise Class.new(StandardError) { def self.to_s = 'Odd'; def message = nil }" }, /\Aconfig\.ru:1: \(Odd\)/],
    "an exception whose backtrace raises" =>
      [{ "config.ru" => "raise Class.new(StandardError) { def self.to_s = 'Odd'; def backtrace = raise('none') }, 'x'" },
       "config.ru: x (Odd)"],
    "an exception of another place" =>
      [{ "config.ru" => "raise RuntimeError, 'elsewhere', ['/no/such/file.rb:7']" }, "config.ru: elsewhere (RuntimeError)"],
    "a message that begins with empty lines" =>
      [{ "config.ru" => "raise \"\\n\\n  Migrations are pending\\nrun them\"" }, /\Aconfig\.ru:1: Migrations are pending \(RuntimeError\)/],
    "a message in UTF-16" =>
      [{ "config.ru" => "raise 'wide'.encode('UTF-16')" }, /\Aconfig\.ru:1: \uFEFF?wide \(RuntimeError\)/],
    "a message of bytes" => [{ "config.ru" => "raise \"\\xFF no text\".b" }, /\Aconfig\.ru:1: \uFFFD no text \(RuntimeError\)/],
    "a very long message" => [{ "config.ru" => "raise 'x' * 100_000" }, /\Aconfig\.ru:1: x{1000} \(RuntimeError\)/],
    "an application that went elsewhere" =>
      [{ "config.ru" => "Dir.chdir('/')\nraise 'there'" }, "config.ru:2: there (RuntimeError), at `raise 'there'`"]
  }.freeze

  TABLE.each do |name, (files, expected)|
    define_method("test_#{name.tr(" ", "_")}") do
      line, log = failure_of(files)
      assert_operator expected, :===, line, line
      refute_includes line, "\n"
      assert_equal 1, log.scan(/^\S/).size, log # one entry, its other lines are indented
    end
  end

  def test_the_log_has_the_backtrace_without_the_server
    _, log = failure_of({ "config.ru" => "load 'one.rb'", "one.rb" => "raise 'here'" })
    assert_match(/\ARuntimeError: here\n    .*one\.rb:1:in .*\n(?:    .*\n)*    config\.ru:1:in /, log)
    refute_match(%r{lib/rondo/}, log)
    _, log = failure_of({ "config.ru" => "raise 'here'" }, debug: true)
    assert_match(%r{^    .*lib/rondo/boot/application\.rb}, log)
  end

  def test_the_log_has_the_causes
    _, log = failure_of({ "config.ru" => "begin\n  raise 'first'\nrescue RuntimeError\n  raise IOError, 'second'\nend" })
    assert_match(/\AIOError: second\n/, log)
    assert_match(/^    caused by RuntimeError: first\n    +config\.ru:2/, log)
  end

  def test_a_long_backtrace_is_cut_in_the_middle
    _, log = failure_of({ "config.ru" => "def on_and_on = on_and_on\non_and_on" })
    assert_operator log.lines.size, :<, 110
    assert_match(/^    \.\.\. \d+ more \.\.\.$/, log)
  end

  def test_a_link_to_the_folder_is_the_folder
    Dir.mktmpdir do |place|
      File.symlink(real = Dir.mktmpdir, link = File.join(place, "current"))
      line, = failure_of({ "config.ru" => "require_relative 'one'", "one.rb" => "raise 'linked'" }, folder: link)
      assert_equal "one.rb:1: linked (RuntimeError), at `raise 'linked'`", line
    ensure
      FileUtils.rm_rf(real)
    end
  end

  def test_a_rackup_file_of_another_folder
    Dir.mktmpdir do |app|
      app = File.realpath(app)
      File.write(File.join(app, "one.rb"), "raise 'far away'")
      File.write(rackup = File.join(app, "config.ru"), "require_relative 'one'")
      line, = failure_of({}, rackup: rackup)
      assert_equal "one.rb:1: far away (RuntimeError), at `raise 'far away'`", line
    end
  end

  private

  # @return [Array(String, String)] the line after "cannot be loaded: ", and the log
  def failure_of(files, rackup: "config.ru", folder: Dir.mktmpdir, debug: false)
    files.each do |name, text|
      FileUtils.mkdir_p(File.dirname(path = File.join(folder, name)))
      File.write(path, "#{text}\n")
    end
    io = StringIO.new
    error = Dir.chdir(folder) { assert_raises(Rondo::ConfigurationError) { load_app(rackup, io, debug) } }
    [error.message.delete_prefix("the application cannot be loaded: "), io.string]
  ensure
    FileUtils.rm_rf(folder)
  end

  def load_app(rackup, io, debug)
    settings = Rondo::Settings::Resolved.new({ rackup: [rackup, "test"] })
    log = Rondo::Logger.new(io: io, quiet: true)
    silence_warnings { Rondo::Application.load(settings, log, debug: debug) }
  end

  # The parser also warns about code that it cannot parse.
  def silence_warnings
    before = $VERBOSE
    $VERBOSE = nil
    yield
  ensure
    $VERBOSE = before
  end
end

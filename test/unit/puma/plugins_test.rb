# frozen_string_literal: true

# Plugins of Puma without a server: files that are read, and what they do wrong.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "rondo/config/configuration"
require "rondo/puma/plugins"
require "tmpdir"

class PluginsTest < Minitest::Test
  # A log that keeps its lines.
  class Lines
    attr_reader :lines

    def initialize
      @lines = Queue.new
    end

    def say(line)
      @lines << line
    end
    alias error say
  end

  def setup
    @folder = Dir.mktmpdir
    FileUtils.mkdir_p(File.join(@folder, "puma/plugin"))
    $LOAD_PATH.unshift(@folder)
    @log = Lines.new
    @number = self.class.next_number
  end

  def teardown
    $LOAD_PATH.delete(@folder)
    FileUtils.rm_rf(@folder)
  end

  class << self
    # The files of plugins are loaded once.
    def next_number
      @number = (@number || 0) + 1
    end
  end

  # @return [String] its name
  def write(body, name: "unit#{@number}")
    File.write(File.join(@folder, "puma/plugin/#{name}.rb"), body)
    name
  end

  def plugin(body)
    write("Puma::Plugin.create do\n#{body}\nend\n")
  end

  def configure(text)
    path = File.join(@folder, "rondo.rb")
    File.write(path, text)
    Rondo::Configuration.new(path)
  end

  def complaint(text)
    error = assert_raises(Rondo::ConfigurationError) { configure(text) }
    assert_equal 1, error.message.lines.size
    error.message.delete_prefix("#{@folder}/")
  end

  def running(body)
    Rondo::Plugins.for(configure("plugin :#{plugin(body)}"), @log, nil)
  end

  def line
    @log.lines.pop
  end

  def test_verbs_of_a_plugin
    name = write(<<~RUBY)
      class Puma::DSL
        def unit_url(url)
          @options[:unit_url] = url
          threads 1, 7
        end
      end
      Puma::Plugin.create { def config(dsl) = dsl.tag("by \#{dsl.get(:unit_url)}") }
    RUBY
    configuration = configure("plugin '#{name}'\nunit_url 'tcp://x'\n")
    assert_equal "tcp://x", configuration.options[:unit_url]
    assert_equal 7, configuration.options[:max_threads]
    assert_equal "by tcp://x", configuration.options[:tag]
    assert_raises(Rondo::ConfigurationError) { configure("unit_urls 'x'") }
  end

  def test_files_that_are_not_as_they_should_be
    { "raise 'no luck'" => "cannot be loaded: no luck (RuntimeError) at",
      "exit 3" => "cannot be loaded: it called exit at",
      "require 'no/such/library'" => "cannot be loaded: cannot load such file -- no/such/library (LoadError) at",
      "class <" => "cannot be loaded: ",
      "1" => "cannot be loaded: no plugin has registered itself as NAME (Puma::UnknownPlugin)",
      "Puma::Plugins.register('other', Class.new(Puma::Plugin))" => "cannot be loaded: no plugin has registered" }
      .each_with_index do |(body, words), index|
        name = write(body, name: "bad#{@number}_#{index}")
        assert_match(/\Arondo.rb:2: plugin #{name} #{Regexp.escape(words.sub("NAME", name))}/, complaint("\nplugin :#{name}"))
      end
  end

  def test_a_config_that_fails
    { "raise 'no luck'" => "no luck (RuntimeError) at ", "exit" => "it called exit at ",
      "end\ndef config" => "wrong number of arguments (given 1, expected 0) (ArgumentError) at " }.each do |body, words|
      @number = self.class.next_number
      name = plugin("def config(dsl)\n#{body}\nend")
      assert_includes assert_raises(Rondo::ConfigurationError) { configure("plugin :#{name}").choose(false) }.message,
                      "plugin #{name}, config: #{words}"
    end
  end

  def test_a_start_that_fails
    { "raise 'no luck'" => /cannot start: no luck \(RuntimeError\) at .*unit\d+\.rb:\d/,
      "exit" => /cannot start: it called exit at .*unit\d+\.rb:\d/,
      "end\ndef start" => /cannot start: wrong number of arguments \(given 1, expected 0\) \(ArgumentError\) at .*unit\d+\.rb:\d/,
      "launcher.no_such" => /cannot start: undefined method [`']no_such'/ }.each do |body, words|
      @number = self.class.next_number
      plugins = running("def start(launcher)\n#{body}\nend")
      assert_match(words, assert_raises(Rondo::ConfigurationError) { plugins.start }.message)
    end
  end

  def test_a_fork_without_a_block_is_not_a_second_server
    plugins = running("def start(launcher) = launcher.log_writer.log(fork)")
    status = nil
    _, message = capture_subprocess_io do
      plugins.start
      status = Process.wait2(line.to_i).last
    end
    assert_equal 1, status.exitstatus
    assert_match(/\A! plugin unit\d+ cannot start: it has forked without a block; the copy of the server ends$/, message)
  end

  def test_events_come_in_order_and_each_block_is_called
    plugins = running(<<~RUBY)
      def start(launcher)
        log = launcher.log_writer
        launcher.events.register(:state) { |state| log.log "state \#{state}" }
        launcher.events.on_booted { raise "first" }
        launcher.events.after_booted { exit }
        launcher.events.after_booted { log.log "booted" }
        launcher.events.on_stopped { log.log "stopped" }
        launcher.events.before_restart { log.log "restart" }
      end
    RUBY
    plugins.start
    2.times { plugins.booted }
    2.times { plugins.stop(restart: :exec) }
    lines = Array.new(@log.lines.size) { line }
    assert_match(/\A! plugin unit\d+, after_booted: first \(RuntimeError\) at .*:\d+\z/, lines[1])
    assert_match(/\A! plugin unit\d+, after_booted: it called exit at /, lines[2])
    assert_equal ["state booting", "booted", "state running", "state restart", "restart", "state done"],
                 lines.values_at(0, 3..)
  end

  # Of a process that ends: what a block does for the program that comes would be left undone.
  def test_the_last_event_of_a_generation
    { "before_restart" => ["restart"], "after_stopped" => ["stopped"], "both" => ["stopped"] }.each do |words, expected|
      @number = self.class.next_number
      plugins = running(<<~RUBY)
        def start(launcher)
          launcher.events.before_restart { launcher.log_writer.log "restart" } unless #{words == "after_stopped"}
          launcher.events.after_stopped { launcher.log_writer.log "stopped" } unless #{words == "before_restart"}
        end
      RUBY
      plugins.start
      plugins.stop(restart: :generation)
      assert_equal expected, Array.new(@log.lines.size) { line }
    end
  end

  def test_background_blocks_live_from_boot_to_stop
    plugins = running(<<~RUBY)
      def start(launcher)
        in_background { raise IOError, "closed" }
        in_background { exit 5 }
        in_background do
          launcher.log_writer.log Thread.current.name
          sleep
        ensure
          launcher.log_writer.log "ended"
        end
      end
    RUBY
    plugins.start
    assert_empty @log.lines
    plugins.booted
    lines = Array.new(3) { line }
    assert_equal ["! plugin unit#{@number}, background block: closed (IOError)", "! plugin unit#{@number}, background block: it",
                  "plugin unit#{@number}"], lines.map { |text| text[/\A.*?(?=(?: called exit)? at |\z)/] }.sort
    plugins.stop
    assert_equal "ended", line
  end

  def test_a_plugin_is_read_once
    name = plugin("def config(dsl) = dsl.tag(dsl.get(:tag, '') + 'x')")
    configuration = configure("plugin :#{name}\nplugin '#{name}'\nsingle { plugin :#{name} }").choose(false)
    assert_equal 1, configuration.plugins.size
    assert_equal "x", configuration.options[:tag]
  end
end

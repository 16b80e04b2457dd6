# frozen_string_literal: true

# What every version of Ruby says about the files of lib: all load without a warning of any category that it has, and a
# Ractor gets a clear error.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rbconfig"

class RubiesTest < Minitest::Test
  LIB = File.expand_path("../../lib", __dir__)
  # They need a framework that is loaded already, an older Rack, or are scripts. They are compiled only.
  COMPILED_ONLY = %w[action_cable/subscription_adapter/rondo rack/handler/puma rack/handler/rondo rondo/process/program_master].freeze

  # Warnings of files elsewhere are not ours.
  WATCH = <<~RUBY
    LIB = #{LIB.dump}
    module Warning
      def self.warn(message, **)
        raise "a warning: \#{message}" if message.include?(LIB)
      end
    end
    $VERBOSE = true
    %i[deprecated performance strict_unused_block].each do |category|
      Warning[category] = true
    rescue ArgumentError
      next # of a newer Ruby
    end
    $LOAD_PATH.unshift(LIB)
    require "rondo"
  RUBY

  def test_every_file_loads_without_a_warning
    output = run_ruby <<~RUBY
      names = Dir[File.join(LIB, "**/*.rb")].sort.map { |path| path.delete_prefix(LIB + "/").delete_suffix(".rb") }
      names.each { |name| RubyVM::InstructionSequence.compile_file(File.join(LIB, name + ".rb")) }
      (names - #{COMPILED_ONLY.inspect}).each { |name| require name }
      print "all of ", names.size > 100
    RUBY
    assert_equal "all of true", output
  end

  # The extension does not say that it is safe for Ractors: a server and its channels belong to the main one.
  def test_a_ractor_gets_a_clear_error
    ["Rondo.publish('a', 'b')", "Rondo::Scoreboard.new(1)", "Rondo::Server.new(->(_) {})"].each do |call|
      assert_match(/\ARactor::(Isolation|Unsafe)Error: .*[Rr]actor/, run_ruby(<<~RUBY), call)
        Warning[:experimental] = false
        ractor = Ractor.new { Thread.current.report_on_exception = false; #{call} }
        begin
          ractor.respond_to?(:value) ? ractor.value : ractor.take
          print "no error"
        rescue Ractor::RemoteError => e
          print e.cause.class, ": ", e.cause.message
        end
      RUBY
    end
  end

  private

  # In a process of its own, with literals frozen everywhere.
  def run_ruby(script)
    output, status = Open3.capture2e(RbConfig.ruby, "--enable=frozen-string-literal", "-e", WATCH + script)
    assert status.success?, output
    output
  end
end

# frozen_string_literal: true

# Where the instructions of a request or a message go: `ruby bench/stages.rb [-n COUNT] [LOAD...]`. A load is a request
# of requests.rb, or one of instructions.rb. Counted by callgrind, so a busy machine is no harm. The first figure of a
# stage is what Rondo's own code takes there, the second one what Ruby and the C library take on its behalf.
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "instructions"

module Bench
  # One file that callgrind wrote, read line by line (its manual, "Callgrind Format Specification").
  class Callgrind
    OURS = %r{/rondo\.so\z}
    ALLOCATION = /newobj_of\z/ # what it calls sweeps

    # @return [Integer] instructions
    attr_reader :total, :collector

    # @return [Hash{String => Integer}] by file below ext/rondo: in Rondo's own code
    attr_reader :own

    # @return [Hash{String => Integer}] by the same files: in what that code calls
    attr_reader :lent

    # @param path [String]
    def initialize(path)
      @names = Hash.new { |hash, kind| hash[kind] = {} }
      @own, @lent = Hash.new(0), Hash.new(0)
      @total = @collector = 0
      @at, @called = {}, {}
      File.foreach(path, chomp: true) { |line| read(line) }
    end

    private

    def read(line)
      case line
      when /\A(c?)(ob|fl|fi|fe|fn)=(.*)/ then name(Regexp.last_match(1), Regexp.last_match(2), Regexp.last_match(3))
      when /\Acalls=/ then @calls = true
      when /\A[+\-*\d]\S* (\d+)\z/ then count(Regexp.last_match(1).to_i)
      end
    end

    # A name stands there once, with a number for later.
    def name(called, kind, text)
      kind = "fl" if %w[fi fe].include?(kind) && !called.empty?
      number, name = text.match(/\A(\(\d+\)) ?(.*)\z/).captures
      names = @names[%w[fl fi fe].include?(kind) ? :file : kind]
      names[number] = name unless name.empty?
      place(called, kind, names[number])
    end

    def place(called, kind, name)
      return @called[kind] = name unless called.empty?

      @at[kind] = name
      @at["now"] = name if %w[fl fi fe].include?(kind)
    end

    def count(cost)
      return count_call(cost) if @calls

      @total += cost
      @own[file(@at["now"])] += cost if @at["ob"].match?(OURS)
    end

    # Costs of what is called, with all that it calls.
    def count_call(cost)
      from, to = [@at["ob"], @called["ob"] || @at["ob"]].map { |object| object.match?(OURS) }
      @lent[file(@at["now"])] += cost if from && !to
      @lent[file(@called["fl"] || @at["now"])] -= cost if to && !from
      @collector += cost if @at["fn"].match?(ALLOCATION) && !@called["fn"].match?(ALLOCATION)
      @calls = false
      @called = {}
    end

    # An inlined function of the room `base` belongs to the function that it is inlined into.
    def file(path)
      found = path.to_s[%r{/ext/rondo/(.+)\z}, 1]
      found.nil? || found.start_with?("base/") ? @at["fl"].to_s[%r{/ext/rondo/(.+)\z}, 1].to_s : found
    end
  end

  # The same by stages.
  class Stages < Instructions
    ROOMS = {
      "wait, accept, read, write" => %r{\A(?:loop|transport|listen|system|tls)/},
      "parse and frame" => %r{\A(?:http|http2|protocol|request|files)/},
      "turn, line, deadlines" => %r{\A(?:server|threads|cluster|control)/},
      "WebSockets and channels" => %r{\A(?:endpoint|messaging|pubsub)/|\Aapp/rb_(?:channels|client|events|upgrade)},
      "env" => %r{\Arack/rb_(?:env|identity|input)|\Abinding/rb_cache},
      "answer" => %r{\Arack/},
      "call, with the application" => //
    }.freeze

    # Figures of a load, by stage.
    class Figures
      # @param files [Array<Callgrind>]
      def initialize(files)
        @files = files
      end

      # @return [Hash{String => String}]
      def /(other)
        rows = ROOMS.keys.to_h { |stage| [stage, %i[own lent].map { |kind| (sum(stage, kind) / other).round }] }
        sums = { "the collector, contained above" => @files.sum(&:collector).to_f, "all" => total }
        sums.transform_values! { |sum| (sum / other).round.to_s }
        rows.transform_values { |pair| pair.join(" + ") }.merge(sums)
      end

      private

      def total
        @files.sum(&:total).to_f
      end

      # What runs the threads is called by nobody of ours, but contains everything.
      def sum(stage, kind)
        found = @files.sum { |file| file.public_send(kind).sum { |path, cost| stage_of(path) == stage ? cost : 0 } }
        found += total if kind == :lent && stage == stage_of("threads/")
        found.to_f
      end

      def stage_of(path)
        ROOMS.find { |_, rooms| path.match?(rooms) }.first
      end
    end

    private

    def collected
      Figures.new(Dir.glob("#{@out}.*").map { |file| Callgrind.new(file) })
    end
  end
end

if $PROGRAM_NAME == __FILE__
  count = 10_000
  parser = OptionParser.new { |options| options.on("-n COUNT", Integer, "(10000)") { |number| count = number } }
  loads = parser.parse!.map(&:to_sym)
  loads = %i[plain browser cookie pipelined one closing echo broadcast] if loads.empty?
  Bench::Programs.build
  Bench::Programs.compile_rondo
  figures = loads.to_h do |load|
    [load, Bench::Stages.new(Bench::Servers.rondo, requests: count, function: nil).count([load]).fetch(load)]
  end
  puts "| stage | #{loads.join(" | ")} |", "|---|#{"---|" * loads.size}"
  figures.values.first.each_key do |stage|
    puts "| #{stage} | #{figures.values.map { |found| found.fetch(stage) }.join(" | ")} |"
  end
end

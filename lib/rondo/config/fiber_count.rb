# frozen_string_literal: true

# How many fibers the settings ask for, and whether the system can hold them: --fibers, `fibers` or RONDO_FIBERS.
# SPDX-License-Identifier: MIT

require "rondo/config/kinds"

module Rondo
  # A number of fibers.
  # @api private
  class FiberCount
    # A stack takes two of the memory areas that Linux counts: itself, and the page that guards it.
    AREAS = 2
    # Percent of all areas that may belong to fibers. Libraries, threads and the heap need the others.
    SHARE = 45
    LIMIT = "/proc/sys/vm/max_map_count"

    # @return [Integer, nil] memory areas that a process may have; nil: the system names no limit
    def self.areas
      Integer(File.read(LIMIT), 10)
    rescue SystemCallError, ArgumentError
      nil
    end

    # @param settings [Settings::Resolved]
    # @return [FiberCount]
    def self.of(settings)
      new(settings[:fibers], settings[:max_parked_bodies])
    end

    # @return [Integer] 0: none
    attr_reader :number

    # @param number [Integer] calls that a worker has at once
    # @param parked [Integer] calls beyond them that wait for their clients
    # @param areas [Integer, nil] as {.areas}; nobody asks the system for them without fibers
    def initialize(number, parked, areas: number.zero? ? nil : FiberCount.areas)
      @number = number
      @parked = parked
      @areas = areas
    end

    # @return [Boolean]
    def any?
      @number.positive?
    end

    # @return [Integer, nil] the largest number; nil: there is no limit
    def most
      @areas && [(@areas * SHARE / 100 / AREAS) - @parked, 0].max
    end

    # @return [self]
    # @raise [SettingError] one line
    def check
      return self unless any?
      raise SettingError, "fibers: #{RUBY_DESCRIPTION} has no fiber scheduler" unless Fiber.respond_to?(:set_scheduler)
      return self if most.nil? || @number <= most

      raise SettingError, "fibers #{@number}: at most #{most} are possible here, because they and max_parked_bodies " \
                          "(#{@parked}) may have #{SHARE} % of the #{@areas} memory areas that vm.max_map_count " \
                          "allows, #{AREAS} each; sysctl vm.max_map_count=#{needed} allows #{@number}"
    end

    # @return [String] "1000, each with a stack of 128k for Ruby and 512k for C"
    def to_s
      sizes = RubyVM::DEFAULT_PARAMS.values_at(:fiber_vm_stack_size, :fiber_machine_stack_size)
      ruby, machine = sizes.map { |bytes| Settings.size(bytes) }
      "#{@number}, each with a stack of #{ruby} for Ruby and #{machine} for C"
    end

    private

    # @return [Integer] memory areas for that many
    def needed
      ((@number + @parked) * AREAS * 100 / SHARE.to_f).ceil
    end
  end
end

# frozen_string_literal: true

# A server that runs already, for `rondo bench URL`: asked, never started or stopped.
# SPDX-License-Identifier: MIT

require "rondo/command/bench/processes"

module Rondo
  class Bench
    # Stands in the place of a {Contender}.
    class Running
      # @return [Target]
      attr_reader :target
      # @return [Array<Hash>]
      attr_reader :rounds
      # @return [Array<String>]
      attr_reader :notes
      # @return [Target::Answer, nil]
      attr_accessor :answer

      # @param options [Options]
      def initialize(options)
        @target = options.url
        @rounds = []
        @notes = []
      end

      # @return [String]
      def name
        "server"
      end

      # @return [String]
      def title
        @target.to_s
      end

      # @return [String, nil] what it calls itself
      def version
        answer&.server
      end

      # @return [Boolean]
      def rondo?
        false
      end

      # @return [self]
      def start
        @pid = Processes.listener(@target.port)
        @notes << "its processes are not known, so there is no CPU time and no memory" unless @pid
        self
      end

      # @return [Array<Integer>]
      def pids
        @pid ? Processes.tree(@pid) : []
      end

      # @return [nil] a control server is not asked
      def stats
        nil
      end

      # It is not ours: whether it lives shows in its answers.
      def check; end

      # It goes on.
      def ask_to_end; end

      # It goes on.
      def stop; end
    end
  end
end

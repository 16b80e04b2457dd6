# frozen_string_literal: true

# Hooks of the configuration file: their verbs, and what a block must fit. verbs.rb defines a method for each.
# SPDX-License-Identifier: MIT

module Rondo
  class Configuration
    # Verbs and the hooks they name; the verbs include this.
    module VerbHooks
      # Hooks around workers, under Puma's names of today and of before.
      WORKER_HOOKS = { before_fork: :before_fork,
                       before_worker_fork: :before_worker_fork, on_worker_fork: :before_worker_fork,
                       after_worker_fork: :after_worker_fork, after_worker_boot: :after_worker_fork,
                       before_worker_boot: :before_worker_boot, on_worker_boot: :before_worker_boot,
                       before_worker_drain: :before_worker_drain, after_master_loss: :after_master_loss,
                       before_worker_shutdown: :before_worker_shutdown,
                       on_worker_shutdown: :before_worker_shutdown,
                       after_worker_shutdown: :after_worker_shutdown, after_worker_exit: :after_worker_exit }.freeze
      # Around `refork`: in the process that workers are forked from.
      REFORK_HOOKS = { before_refork: :before_refork, on_refork: :before_refork, after_refork: :after_refork }.freeze
      HOOKS = { after_booted: :after_booted, on_booted: :after_booted,
                before_drain: :before_drain, after_drain: :after_drain, out_of_band: :out_of_band,
                after_stopped: :after_stopped, on_stopped: :after_stopped,
                before_restart: :before_restart, on_restart: :before_restart,
                before_thread_start: :before_thread_start, on_thread_start: :before_thread_start,
                before_thread_exit: :before_thread_exit, on_thread_exit: :before_thread_exit }.freeze

      # Hooks whose blocks get nothing; the others get one thing.
      WITHOUT_ARGUMENTS = %i[after_booted before_drain after_drain out_of_band after_stopped before_thread_exit].freeze

      private

      # Hooks with the same key share a Hash, which each gets as its last argument.
      def add_hook(verb, name, block, key)
        fail_here "the key of #{verb} must be a String or Symbol, not #{key.inspect}" unless key.nil? || word?(key)
        given = (WITHOUT_ARGUMENTS.include?(name) ? 0 : 1) + (key ? 1 : 0)
        block = fitting(verb, block, given)
        kept = key && @configuration.kept[key.to_sym]
        @configuration.hooks[name] << (kept ? ->(*all) { block.call(*all, kept) } : block)
      end

      def word?(key)
        key.is_a?(Symbol) || key.is_a?(String)
      end

      # A method or lambda that takes less than there is gets only that much, as other blocks do.
      def fitting(verb, block, given)
        return block unless block.lambda?

        needed, most, named = parameters_of(block)
        unless named.empty? && needed <= given
          fail_here "#{verb} gives its block #{given} argument#{"s" if given != 1}, and this one needs " \
                    "#{[(needed if needed > given), *named].compact.join(", ")}"
        end
        most < given ? ->(*all) { block.call(*all.first(most)) } : block
      end

      # @return [Array(Integer, Numeric, Array<String>)] how many arguments it needs, and takes; the names it needs
      def parameters_of(block)
        kinds = block.parameters.group_by(&:first)
        needed = kinds.fetch(:req, []).size
        most = kinds.key?(:rest) ? Float::INFINITY : needed + kinds.fetch(:opt, []).size
        [needed, most, kinds.fetch(:keyreq, []).map { |_, name| "#{name}:" }]
      end
    end
  end
end

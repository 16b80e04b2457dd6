# frozen_string_literal: true

# The state of a cluster, for people and programs: the line for systemd and Puma's statistics. Read from
# the scoreboard, which workers write themselves.
# SPDX-License-Identifier: MIT

require "rondo/version"

module Rondo
  # Words and numbers about a {Cluster}.
  # @api private
  module ClusterStatus
    module_function

    # @param cluster [Cluster]
    # @return [String] as Puma writes it
    def line(cluster)
      ready = cluster.supervisor.workers.select(&:ready?)
      list = ready.map { |worker| worker_in_words(cluster.board, worker) }.join(", ")
      "Rondo #{VERSION}: cluster: #{ready.size}/#{cluster.supervisor.active.size}, worker_status: [#{list}]"
    end

    def worker_in_words(board, worker)
      return "{ old }" unless worker.seat

      row = board.row(worker.seat)
      threads = row[:threads]
      "{ #{threads}/#{row[:max_threads]} threads, #{threads - row[:busy]} available, #{row[:queue]} backlog }"
    end
    private_class_method :worker_in_words
  end
end

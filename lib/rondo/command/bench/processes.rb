# frozen_string_literal: true

# What Linux knows of a server's processes: CPU time and memory of a whole tree, from /proc. On another
# system, or for processes of another user, the figures are nil.
# SPDX-License-Identifier: MIT

module Rondo
  class Bench
    # Sums over a process and all its descendants.
    module Processes
      # The kernel counts user and system time in these.
      TICK = 0.01

      module_function

      # @param root [Integer] a process id
      # @return [Array<Integer>] it and its descendants
      def tree(root)
        children = Hash.new { |hash, parent| hash[parent] = [] }
        Dir.glob("/proc/[0-9]*/stat").each do |path|
          parent = stat(read(path))[1].to_i
          children[parent] << path.split("/")[2].to_i if parent.positive?
        end
        found = [root]
        found.each { |pid| found.concat(children.delete(pid).to_a) }
      end

      # User and system time. The exact figures are those of threads, and a thread that has ended takes its own along;
      # the figures of processes keep them, in steps of 10 ms.
      #
      # @param pids [Array<Integer>]
      # @return [Hash{Symbol => Float, nil}] seconds so far, :threads and :processes
      def cpu(pids)
        exact = pids.flat_map { |pid| Dir.glob("/proc/#{pid}/task/*/schedstat") }.map { |path| read(path).to_i }
        ticks = pids.map { |pid| stat(read("/proc/#{pid}/stat"))[11, 4] }.compact
        { threads: exact.empty? ? nil : exact.sum / 1e9,
          processes: ticks.empty? ? nil : ticks.flatten.sum(&:to_i) * TICK, count: pids.size }
      end

      # @param before [Hash] of {cpu}
      # @param after [Hash]
      # @return [Float, nil] seconds in between
      def cpu_between(before, after)
        return unless before[:processes] && after[:processes]

        counted = after[:processes] - before[:processes]
        return counted unless before[:threads] && after[:threads]

        exact = after[:threads] - before[:threads]
        # More than rounding apart: threads have ended.
        (counted - exact).abs > (after[:count] * 2 + 2) * TICK ? counted : exact
      end

      # @return [Float, nil] seconds that all CPUs of the machine were not idle so far, with what its host took away
      def machine
        fields = read("/proc/stat")[/^cpu .*/]&.split or return
        (fields[1, 3] + fields[6, 3]).sum(&:to_i) * TICK
      end

      # @param pids [Array<Integer>]
      # @return [Hash{Symbol => Integer, nil}] bytes: :rss, and :pss, in which shared pages are divided by their users
      def memory(pids)
        { rss: sum(pids, "status", /^VmRSS:\s*(\d+)/), pss: sum(pids, "smaps_rollup", /^Pss:\s*(\d+)/) }
      end

      # @param port [Integer] of a loopback address
      # @return [Integer, nil] the process that listens there, the master of several; nil: it is not known
      def listener(port)
        inodes = %w[tcp tcp6].flat_map { |name| read("/proc/net/#{name}").lines.drop(1) }.map(&:split)
                             .select { |fields| fields[3] == "0A" && fields[1].split(":").last.to_i(16) == port }
                             .map { |fields| "socket:[#{fields[9]}]" }
        return if inodes.empty?

        owners = Dir.glob("/proc/[0-9]*").select { |folder| inodes.intersect?(links(folder)) }
                    .map { |folder| File.basename(folder).to_i }
        owners.find { |pid| (owners - tree(pid)).empty? } if owners.any?
      end

      # The name in parentheses may contain anything, so the fields are counted after it.
      def stat(text)
        text.rpartition(")").last.split
      end

      def links(folder)
        Dir.children("#{folder}/fd").map { |name| File.readlink("#{folder}/fd/#{name}") rescue "" }
      rescue SystemCallError
        []
      end

      def sum(pids, file, pattern)
        found = pids.filter_map { |pid| read("/proc/#{pid}/#{file}")[pattern, 1] }
        found.sum { |kib| kib.to_i * 1024 } if found.any?
      end

      def read(path)
        File.read(path)
      rescue SystemCallError
        "" # it ended meanwhile, or is another user's
      end
      private_class_method :stat, :links, :sum, :read
    end
  end
end

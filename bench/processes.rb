# frozen_string_literal: true

# The kernel's figures about a server's processes: CPU time and memory of a whole process tree, read from /proc. Used by
# servers.rb and measure.rb; runs in the benchmark's own process.
# SPDX-License-Identifier: MIT

module Bench
  # Sums over a process and all its descendants.
  module Processes
    module_function

    # @param root [Integer] a process id
    # @return [Array<Integer>] it and its descendants
    def tree(root)
      children = Hash.new { |hash, parent| hash[parent] = [] }
      Dir.glob("/proc/[0-9]*/stat").each do |path|
        # The name in parentheses may contain anything, so the fields are counted after it.
        stat = read(path).rpartition(")").last.split
        children[stat[1].to_i] << path.split("/")[2].to_i unless stat.empty?
      end
      found = [root]
      found.each { |pid| found.concat(children[pid]) }
    end

    # @param root [Integer] a process id
    # @return [Float] CPU microseconds used so far by all threads of the tree
    def cpu_us(root)
      tree(root).sum do |pid|
        Dir.glob("/proc/#{pid}/task/*/schedstat").sum { |path| read(path).to_i }
      end / 1000.0
    end

    # @param root [Integer] a process id
    # @return [Integer] bytes of anonymous memory in use by the tree
    def anonymous_bytes(root)
      tree(root).sum { |pid| read("/proc/#{pid}/status")[/^RssAnon:\s*(\d+)/, 1].to_i * 1024 }
    end

    # @param root [Integer] a process id
    # @return [Integer] bytes of memory in use by the tree, shared pages divided by their users
    def proportional_bytes(root)
      tree(root).sum { |pid| read("/proc/#{pid}/smaps_rollup")[/^Pss:\s*(\d+)/, 1].to_i * 1024 }
    end

    # @param root [Integer] a process id
    # @yield while the memory of the tree is watched
    # @return [Integer] the most bytes that were resident meanwhile, summed over the tree
    def peak_bytes(root)
      pids = tree(root)
      pids.each { |pid| File.write("/proc/#{pid}/clear_refs", "5") } # the mark falls to what is there now
      yield
      pids.sum { |pid| high_water(pid) }
    end

    def high_water(pid)
      read("/proc/#{pid}/status")[/^VmHWM:\s*(\d+)/, 1].to_i * 1024
    end

    def read(path)
      File.read(path)
    rescue SystemCallError
      "" # it ended meanwhile
    end
    private_class_method :high_water, :read
  end

  # Figures of what has a `@pid`.
  module Measured
    # @return [Float] CPU microseconds used so far
    def cpu_us
      Processes.cpu_us(@pid)
    end

    # @return [Integer] bytes of anonymous memory
    def anonymous_bytes
      Processes.anonymous_bytes(@pid)
    end

    # @return [Integer] bytes of memory, shared pages divided by their users
    def proportional_bytes
      Processes.proportional_bytes(@pid)
    end
  end
end

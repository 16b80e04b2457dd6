# frozen_string_literal: true

# How many CPUs this process may use: the affinity of the scheduler, and the quota of its control
# group (version 1 or 2), whichever is smaller. A container with 1.5 CPUs counts as two.
# SPDX-License-Identifier: MIT

require "etc"

module Rondo
  # Counts CPUs.
  # @api private
  module CPUCount
    module_function

    # @param root [String] where the file systems of the kernel are, for tests
    # @param available [Integer] CPUs the scheduler may choose from
    # @return [Integer] at least 1
    def usable(root: "", available: Etc.nprocessors)
      quota = [quota_v2(root), quota_v1(root)].compact.min
      [[available, quota&.ceil].compact.min, 1].max
    end

    # @return [Float, nil] CPUs; the smallest quota of the group and the groups above it
    def quota_v2(root)
      group = group_of(root, "0", "") or return
      folders(group).filter_map do |folder|
        quota, period = words("#{root}/sys/fs/cgroup#{folder}/cpu.max")
        quota.to_f / period.to_i if period.to_i.positive? && quota.to_i.positive?
      end.min
    end
    private_class_method :quota_v2

    def quota_v1(root)
      group = group_of(root, nil, "cpu") or return
      mounts = %w[cpu cpu,cpuacct].map { |name| "#{root}/sys/fs/cgroup/#{name}" }
      mount = mounts.find { |path| File.directory?(path) } or return
      folders(group).filter_map do |folder|
        quota, period = %w[quota period].map { |name| words("#{mount}#{folder}/cpu.cfs_#{name}_us").first.to_i }
        quota.to_f / period if period.positive? && quota.positive?
      end.min
    end
    private_class_method :quota_v1

    # The path of our group: "0::/a/b" in version 2, "4:cpu,cpuacct:/a/b" in version 1.
    def group_of(root, number, controller)
      File.readlines("#{root}/proc/self/cgroup", chomp: true).each do |line|
        id, names, path = line.split(":", 3)
        return path if number ? id == number && names.empty? : names.split(",").include?(controller)
      end
      nil
    rescue SystemCallError
      nil
    end
    private_class_method :group_of

    # The group and all above it; inside a container its own path may not be there, only the root.
    def folders(group)
      parts = group.split("/").reject(&:empty?)
      Array.new(parts.size + 1) { |count| parts.take(count).map { |part| "/#{part}" }.join }
    end
    private_class_method :folders

    def words(path)
      File.read(path).split
    rescue SystemCallError
      []
    end
    private_class_method :words
  end
end

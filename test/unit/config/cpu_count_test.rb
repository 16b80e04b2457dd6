# frozen_string_literal: true

# CPUs by affinity and by the quotas of both versions of control groups.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "tmpdir"
require "rondo/config/cpu_count"

class CPUCountTest < Minitest::Test
  def setup
    @root = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def write(path, text)
    FileUtils.mkdir_p(File.dirname(@root + path))
    File.write(@root + path, text)
  end

  def usable(available = 8)
    Rondo::CPUCount.usable(root: @root, available: available)
  end

  def test_without_a_group_the_scheduler_decides
    assert_equal [8, 1], [usable, usable(1)]
    assert_operator Rondo::CPUCount.usable, :>=, 1
  end

  { "200000 100000" => 2, "150000 100000" => 2, "50000 100000" => 1, "max 100000" => 8, "9900000 100000" => 8,
    "" => 8 }.each do |text, count|
    define_method("test_version_2_#{text.inspect}") do
      write "/proc/self/cgroup", "0::/app/web\n"
      write "/sys/fs/cgroup/app/web/cpu.max", "#{text}\n"
      assert_equal count, usable
    end
  end

  def test_the_smallest_quota_above_counts
    write "/proc/self/cgroup", "0::/app/web\n"
    write "/sys/fs/cgroup/app/cpu.max", "300000 100000\n"
    write "/sys/fs/cgroup/app/web/cpu.max", "max 100000\n"
    assert_equal 3, usable
    write "/sys/fs/cgroup/cpu.max", "100000 100000\n" # what a container sees of its own
    assert_equal 1, usable
  end

  def test_version_1
    write "/proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n0::/\n"
    write "/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n"
    write "/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n"
    assert_equal 8, usable
    write "/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "250000\n"
    assert_equal 3, usable
  end
end

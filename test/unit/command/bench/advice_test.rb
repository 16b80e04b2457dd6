# frozen_string_literal: true

# What rondo bench advises, and that the figure behind it is told.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/command/bench"

class BenchAdviceTest < Minitest::Test
  ALONE = { cpu_us: 1000.0, mean_us: 1100.0, elsewhere_busy: 0.0 }.freeze
  BUSY = { cpu_us: 1000.0, busy: 0.97, client_busy: 0.02 }.freeze
  Options = Struct.new(:threads, :workers, :connections)

  # @return [String] "set. why" of each
  def advice(alone: {}, busy: {}, memory: { pss: 64 << 20 }, cpus: 4, options: Options.new(3, 0, 32), name: "rondo")
    server = { name: name, medians: { alone: ALONE.merge(alone), busy: BUSY.merge(busy), memory: memory } }
    Rondo::Bench::Advice.new(server, cpus, options).to_a.map { |piece| piece.values.join(". ") }.join("\n")
  end

  def test_an_application_that_computes
    told = advice
    assert_match(/^the application hardly waits\. .*took 1\.10 ms, .*CPU for 1\.00 ms\. It computes most/, told)
    assert_match(/^threads: 3 are enough/, told)
    assert_match(/^workers: 4, as -w auto does\. The process used 0\.970 of a CPU, .*64\.0 MiB/, told)
  end

  def test_an_application_that_waits
    told = advice(alone: { mean_us: 7500.0 }, busy: { busy: 0.4 })
    assert_match(/^the application waits\. .*For 87 % of the time it waited/, told)
    assert_match(/^threads: about 8 for each process\. .*7\.50 ms over 1\.00 ms is 7\.50\. .*0\.400 of a CPU\. Try -t 8\./, told)
    assert_match(/^workers: not what limits these requests/, told)
    refute_match(/other programs/, told)
    assert_match(/with 1 connection and 1 thread\. /, advice(alone: { mean_us: 7500.0 }, busy: { busy: 0.4 }, options: Options.new(1, 0, 1)))
    assert_match(/or for a CPU, because other programs used 1\.50 of 4/, advice(alone: { mean_us: 7500.0, elsewhere_busy: 1.5 }))
  end

  def test_so_many_threads_that_fibers_are_better
    assert_match(/^fibers, in place of 100 threads\. .*--fibers/, advice(alone: { mean_us: 100_000.0 }, busy: { busy: 0.03 }))
  end

  # The way through the kernel is not the application's waiting.
  def test_short_requests
    told = advice(alone: { cpu_us: 10.0, mean_us: 60.0 })
    assert_match(/^the application hardly waits/, told)
    assert_match(/^threads: 3 are enough/, told)
    assert_match(/^threads: 1 is enough/, advice(alone: { cpu_us: 10.0, mean_us: 60.0 }, options: Options.new(1, 0, 32)))
  end

  def test_what_limits_the_measurement
    assert_match(/^the client was the limit\. It used 0\.950/, advice(busy: { client_busy: 0.95 }))
    assert_match(/^client and server share this machine\. Together they used 1\.97 of 2 CPUs/, advice(busy: { busy: 1.4, client_busy: 0.57 }, cpus: 2))
    told = advice(busy: { busy: 3.9 }, options: Options.new(3, 4, 32))
    assert_match(/^workers: 4 are enough\. The server used 3\.90 of 4 CPUs/, told)
  end

  def test_queue_time
    told = advice(busy: { queue_mean_us: 3000.0, inside_mean_us: 1000.0, queue_p99_us: 8192.0 })
    assert_match(/^queue time: 3\.00 ms of 4\.00 ms\. .*75 % waiting; p99 of the wait at most 8\.19 ms/, told)
  end

  def test_no_figures_no_advice
    assert_match(/\Ano advice\. [^\n]*\z/, advice(busy: { cpu_us: nil }))
    assert_match(/^fibers/, advice(alone: { cpu_us: 0.0 })) # nothing is divided by 0
    refute_match(/threads|workers/, advice(name: "server", alone: { mean_us: 7500.0 })) # these are settings of Rondo
  end
end

# frozen_string_literal: true

# Molds and workers, through an environment variable and back.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/cluster/succession"

class SuccessionTest < Minitest::Test
  def setup
    @sockets = []
  end

  def teardown
    @sockets.each { |socket| socket.close unless socket.closed? }
  end

  # A pair with one end in the handle. The descriptor that comes back is a new one, as after exec.
  def socket
    Rondo::MessageSocket.pair.tap { |pair| @sockets.concat(pair) }.first
  end

  def mold(generation, state: :ready)
    Rondo::MoldHandle.new(generation: generation, pid: 100 + generation, socket: socket, state: state)
  end

  def worker(index, mold, **facts)
    Rondo::WorkerHandle.new(index: index, seat: index, mold: mold, socket: socket, **facts)
  end

  def there_and_back(*handles)
    text, sockets = Rondo::Succession.hand_on(*handles)
    sockets.each { |socket| refute_predicate socket, :close_on_exec? }
    copies = text.split(";").map { |entry| with_a_copy(*entry.split(",")) }.join(";")
    env = { Rondo::Succession::VARIABLE => copies }
    Rondo::Succession.extract(env).tap do |found|
      assert_empty env
      @sockets.concat([found.current, found.previous, *found.workers].compact.map(&:socket))
    end
  end

  def with_a_copy(kind, pid, descriptor, *rest)
    copy = IO.for_fd(descriptor.to_i, autoclose: false).dup
    copy.autoclose = false
    [kind, pid, copy.fileno, *rest].join(",")
  end

  def test_a_process_that_replaces_none
    assert_nil Rondo::Succession.extract({})
  end

  def test_all_of_it
    old = mold(3)
    new = mold(4)
    oldest = mold(1, state: :ended)
    workers = [worker(0, old, pid: 11, state: :ready, link: 7), worker(1, new, pid: 12, state: :stopping),
               worker(2, old, state: :booting), worker(3, oldest, pid: 13, state: :ready)]
    found = there_and_back(new, old, workers)
    assert_equal [[4, 104, :ready], [3, 103, :ready]],
                 [found.current, found.previous].map { |each| [each.generation, each.pid, each.state] }
    # The next master does not know a mold without a name: the mold ends when its socket is closed.
    assert_equal [[0, 11, :ready, 3], [1, 12, :stopping, 4], [3, 13, :ready, 1]],
                 found.workers.map { |each| [each.index, each.pid, each.state, each.mold.generation] }
    assert_equal [7, nil, nil], found.workers.map(&:link)
    assert_same found.previous, found.workers.first.mold
    assert_predicate found.workers.first.socket.io, :close_on_exec?
    refute_predicate found.workers.last.mold, :alive?
  end

  def test_without_a_mold_before
    found = there_and_back(mold(1), nil, [])
    assert_nil found.previous
    assert_empty found.workers
  end
end

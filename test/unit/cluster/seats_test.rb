# frozen_string_literal: true

# Rows of the scoreboard for workers.
# SPDX-License-Identifier: MIT

require "test_helper"
require "minitest/mock"
require_relative "../../support/fake_cluster"
require "rondo/cluster/seats"

class SeatsTest < Minitest::Test
  Worker = Struct.new(:seat, :mold)
  Mold = Struct.new(:generation)

  def setup
    @board = FakeCluster::Board.new(8, 0)
    @seats = Rondo::Seats.new(@board, 4)
    @worker = Worker.new(1, Mold.new(7))
  end

  def test_a_slot_has_two_seats
    assert_equal 1, @seats.free(1, [])
    assert_equal 5, @seats.free(1, [@worker])
    assert_nil @seats.free(1, [@worker, Worker.new(5)])
  end

  def test_a_worker_takes_its_seat
    @board.set(1, :requests, 9)
    Rondo::ProcessLoop.stub(:now, 2.5) { @seats.occupy(@worker) }
    booting = Rondo::Scoreboard::STATES.index(:booting)
    assert_equal [0, 7, 2500, booting],
                 %i[requests generation started_ms state].map { |name| @board.get(1, name) }
    Rondo::ProcessLoop.stub(:now, 3.5) { @seats.ready(@worker) }
    assert_equal [3500, Rondo::Scoreboard::STATES.index(:ready)], %i[ready_ms state].map { |name| @board.get(1, name) }
    @seats.vacate(@worker)
    assert_equal 0, @board.get(1, :ready_ms)
  end

  def test_a_worker_of_an_earlier_master_has_no_seat
    elder = Worker.new(nil, Mold.new(0))
    @seats.enter(elder, :draining)
    @seats.vacate(elder)
  end
end

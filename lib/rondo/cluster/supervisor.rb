# frozen_string_literal: true

# Decides which worker serves in which slot. Events (a message, a death, a signal) only
# change the known state. Then {#reconcile} compares it with the target, and forks, replaces or ends workers. So an
# event during another change needs no case of its own. Molds are in generations.rb, sockets in
# slots.rb; everything runs on the master's loop.
# SPDX-License-Identifier: MIT

require "rondo/cluster/backoff"
require "rondo/cluster/lifetimes"
require "rondo/cluster/message_socket"
require "rondo/cluster/seats"
require "rondo/cluster/worker_handle"

module Rondo
  # Keeps one worker in each slot.
  # @api private
  class Supervisor
    include Failures

    # The state of a slot besides its worker: when it may start again, and the sibling that listens there.
    Place = Struct.new(:backoff, :covered)

    # @return [Array<WorkerHandle>] all workers, including those that are ending
    attr_reader :workers
    # @return [Array<Integer>] slots that should have a worker
    attr_reader :active
    # @return [Generations]
    attr_accessor :generations

    # @param cluster [Cluster] has settings, log, loop, slots, board and hub, and is notified of what happens
    def initialize(cluster)
      @cluster = cluster
      @settings = cluster.settings
      @log = cluster.log
      @loop = cluster.loop
      @slots = cluster.slots
      @board = cluster.board
      @hub = cluster.hub
      @seats = Seats.new(@board, @slots.room)
      @lifetimes = Lifetimes.new(@settings)
      @workers = []
      @active = []
      @places = Hash.new { |hash, index| hash[index] = Place.new(Backoff.new(DELAYS)) }
      @stopping = false
    end

    # @param count [Integer] of slots
    # @return [void]
    def start(count)
      @active = (0...count).to_a
      (count...@slots.room).each { |index| close_slot(index) } # a master before had more of them
      @loop.every(0.5) { reconcile }
      @loop.every(@settings[:worker_check_interval]) { check_lifetimes }
      @loop.every(1) { @hub.each_outage { |link| note_outage(link) } }
      reconcile
    end

    # Compares the state with the target, and acts on the difference.
    # @return [void]
    def reconcile
      end_overdue
      return if @stopping

      retire_inactive
      fill
      replace_one
      @cluster.reconciled if reconciled?
    end

    # @return [Boolean] whether every slot has a ready worker of the newest code, and there is no other worker
    def reconciled?
      @active.all? { |index| newest(index)&.ready? } && @workers.size == @active.size && outdated.empty?
    end

    # Replaces all workers that serve now.
    # @param reason [String]
    # @return [void]
    def replace_all(reason)
      serving.each { |worker| worker.worn_out ||= reason }
      reconcile
    end

    # When others have been replaced, and it serves: {#reconcile} begins with it.
    # @param worker [WorkerHandle]
    # @param reason [String]
    # @return [void]
    def replace(worker, reason)
      return if worker.worn_out || worker.stopping? || worker.ended?

      worker.worn_out = reason
      @log.say "- Replacing #{worker}: #{reason}"
    end

    # @return [Boolean] whether a worker serves that shall be replaced
    def replacing?
      serving.any?(&:worn_out)
    end

    # One slot more.
    # @return [Boolean] false where there is no room
    def grow
      index = (0...@slots.room).find { |number| !@active.include?(number) } or return false
      @slots.grow([index])
      @active = [*@active, index].sort
      reconcile
      true
    end

    # One slot less; the last one stays.
    # @return [Boolean]
    def shrink
      return false if @active.size < 2

      index = @active.delete(choose_to_end)
      reconcile
      close_slot(index)
      true
    end

    # @param force [Boolean] without waiting for requests in flight
    # @return [void]
    def stop(force: false)
      @stopping = true
      @workers.each { |worker| @seats.enter(worker, :draining) }
      @workers.each { |worker| worker.stop(force: force, ends: true) }
      # If they are forked after all, they find their socket closed and end.
      @workers.reject(&:pid).each { |worker| remove(worker) } if force
    end

    # What the slots have now. Also to workers that are being forked: the message waits for them.
    # @param workers [Array<WorkerHandle>]
    # @return [void]
    def show_certificates(workers = @workers)
      io = TLS.hand_on(@slots.materials) or return
      workers.each { |worker| worker.socket.notify(:certificates, ios: [io], edition: @slots.edition) }
    ensure
      io&.close
    end

    # Takes over a worker that an earlier master, in this very process, has forked.
    # @param worker [WorkerHandle]
    # @return [void]
    def adopt(worker)
      @workers << worker
      watch(worker)
    end

    # @param message [Symbol] sent to every worker
    # @param fields [Hash{Symbol => #to_s}]
    # @return [void]
    def notify_all(message, **fields)
      @workers.each { |worker| worker.socket.notify(message, **fields) }
    end

    # @param pid [Integer] of a child that has ended
    # @param status [Process::Status]
    # @return [Boolean] whether it was a worker
    def ended(pid, status)
      worker = @workers.find { |each| each.pid == pid } or return false
      worker.process_status = status
      remove(worker)
      true
    end

    # Reads what workers have said, so that a death finds them known.
    # @return [void]
    def receive_from_all
      @workers.dup.each { |worker| receive_from(worker) }
    end

    # @param message [MessageSocket::Message] of a mold that could not fork
    # @return [void]
    def not_forked(message)
      worker = @workers.find { |each| each.seat == message.number(:seat) && each.pid.nil? } or return
      worker.failure = message[:message]
      remove(worker)
    end

    private

    # ---- what workers say ----

    def watch(worker)
      @loop.watch(worker.socket.io) { receive_from(worker) }
    end

    def receive_from(worker)
      until worker.ended? || (message = worker.socket.receive_now) == false
        return lost_contact(worker) if message.nil?

        on_message(worker, message)
      end
    end

    def on_message(worker, message)
      worker.check_in
      case message.kind
      when :hello
        worker.pid = message.number(:pid)
        @seats.set(worker, :pid, worker.pid)
        @workers.each { |other| other.check_in if other.mold == worker.mold && !other.pid } # they queue behind it
      when :ready then ready(worker)
      when :alive then alive(worker, message)
      when :failed then worker.failure = message[:message]
      when :term then @cluster.worker_asks(worker)
      when :leaves then leaves(worker)
      end
    end

    # A worker that had no room for the descriptor of a message shows other certificates than its siblings. Workers of
    # an earlier version do not say what they show.
    def alive(worker, message)
      worker.requests = message.number(:requests)
      edition = message[:edition]
      show_certificates([worker]) if edition && @slots.edition && edition != @slots.edition && !worker.stopping?
      @cluster.worker_alive(worker) if worker.ready?
    end

    # It has begun to stop by itself.
    def leaves(worker)
      return if worker.stopping?

      @log.say "- #{worker} stops: TERM"
      stop_worker(worker)
      reconcile
    end

    def ready(worker)
      return unless worker.booting?

      worker.enter(:ready)
      @seats.ready(worker)
      @log.say format("- Worker %<index>d (PID: %<pid>d) booted in %<age>.2fs, phase: %<phase>d",
                      index: worker.index, pid: worker.pid, age: worker.age, phase: worker.mold.generation)
      reconcile
    end

    # The kernel reports its end as well, unless its pid was never known.
    def lost_contact(worker)
      @loop.unwatch(worker.socket.io)
      remove(worker) if worker.pid.nil? || !@cluster.reaper?
    end

    # ---- beginnings ----

    def fill
      (@active - @workers.reject(&:stopping?).map(&:index)).each do |index|
        (@places[index].backoff.over? && fork_worker(index)) || cover(index)
      end
    end

    def fork_worker(index)
      mold = @generations.mold_to_fork or return
      seat = @seats.free(index, @workers) or return
      link, hub_socket = @hub.link(seat)
      own, other = MessageSocket.pair
      worker = WorkerHandle.new(index: index, seat: seat, mold: mold, socket: own, link: link)
      worker.limits = @lifetimes.choose
      @seats.occupy(worker) # first: the worker may write to its row before this process goes on
      return drop(worker) unless request(worker, other, hub_socket)

      @workers << worker
      watch(worker)
      worker
    ensure
      other&.close
      hub_socket&.close
    end

    # @return [nil]
    def drop(worker)
      worker.socket.close
      @hub.unlink(worker.link)
      @seats.vacate(worker)
    end

    def request(worker, other, hub_socket)
      listeners = @slots.listeners(worker.index)
      tickets = @cluster.tickets && IO.for_fd(@cluster.tickets.fd, autoclose: false)
      ios = [other.io, IO.for_fd(@board.fd, autoclose: false), @slots.inbox(worker.index), hub_socket,
             *@slots.outboxes, *listeners, tickets].compact
      notify_with_secrets(worker.mold.socket, :fork, listeners, ios,
                          index: worker.index, seat: worker.seat, seats: @board.size, outboxes: @slots.room,
                          generation: worker.mold.generation, master: Process.pid, engine: @cluster.engine ? 1 : 0,
                          tickets: tickets ? 1 : 0, edition: @slots.edition)
    end

    # The certificates and keys of the listeners are the last descriptor, if there are any.
    def notify_with_secrets(socket, kind, listeners, ios, **fields)
      secrets = @slots.secrets(listeners)
      socket.notify(kind, ios: [*ios, secrets].compact, schemes: @slots.schemes(listeners),
                          secrets: secrets ? 1 : 0, **fields)
    ensure
      secrets&.close
    end

    # ---- replacements ----

    def newest(index)
      @workers.reverse.find { |worker| worker.index == index && !worker.stopping? }
    end

    def outdated
      serving.reject { |worker| worker.mold.generation == @generations.current&.generation }
    end

    def serving
      @workers.select { |worker| worker.ready? && @active.include?(worker.index) }
    end

    # The new worker of a slot serves before the old one leaves; then the next slot.
    def replace_one
      retire_replaced
      return if @workers.any? { |worker| worker.booting? || worker.stopping? }

      worker = outdated.min_by(&:index) || serving.find { |each| each.worn_out && @places[each.index].backoff.over? }
      return unless worker

      fork_worker(worker.index)
    end

    def retire_replaced
      serving.group_by(&:index).each_value do |several|
        keep = several.last
        several.each { |worker| stop_worker(worker) unless worker == keep }
      end
    end

    def check_lifetimes
      serving.each do |worker|
        @seats.set(worker, :rss_bytes, Lifetimes.memory(worker.pid))
        next if worker.worn_out || @stopping

        reason = @lifetimes.hung_request(worker, @board) || @lifetimes.reached(worker) or next
        replace(worker, reason)
      end
      reconcile
    end

    def note_outage(link)
      reader = @workers.find { |each| each.link == link }
      reader ||= "the pub/sub engine" if @cluster.engine&.link?(link)
      @log.error "! #{reader} does not read published messages: it loses those above hub_queue_bytes" if reader
    end

    # ---- ends ----

    def stop_worker(worker)
      @seats.enter(worker, :draining)
      name_heirs(worker) unless worker.seat
      worker.stop
    end

    # Its siblings are those it had under the master before, and they leave as well.
    def name_heirs(worker)
      ios = [IO.for_fd(@board.fd, autoclose: false), *@slots.outboxes]
      worker.socket.notify(:heirs, ios: ios, seats: @board.size, version: Server::Core::HANDOVER_VERSION)
    end

    def retire_inactive
      leaving = @workers.reject { |worker| worker.stopping? || @active.include?(worker.index) }
      leaving.map(&:index).uniq.each { |index| retire_slot(index) }
      leaving.each { |worker| stop_worker(worker) }
    end

    def choose_to_end
      youngest = @settings[:worker_culling_strategy].to_sym != :oldest
      # In the order in which they were forked.
      order = @active.sort_by { |index| [@workers.index(newest(index)) || @workers.size, index] }
      youngest ? order.last : order.first
    end

    # Kills workers that take too long to boot, to check in or to stop.
    def end_overdue
      @workers.dup.each do |worker|
        limit = @lifetimes.overdue(worker) or next
        next give_up(worker, limit) unless worker.pid
        next unless worker.kill

        @log.error "! Killed #{worker}: #{@lifetimes.overdue_in_words(worker, limit)}"
        worker.failure ||= "it was not ready after #{limit} s" if worker.booting?
      end
    end

    # The mold has not forked the worker: it hangs.
    def give_up(worker, limit)
      worker.failure = "the mold did not fork it within #{limit} s"
      @generations.hung(worker.mold)
      remove(worker)
    end

    def remove(worker)
      @workers.delete(worker) or return
      @loop.unwatch(worker.socket.io)
      drop(worker)
      close_slot(worker.index)
      explain(worker)
      worker.enter(:ended)
      @cluster.worker_ended(worker)
      reconcile
    end

    # The slot is not active any more, and no worker is left in it.
    def close_slot(index)
      retire_slot(index) unless @active.include?(index) || @workers.any? { |worker| worker.index == index }
    end

    # Connections that wait there belong to its worker, or to a sibling if it has none. The master closes its sockets
    # first, so that the processes that listen there can accept the last connection and close theirs.
    def retire_slot(index)
      ios = @slots.own_listeners(index)
      return if ios.empty?

      served = @workers.any? { |worker| worker.index == index && worker.ready? }
      notify_cover(serving.last, ios) unless served
      inodes = ios.map { |io| io.stat.ino }
      @slots.close(index)
      @places[index].covered = nil
      notify_all(:retire, sockets: inodes.join(" "))
    end

    # While a slot has no worker for long, a sibling listens there as well.
    def cover(index)
      place = @places[index]
      return if place.covered&.ready?

      place.covered = serving.find { |worker| worker.index != index } or return
      notify_cover(place.covered, @slots.own_listeners(index))
    end

    def notify_cover(worker, ios)
      notify_with_secrets(worker.socket, :cover, ios, ios) if worker&.socket
    end
  end
end

# frozen_string_literal: true

# Shared by the tests of clusters: a server with workers, its processes as the kernel lists them, load that counts
# failures, and a check that no process is left running.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"

class ClusterCase < ShellCase
  # Answers the process id. At /slow it waits for the file "go", at /KEY for the file with that name.
  APP = <<~RUBY
    VERSION_OF_CODE = "one"
    run lambda { |env|
      if env["PATH_INFO"] == "/slow"
        warn "slow began"
        IO.select(nil, nil, nil, 0.01) until File.exist?("go")
      end
      body = env["PATH_INFO"] == "/code" ? VERSION_OF_CODE : Process.pid.to_s
      [200, { "content-type" => "text/plain" }, [body]]
    }
  RUBY
  BOOTED = /^- Worker (\d+) \(PID: (\d+)\) booted in \d+\.\d+s, phase: (\d+)$/

  # Asks for a page again and again, with this many clients; every second one keeps its connection. They never send a
  # request twice.
  class Load
    # A connection that reads whole answers.
    class Connection < TCPSocket
      # @return [String, nil] the head; nil when there was no answer
      def ask(request)
        write(request)
        head = gets("\r\n\r\n") or return
        body = read(head[/^content-length: (\d+)/i, 1].to_i)
        head if body && !body.empty?
      end
    end

    attr_reader :count, :failures

    def initialize(port, clients: 4)
      @port = port
      @count = 0
      @failures = []
      @mutex = Mutex.new
      @threads = Array.new(clients) { |index| Thread.new { work(index.odd?) } }
    end

    # @return [Array<String>] the failures
    def stop
      @stopping = true
      @threads.each(&:join)
      @failures
    end

    # Waits for this many more answers.
    def more(answers, patience: 30)
      goal = @count + answers
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + patience
      IO.select(nil, nil, nil, 0.005) until @count >= goal || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      raise "only #{@count} of #{goal} answers: #{@failures}" if @count < goal
    end

    private

    def work(keep)
      request = "GET / HTTP/1.1\r\nHost: a\r\n#{"Connection: close\r\n" unless keep}\r\n"
      connection = nil
      until @stopping
        connection ||= Connection.new("127.0.0.1", @port)
        answer = connection.ask(request)
        note(answer)
        connection = close(connection) if answer.nil? || !keep || answer.match?(/^connection: close/i)
      end
    rescue SystemCallError => e
      note(e)
      connection = close(connection)
      retry
    ensure
      connection&.close
    end

    def close(connection)
      connection&.close
      nil
    end

    def note(answer)
      good = answer.is_a?(String) && answer.start_with?("HTTP/1.1 200")
      @mutex.synchronize { good ? @count += 1 : @failures << (answer || "no answer").inspect }
    end
  end

  def setup
    super
    write "config.ru", APP
    @loads = []
  end

  def teardown
    @loads.each(&:stop)
    trees = @servers.map { |server| descendants(server.pid) }
    super
    trees.flatten.each { |pid| Process.kill("KILL", pid) if rondo?(pid) }
  end

  # @return [Server] with two workers that are ready
  def cluster(*words, workers: 2, **options)
    server = start("-w", workers.to_s, *words, **options)
    wait_for_workers(server, workers)
    server
  end

  def wait_for_workers(server, count, phase: nil, from: 0)
    pattern = phase ? /booted in .*phase: #{phase}$/ : /booted in/
    server.wait_for_log(/(?:^- Worker \d+ .*#{pattern.source}.*){#{count}}/m, from: from)
  end

  # @return [Hash{Integer => Integer}] slot => its newest process
  def workers(server)
    server.log.scan(BOOTED).to_h { |index, pid, _| [index.to_i, pid.to_i] }.select { |_, pid| alive?(pid) }
  end

  def mold(server)
    children(server.pid).find { |pid| title(pid).include?("rondo: mold") }
  end

  def children(pid)
    File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)
  rescue SystemCallError
    []
  end

  def descendants(pid)
    children(pid).flat_map { |child| [child, *descendants(child)] }
  end

  def title(pid)
    File.read("/proc/#{pid}/cmdline").delete("\0")
  rescue SystemCallError
    ""
  end

  def rondo?(pid)
    title(pid).include?("rondo")
  end

  # @return [Integer] how many sockets there are at the server's port
  def listening_sockets(server)
    File.foreach("/proc/net/tcp").grep(/ 0100007F:#{format("%04X", server.own_port)} \S+ 0A /).size
  end

  def load_on(server, **options)
    Load.new(server.port, **options).tap { |load| @loads << load }
  end

  # Returns when the workers that there were have gone, and this many new ones serve.
  # @param phase [Integer, nil] the generation of all the new ones
  # @param count [Integer] as many as before
  def restart(server, signal, phase: nil, count: workers(server).size)
    old = workers(server).values
    from = server.log.bytesize
    server.signal(signal)
    wait_for_workers(server, count, phase: phase, from: from)
    wait_for_end_of(*old)
  end

  # Waits for a line that is written after the call.
  def after_signal(server, signal, pattern)
    from = server.log.bytesize
    server.signal(signal)
    server.wait_for_log(pattern, from: from)
  end
end

# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# The rules of HTTP/1.1 as data: what is sent, what must come back, and how the connection ends. The rows are in
# rules/*.rb; this file has the small language that they are written in. The numbers only name the cases: a new case
# takes the next free number.
# The table knows nothing of sockets; runner.rb delivers it.

module HttpRules
  # status: Integer or Array of allowed ones (:none = a close without an answer is right too);
  # saw: what the application must have received (an Array: one of these); fields: response fields; head: answers a
  # HEAD.
  Answer = Struct.new(:statuses, :saw, :fields, :head)

  # What the server reads behind a refusal before it closes: linger_bytes. A client that sends no more than that gets
  # an orderly end.
  READ_ON = 262_144

  # ends: :open (a follow-up request is answered), :closed (by the server), :dropped (the same, and a reset may follow
  # the whole answer, because the client sends more than READ_ON), :any.
  Case = Struct.new(:id, :title, :bytes, :answers, :ends, :settings, :half_close, :tcp_only) do
    def refusal?
      answers.size == 1 && ends == :closed && [*answers[0].statuses].none? { |s| s.is_a?(Integer) && s < 400 }
    end
  end

  FRONT = "GET /in-front?1 HTTP/1.1\r\nHost: front\r\n\r\n"
  FRONT_ANSWER = Answer.new([200], { path: "/in-front", query: "1", "HTTP_HOST" => "front" }, {}, false)

  @cases = []
  class << self
    # @return [Array<Case>]
    attr_reader :cases
  end

  # Collects the cases of the blocks in rules/*.rb.
  class Table
    def initialize
      @settings = {}
    end

    # Starts a row; following cases get its number and a letter.
    def row(number, title)
      @number = number
      @title = title
      @letter = "a"
    end

    # Cases of the block run on a server with these settings.
    def with(**settings)
      before, @settings = @settings, settings
      yield
    ensure
      @settings = before
    end

    # Each of the strings is refused with the status, and the connection is closed. Each one is also run behind a valid
    # request, which must be answered first.
    def refuse(status, *strings, front: true, ends: :closed, **options)
      strings.each do |bytes|
        id = add(bytes, [answer(status)], ends, options)
        next unless front
        add(FRONT + bytes, [FRONT_ANSWER, answer(status)], ends, options, "#{id}-front")
      end
    end

    # One request that the application gets as described. The connection stays open unless the row says otherwise.
    def accept(bytes, ends: :open, tcp_only: false, half_close: false, **seen)
      add(bytes, [answer(seen)], ends, { tcp_only: tcp_only, half_close: half_close })
    end

    # Several answers to one string, each as a status or a description.
    def answers(bytes, *expected, ends: :open, **options)
      add(bytes, expected.map { |one| answer(one) }, ends, options)
    end

    # A request line with a Host field and nothing else.
    def line(request_line)
      "#{request_line}\r\nHost: a\r\n\r\n"
    end

    # A GET with further header lines, each ended by CRLF.
    def get(fields = "", path: "/")
      "GET #{path} HTTP/1.1\r\nHost: a\r\n#{fields}\r\n"
    end

    # A POST with further header lines and a body.
    def post(fields, body = "", path: "/")
      "POST #{path} HTTP/1.1\r\nHost: a\r\n#{fields}\r\n#{body}"
    end

    # A POST with the body already in chunked form.
    def chunked(body, fields = "", path: "/")
      post("Transfer-Encoding: chunked\r\n#{fields}", body, path: path)
    end

    private

    def add(bytes, answers, ends, options, id = nil)
      id ||= next_id
      raise ArgumentError, "#{id} is read to its end" if ends == :dropped && bytes.bytesize <= READ_ON
      HttpRules.cases << Case.new(id, @title, bytes.b, answers, ends, @settings, options[:half_close],
                                  options[:tcp_only])
      id
    end

    def next_id
      id = "#{@number.to_s.rjust(2, "0")}#{@letter}"
      @letter = @letter.succ
      id
    end

    def answer(description)
      description = { status: description } unless description.is_a?(Hash)
      seen = description.except(:status, :fields, :head)
      Answer.new([*description.fetch(:status, 200)], seen, description.fetch(:fields, {}),
                 description.fetch(:head, false))
    end
  end

  # Adds rows to the table.
  def self.define(&block)
    Table.new.instance_eval(&block)
  end
end

Dir[File.join(__dir__, "rules/*.rb")].sort.each { |path| require path }

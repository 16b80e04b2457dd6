# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# Reads a stream of events by the letter of WHATWG HTML, section 9.2.6. It was written independently of the server's
# writer, so that the two check each other. Takes the stream in pieces of any size.
class EventStream
  Event = Struct.new(:type, :data, :id)

  # @return [Array<Event>] in order; take them out with shift
  attr_reader :events
  # @return [Integer] comments so far
  attr_reader :comments
  # @return [Integer, nil] milliseconds, once the stream has set it
  attr_reader :retry

  def initialize
    @rest = +"".b
    @begun = false
    @events = []
    @comments = 0
    @id = ""
    reset
  end

  # @param bytes [String]
  # @return [EventStream]
  def feed(bytes)
    @rest << bytes
    strip_mark or return self
    while (line = take_line)
      read(line)
    end
    self
  end

  private

  def reset
    @data = +""
    @type = ""
  end

  # A byte order mark at the very beginning does not belong to the text. False until that is known.
  def strip_mark
    return true if @begun

    mark = "\xEF\xBB\xBF".b
    return false if @rest.bytesize < 3 && mark.start_with?(@rest)

    @rest.slice!(0, 3) if @rest.start_with?(mark)
    @begun = true
  end

  # A CR at the end of the bytes may be half of a CRLF.
  def take_line
    match = /\r\n|\n|\r(?!\z)/n.match(@rest) or return
    line = match.pre_match
    @rest = match.post_match
    line.force_encoding(Encoding::UTF_8)
  end

  def read(line)
    return dispatch if line.empty?
    return @comments += 1 if line.start_with?(":")

    name, value = line.split(":", 2)
    field(name, (value || "").delete_prefix(" "))
  end

  def field(name, value)
    case name
    when "event" then @type = value
    when "data" then @data << value << "\n"
    when "id" then @id = value unless value.include?("\0")
    when "retry" then @retry = Integer(value, 10) if value.match?(/\A[0-9]+\z/)
    end
  end

  def dispatch
    @events << Event.new(@type.empty? ? "message" : @type, @data.delete_suffix("\n"), @id) unless @data.empty?
    reset
  end
end

# frozen_string_literal: false

# Answers with the number of objects made since the last request, minus those of the application itself. It measures its
# own objects by calling itself without a server. The rest is what the server makes per request.
class Allocations
  def initialize
    @seen = made
    @own = 0
    call({})
    call({})
    @own = Integer(call({})[2].first)
  end

  def call(_env)
    now = made
    text = (now - @seen - @own).to_s
    @seen = now
    [200, { "content-type" => "text/plain", "content-length" => text.bytesize.to_s }, [text]]
  end

  private

  def made
    GC.stat(:total_allocated_objects)
  end
end

run Allocations.new

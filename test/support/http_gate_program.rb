# frozen_string_literal: true

# The program of HTTPGate: a server that keeps answers back until it is told to give them. What is asked:
#
#   /wait/7    answers "49" when the gate is open
#   /inside    how many wait
#   /open, /shut, /kill/7 (each connection that asks for /wait/7 ends without an answer, until the gate is shut again)
#
#   GATE_PORT=80 ruby http_gate_program.rb [CERTIFICATE KEY]
# SPDX-License-Identifier: MIT

require "socket"
require "openssl" unless ARGV.empty?

$stdout.sync = true
lock = Mutex.new
changed = ConditionVariable.new
gate = { open: false, opened: 0, inside: {}, killed: [] }

change = lambda do |&block|
  lock.synchronize do
    block.call
    changed.broadcast
  end
  "done"
end

wait = lambda do |number|
  change.call { gate[:inside][Thread.current] = true }
  lock.synchronize do
    before = gate[:opened] # who wakes late still sees that the gate was open
    changed.wait(lock) until gate[:open] || gate[:opened] > before || gate[:killed].include?(number)
    gate[:inside].delete(Thread.current)
    gate[:killed].include?(number) ? nil : (number * 7).to_s
  end
end

# Returns nil to end the connection.
answer_to = lambda do |path|
  name, number = path.delete_prefix("/").split("/")
  case name
  when "wait" then wait.call(Integer(number))
  when "inside" then lock.synchronize { gate[:inside].size.to_s }
  when "open" then change.call { (gate[:open] = true) && gate[:opened] += 1 }
  when "shut" then change.call { (gate[:open] = false) || gate[:killed].clear }
  when "kill" then change.call { gate[:killed] << Integer(number) }
  end
end

serve = lambda do |client|
  while (line = client.gets)
    nil until client.gets.strip.empty?
    body = answer_to.call(line.split[1]) or break
    client.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
  end
rescue SystemCallError, IOError
  nil
ensure
  client.close
end

encrypt = lambda do |client|
  next client if ARGV.empty?

  certificate, key = ARGV.map { |path| File.read(path) }
  settings = OpenSSL::SSL::SSLContext.new
  settings.add_certificate(OpenSSL::X509::Certificate.new(certificate), OpenSSL::PKey.read(key))
  OpenSSL::SSL::SSLSocket.new(client, settings).tap do |socket|
    socket.sync_close = true
    socket.accept
  end
end

listener = TCPServer.new("127.0.0.1", Integer(ENV.fetch("GATE_PORT")))
listener.listen(256)
loop do
  client = listener.accept
  Thread.new do
    serve.call(encrypt.call(client))
  rescue StandardError
    client.close
  end
end

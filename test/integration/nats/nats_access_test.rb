# frozen_string_literal: true

# Who a server is for NATS, by TLS, and what it says when NATS does not take it.
# SPDX-License-Identifier: MIT

require_relative "nats_case"
require "support/certificates"
require "rondo"
require "rondo/pubsub/nats/credentials"

class NatsAccessTest < NatsCase
  def test_channels_go_to_other_servers_without_jetstream
    restart
    a = server(verb: plain)
    b = server(verb: plain)
    reader = reader(b, "news", "a.*")
    ["news", "a=2E=2A"].each { |name| eventually(name) { @nats.subscribers("rondo.p.#{name}") == 1 } }
    publish(a, "news", "1")
    publish(a, "a.*", "2")
    reader.read_until { reader.seen.size == 2 }
    assert_equal %w[1 2], reader.seen.sort
    assert_nil reader.last_id
  end

  def test_a_wrong_password_is_one_line_and_the_file_may_change
    restart("--user", "me", "--pass", "secret")
    write "password", "wrong\n"
    write "a.rb", "nats 'nats://127.0.0.1:#{@nats.port}', user: 'me', password_file: 'password'\n"
    a = start("-w", "2", "-C", "a.rb")
    a.wait_for_log(/NATS at 127.0.0.1:\d+ is not available: Authorization Violation; trying again/)
    write "password", "secret\n"
    a.wait_for_log(/is available again/)
    refute_match(/secret/, a.log)
    server(verb: "nats 'nats://me:secret@127.0.0.1:#{@nats.port}'")
  end

  def test_a_token
    restart("--auth", "t0ken")
    server(verb: "nats 'nats://127.0.0.1:1,nats://t0ken@127.0.0.1:#{@nats.port}'")
  end

  # What docs/NATS.md names. After 1 MB NATS asks a reader of a stream to answer at $JS.FC, and stops after 2 MB if it
  # does not.
  def test_a_user_who_may_no_more_than_it_needs
    publish, subscribe = [%w[rondo.p.> rondo.s.> $JS.API.> $JS.FC.>], %w[rondo.p.> _INBOX.>]].map { |names| JSON.generate(names) }
    restart(*STORE, "-c", conf(<<~CONF))
      authorization {
        users = [ { user: me, password: secret, permissions: { publish: #{publish}, subscribe: #{subscribe} } } ]
      }
    CONF
    a = server(verb: "nats 'nats://me:secret@127.0.0.1:#{@nats.port}', jetstream: true")
    reader = reader(a, "kept:x", "plain")
    %w[p.kept=3Ax p.plain].each { |name| eventually(name) { @nats.subscribers("rondo.#{name}") == 1 } }
    messages = Array.new(400) { |index| "#{index}-#{"x" * 7000}" }
    [["plain", "begin"], *messages.map { |message| ["kept:x", message] }].each do |channel, message|
      publish(a, channel, message)
      reader.read_until { reader.seen.last == message }
    end
    assert_equal ["begin", *messages], reader.seen
    refute_match(/Permissions Violation|is not available/, a.log)
  end

  def test_an_nkey
    seed, name = pair
    restart("-c", conf("authorization { users = [ { nkey: #{name} } ] }"))
    write "seed", "#{seed}\n"
    server(verb: "nats 'nats://127.0.0.1:#{@nats.port}', nkey: 'seed'")
  end

  def test_tls_with_a_certificate_of_the_client
    made = Certificates.new(@nats.folder)
    one, two = %w[server client].map { |name| made.pair(name) }
    restart("--tlsverify", "--tlscert", one.certificate, "--tlskey", one.key, "--tlscacert", made.authority)
    words = { ca_file: made.authority, cert: two.certificate, key: two.key }
    server(verb: "nats 'tls://127.0.0.1:#{@nats.port}', tls: #{words.inspect}")
    write "stranger.rb", "nats 'tls://127.0.0.1:#{@nats.port}'\n"
    start("-w", "1", "-C", "stranger.rb").wait_for_log(/is not available: .*certificate verify failed/)
  end

  def test_credentials_that_cannot_be_read
    restart
    { "creds: 'nowhere'" => /cannot read nowhere: No such file/, "nkey: 'rondo.rb'" => /rondo.rb has no seed of an nkey/,
      "creds: 'rondo.rb'" => /rondo.rb has no seed/ }.each_with_index do |(words, line), index|
      write "rondo.rb", "SUAB\n"
      write "a#{index}.rb", "nats '#{@nats.url}', #{words}\n"
      start("-w", "1", "-C", "a#{index}.rb").wait_for_log(line)
    end
  end

  def test_without_jetstream_a_line_says_so
    restart
    write "a.rb", "#{nats_verb}\n"
    a = start("-w", "2", "-C", "a.rb")
    a.wait_for_log(/is not available: JetStream does not answer: it is not enabled there, or has no leader/)
    write "b.rb", "nats '#{@nats.url}', jetstream: true, required: true\n"
    result = rondo("-q", "-w", "1", "-C", "b.rb", "-b", "tcp://127.0.0.1:0")
    refute_equal 0, result.code
    assert_match(/\Arondo: NATS at .* is not available: JetStream does not answer/, result.err.lines.last)
  end

  def test_what_cannot_be_a_setting_is_one_line
    { "'http://x'" => /not the address of a NATS server: http:/, "'nats://a:b@'" => /not the address of a NATS server: nats:/,
      "'nats://x', color: 1" => /unknown option color/, "'nats://x', prefix: 'a.b'" => /a prefix in NATS/,
      "'nats://x', jetstream: true, replicas: 0" => /replicas cannot be 0/ }.each do |words, line|
      write "bad.rb", "nats #{words}\n"
      result = rondo("-q", "-C", "bad.rb")
      refute_equal 0, result.code
      assert_match line, result.err
      assert_equal 1, result.err.lines.size
      refute_match(/a:b/, result.err)
    end
  end

  private

  def plain
    "nats #{@nats.url.inspect}"
  end

  # The first letters of a seed and of a name say what they are: SU and U.
  def pair
    key = OpenSSL::PKey.generate_key("ED25519")
    ["\x95\x00".b + key.private_to_der.byteslice(-32, 32), "\xA0".b + key.public_to_der.byteslice(-32, 32)].map do |bytes|
      tools = Rondo::PubSub::Nats::Credentials.new({})
      tools.send(:encode, bytes + [Rondo::PubSub::Queued.crc16(bytes)].pack("v"))
    end
  end

  # With other words.
  def restart(*words)
    @nats.restart(*words)
  end
end

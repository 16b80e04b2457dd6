# frozen_string_literal: true

# A NATS in operator mode: who connects shows a JWT that an account has signed, whose own an operator has signed, and
# signs what the server says with the seed of its file.
# SPDX-License-Identifier: MIT

require_relative "nats_case"
require "rondo"
require "rondo/pubsub/nats/credentials"

class NatsJwtTest < NatsCase
  # A key of NATS, and the tokens that it signs.
  class Nkey
    TOOLS = Rondo::PubSub::Nats::Credentials.new({})
    # First bytes of names, and of seeds.
    KINDS = { operator: 14 << 3, account: 0, user: 20 << 3 }.freeze
    SEED = 18 << 3

    def initialize(kind)
      @kind = kind
      @key = OpenSSL::PKey.generate_key("ED25519")
    end

    # @return [String]
    def name
      encode([KINDS[@kind]].pack("C") + @key.public_to_der.byteslice(-32, 32))
    end

    # The kind has eight bits of 16, behind five of the seed.
    def seed
      encode([SEED | (KINDS[@kind] >> 5), (KINDS[@kind] & 31) << 3].pack("CC") + @key.private_to_der.byteslice(-32, 32))
    end

    # @param subject [Nkey]
    # @param nats [Hash]
    # @return [String] JWT
    def sign(subject, label, nats, more = {})
      claims = { jti: SecureRandom.hex(16), iat: Time.now.to_i, iss: name, name: label, sub: subject.name, nats: { version: 2, **nats }, **more }
      text = [{ typ: "JWT", alg: "ed25519-nkey" }, claims].map { |part| url64(JSON.generate(part)) }.join(".")
      "#{text}.#{url64(@key.sign(nil, text))}"
    end

    private

    def encode(bytes)
      TOOLS.send(:encode, bytes + [Rondo::PubSub::Queued.crc16(bytes)].pack("v"))
    end

    def url64(bytes)
      [bytes].pack("m0").tr("+/", "-_").delete("=")
    end
  end

  LIMITS = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1,
             mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 }.freeze
  USER = { type: "user", subs: -1, data: -1, payload: -1 }.freeze

  def start_store
    super
    operator, @account, system = %i[operator account account].map { |kind| Nkey.new(kind) }
    accounts = { @account => LIMITS, system => LIMITS.except(:mem_storage, :disk_storage, :streams, :consumer) }
    lines = accounts.map { |key, limits| "#{key.name}: #{operator.sign(key, "one", type: "account", limits: limits)}" }
    @nats.restart("-c", conf(<<~CONF))
      operator: #{operator.sign(operator, "op", type: "operator", system_account: system.name)}
      resolver: MEMORY
      resolver_preload: { #{lines.join("\n")} }
      jetstream { store_dir: "#{@nats.folder}/store" }
    CONF
  end

  def test_a_server_with_credentials_keeps_channels
    write "user.creds", creds
    a, b = Array.new(2) { server(verb: "nats '#{@nats.url}', jetstream: true, creds: 'user.creds'") }
    reader = reader(b, "kept:x")
    wait_for_subscribers("kept:x", 1)
    publish(a, "kept:x", "1")
    reader.read_until { reader.seen == ["1"] }
  end

  # A new file counts from the next connection on.
  def test_a_file_may_change
    write "user.creds", creds(Nkey.new(:account))
    write "a.rb", "nats '#{@nats.url}', creds: 'user.creds'\n"
    a = start("-w", "2", "-C", "a.rb")
    a.wait_for_log(/^! NATS at \S+ is not available: Authorization Violation; trying again$/)
    write "user.creds", creds
    a.wait_for_log(/is available again/)
    write "user.creds", creds(seed: Nkey.new(:user).seed)
    from = a.log.bytesize
    @nats.kill
    @nats.start
    a.wait_for_log(/not available: Authorization Violation/, from: from)
    write "user.creds", creds
    a.wait_for_log(/is available again/, from: from + a.log.byteslice(from..).index("Authorization"))
    assert_equal 1, a.log.byteslice(from..).scan("Authorization Violation").size
    refute_match(/SU[A-Z2-7]{50}|eyJ/, a.log)
  end

  def test_an_old_user_is_one_line
    write "user.creds", creds(exp: Time.now.to_i - 1)
    write "a.rb", "nats '#{@nats.url}', creds: 'user.creds', required: true\n"
    result = rondo("-q", "-w", "1", "-C", "a.rb", "-b", "tcp://127.0.0.1:0")
    refute_equal 0, result.code
    assert_match(/\Arondo: NATS at \S+ is not available: .*(Authorization Violation|Expired)/i, result.err.lines.last)
    refute_match(/SU[A-Z2-7]{50}|eyJ/, result.err)
  end

  private

  # As nsc writes it.
  def creds(account = @account, seed: nil, exp: nil)
    user = Nkey.new(:user)
    token = account.sign(user, "me", USER, { exp: exp }.compact)
    <<~TEXT
      -----BEGIN NATS USER JWT-----
      #{token}
      ------END NATS USER JWT------

      ************************* IMPORTANT *************************
      NKEY Seed printed below can be used to sign and prove identity.

      -----BEGIN USER NKEY SEED-----
      #{seed || user.seed}
      ------END USER NKEY SEED------

      *************************************************************
    TEXT
  end
end

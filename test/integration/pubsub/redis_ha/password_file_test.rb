# frozen_string_literal: true

# Passwords in files that somebody replaces while the engine runs, and what is said when a file is not there.
# SPDX-License-Identifier: MIT

require_relative "../redis_case"
require "support/redis_ha"

class PasswordFileTest < RedisCase
  def setup
    super
    @folder = Dir.mktmpdir("rondo-password")
    @path = File.join(@folder, "password")
  end

  def teardown
    super
    @failover&.close
    FileUtils.rm_rf(@folder)
  end

  # The new password is allowed, the file replaced, the old one forbidden: no restart, no lost message.
  def test_a_password_that_changes
    server = redis(users: ["user default off", "user app on >first-secret ~* &* +@all", "user admin on nopass ~* &* +@all"])
    replace "first-secret"
    engine = connect("#{server.url("app")}?password_file=#{@path}")
    round_trip(engine, "1")
    admin(server, "ACL", "SETUSER", "app", ">second-secret")
    replace "second-secret"
    admin(server, "ACL", "SETUSER", "app", "<first-secret")
    admin(server, "CLIENT", "KILL", "USER", "app")
    eventually("an outage") { @log.string.include?("is not available") }
    round_trip(engine, "2")
    assert_equal 1, @log.string.scan("is not available").size, @log.string
    refute_match(/secret/, @log.string + engine.inspect)
  end

  def test_a_file_that_goes_away_and_comes_back
    server = redis("--requirepass", "the-secret")
    replace "the-secret"
    engine = connect("#{server.url}?password_file=#{@path}")
    File.delete(@path)
    server.cli("-a", "the-secret", "CLIENT", "KILL", "TYPE", "normal")
    eventually("a line about the file") { @log.string.include?("is not available: cannot read #{@path}: No such file or directory; trying again") }
    replace "wrong-secret"
    eventually("a line about the password") { @log.string.include?("WRONGPASS") }
    replace "the-secret"
    engine.wait_until_connected(PATIENCE)
    round_trip(engine, "1")
    refute_match(/-secret/, @log.string)
  end

  def test_sentinels_and_nodes_have_different_passwords
    @failover = RedisFailover.new("--requirepass", "node-secret", "--masterauth", "node-secret", password: "node-secret",
                                                                                                 sentinel_password: "sentinel-secret")
    replace "node-secret"
    sentinel = File.join(@folder, "sentinel")
    File.write(sentinel, "wrong-secret")
    engine = engine(@failover.url(options: "password_file=#{@path}&sentinel_password_file=#{sentinel}"))
    message = refusal_of(engine)
    assert_match(/is not available: no Sentinel names the master: WRONGPASS/, message)
    assert_equal 1, @log.string.lines.size, @log.string
    File.write(sentinel, "sentinel-secret\n")
    engine.wait_until_connected(PATIENCE)
    round_trip(engine, "1")
    refute_match(/-secret/, @log.string + engine.inspect)
  end

  private

  # As Kubernetes does it: the name points to another file, in one step.
  def replace(text)
    @count = @count.to_i + 1
    File.write(target = File.join(@folder, "version-#{@count}"), "#{text}\n")
    File.symlink(target, "#{@path}.new")
    File.rename("#{@path}.new", @path)
  end

  def admin(server, *words)
    server.cli("--user", "admin", "--pass", "any", "--no-auth-warning", *words)
  end

  def round_trip(engine, message)
    engine.subscribe("c", false)
    assert engine.publish("c", message)
    assert_equal [["c", message]], take(1)
  end
end

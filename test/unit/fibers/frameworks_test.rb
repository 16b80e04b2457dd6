# frozen_string_literal: true

# What frameworks keep for each thread, with fibers: the real ones, in processes of their own, because it cannot be
# undone. A whole Rails application is in test/apps/rails_fibers_test.rb.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "open3"
require "tempfile"

class FrameworksTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)

  # @return [Object] what the script returns
  def in_a_process(script)
    lines = script.strip.lines
    body = [*lines[..-2], "puts JSON.generate((#{lines.last.chomp}))\n"].join
    out, error, status = Open3.capture3(RbConfig.ruby, "-I#{ROOT}/lib", "-rjson", "-rlogger", "-e", body, chdir: Dir.tmpdir)
    assert_predicate status, :success?, error
    JSON.parse(out)
  end

  FIBERS = <<~RUBY
    require "rondo"
    require "active_support"
    require "active_support/current_attributes"
    require "active_support/concurrency/share_lock"
    require "i18n"

    class Current < ActiveSupport::CurrentAttributes
      attribute :user
    end

    # Each fiber keeps what it has set, while the other one has set something else.
    def both(&block)
      ready = [Queue.new, Queue.new]
      Rondo.fibers do |all|
        all.map([0, 1]) { |one| block.call(one, -> { (ready[one] << true) && ready[1 - one].pop }) }
      end
    end

    # The second one may not begin before the first one has ended.
    def order_of_locks
      lock = ActiveSupport::Concurrency::ShareLock.new
      order = []
      gate = Queue.new
      Rondo.fibers do |all|
        all.start { lock.sharing { order << "shares" && gate.pop && order << "ends" } }
        all.start { lock.exclusive { order << "alone" } }
        gate << true
      end
      order
    end

    def locales
      both do |one, meet|
        I18n.locale = %i[en de][one]
        meet.call
        I18n.locale
      end
    end

    def users
      both do |one, meet|
        Current.user = "fiber \#{one}"
        meet.call
        Current.user
      end
    end
    I18n.available_locales = %i[en de]
    Rondo::Frameworks.prepare(100, Rondo::Logger.errors_only)
  RUBY

  def test_active_support_and_i18n
    found = in_a_process("#{FIBERS}[users, order_of_locks, locales, I18n.with_locale(:de) { I18n.locale }, I18n.locale]")
    assert_equal [["fiber 0", "fiber 1"], %w[shares ends alone], %w[en de], "de", "en"], found
  end

  def test_without_fibers_nothing_is_changed
    script = FIBERS.sub("prepare(100,", "prepare(0,")
    assert_equal ["thread", false], in_a_process(
      "#{script}[ActiveSupport::IsolatedExecutionState.isolation_level, ActiveSupport::Concurrency::ShareLock.const_defined?(:Thread, false)]"
    )
  end

  DATABASES = <<~RUBY
    require "rondo"
    ENV["RAILS_ENV"] = "default_env"
    require "rondo/command/check"
    require "rondo/config/configuration"
    require "stringio"
    require "active_record"
    ActiveRecord::Base.configurations = { default_env: {
      primary: { adapter: "sqlite3", database: ":memory:", pool: 3 },
      copy: { adapter: "sqlite3", database: ":memory:", pool: 4, replica: true },
      north: { adapter: "sqlite3", database: ":memory:", pool: 50, checkout_timeout: 2.5 },
      south: { adapter: "sqlite3", database: ":memory:", pool: 9 }
    }, other: { primary: { adapter: "sqlite3", database: ":memory:", pool: 1 } } }

    class Place < ActiveRecord::Base
      self.abstract_class = true
      connects_to shards: { north: { writing: :north }, south: { writing: :south } }
    end
    ActiveRecord::Base.establish_connection(:primary)
    lent = -> { ActiveRecord::Base.connection_pool.stat.slice(:busy, :size) }
    ActiveRecord::Base.connection_pool.lease_connection.execute("SELECT 1")
    before = lent.call
    out = StringIO.new
    2.times { Rondo::Frameworks.prepare(10, Rondo::Logger.new(io: out)) }
    lines = out.string.lines.grep(/database/).map(&:chomp)
    given = { app: ->(_env) {}, bind: ["tcp://127.0.0.1:0"], fibers: 10 }.transform_values { |value| [value, "test"] }
    out.reopen(+"")
    Rondo::Check.new(Rondo::Settings::Resolved.new(given), Rondo::Configuration.new, out: out).run
    lines += out.string.lines.grep(/database/).map(&:chomp)
    [before, lent.call, lines, Rondo::Databases.lines(3), Rondo::Databases.lines(51).size]
  RUBY

  def test_active_record
    found = in_a_process(DATABASES)
    line = "10 fibers, and fewer connections to databases: primary (3), copy (4), south (9). A fiber that waits for a " \
           "connection longer than checkout_timeout (2.5 s) gets an error: set pool in config/database.yml, or fewer fibers"
    assert_equal [{ "size" => 3, "busy" => 1 }, { "size" => 3, "busy" => 0 }, ["! #{line}", "warning databases: #{line}"], [], 1], found
  end

  # Two fibers of a thread have a connection each.
  def test_sequel
    found = in_a_process(<<~RUBY)
      require "rondo"
      require "sequel"
      require "stringio"
      base = Sequel.connect("mock://user:secret@host/books", max_connections: 3)
      out = StringIO.new
      2.times { Rondo::Frameworks.prepare(9, Rondo::Logger.new(io: out)) }
      gate = Queue.new
      lent = Rondo.fibers do |all|
        waits = all.start { base.synchronize { |connection| gate.pop && connection.object_id } }
        takes = all.start { base.synchronize(&:object_id) }
        gate << true
        [waits.value, takes.value]
      end
      [out.string.lines, lent.uniq.size]
    RUBY
    assert_equal [["! 9 fibers, and fewer connections to databases: mock books (3). A fiber that waits for a connection " \
                   "longer than pool_timeout gets an error: set max_connections, or fewer fibers\n"], 2], found
  end

  RAILS = <<~RUBY
    class Shop < Rails::Application
      config.load_defaults Rails::VERSION::STRING.to_f
      config.eager_load = false
      config.logger = Logger.new(IO::NULL)
      config.active_support.isolation_level = LEVEL if LEVEL
    end
    Shop.initialize!
  RUBY
  ASK = <<~RUBY
    begin
      Rondo::Frameworks.prepare(10, Rondo::Logger.errors_only)
      said = nil
    rescue Rondo::ConfigurationError => e
      said = e.message
    end
    [said, ActiveSupport::IsolatedExecutionState.isolation_level]
  RUBY
  REFUSED = "fibers: the application sets config.active_support.isolation_level to :thread, and then requests in fibers " \
            "of one thread share their state: remove that line, or the setting fibers"

  # The library comes before, after, or inside.
  ORDERS = {
    "an_application_that_was_loaded_before" => "LEVEL = %p\nrequire 'rails'\nrequire 'rondo'\n#{RAILS}#{ASK}",
    "an_application_that_is_loaded" =>
      "LEVEL = %p\nrequire 'rondo'\nrequire 'rondo/boot/while_loading'\n" \
      "Rondo::WhileLoading.seek([Rondo::Frameworks.seeker]) do\nrequire 'rails'\n#{RAILS}end\n#{ASK}"
  }.freeze

  ORDERS.each do |name, script|
    define_method("test_#{name}_and_wants_threads") do
      assert_equal [REFUSED, "thread"], in_a_process(format(script, :thread))
    end
  end

  def test_an_application_that_wants_fibers
    assert_equal [nil, "fiber"], in_a_process(format(ORDERS.values.last, :fiber))
  end

  # In development Rails loads the class with the first query.
  def test_pools_that_are_not_there_yet
    Tempfile.create("database.yml") do |file|
      file.write("test:\n  primary: { adapter: sqlite3, pool: 7 }\n  copy: { adapter: sqlite3, replica: true }\n")
      file.flush
      rails = RAILS.sub("config.eager", "config.paths['config/database'] = #{file.path.dump}\n  config.eager")
      found = in_a_process(<<~RUBY)
        LEVEL = nil
        ENV["RAILS_ENV"] = "test"
        require "rails"
        require "active_record/railtie"
        require "rondo"
        #{rails}
        Rondo::Frameworks.prepare(4, Rondo::Logger.errors_only)
        [Rondo::Databases.sizes, ActiveRecord.autoload?(:Base).nil?, ActiveSupport::IsolatedExecutionState.isolation_level]
      RUBY
      assert_equal [{ "primary" => 7, "copy" => 5 }, false, "fiber"], found
    end
  end

  # No such version runs here: only its number is there.
  def test_rails_that_knows_no_fibers
    said, = in_a_process(<<~RUBY)
      require "rondo"
      require "active_support"
      module ActiveRecord; module VERSION; MAJOR = 6; STRING = "6.1.7"; end; end
      #{ASK}
    RUBY
    assert_equal "fibers need activerecord 7.0 or newer: 6.1.7 keeps for each thread what belongs to one request", said
  end
end

# frozen_string_literal: true

# Workers share nothing of the mold by accident: connections of real databases, threads, random numbers.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ClusterForkSafetyTest < ClusterCase
  ACTIVE_RECORD = <<~RUBY
    require "rubygems" # Active Record takes it for given
    require "active_record"
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "test.db", timeout: 5000)
    ActiveRecord::Schema.verbose = false
    ActiveRecord::Schema.define { create_table(:visits) { |t| t.integer :pid } unless table_exists?(:visits) }
    class Visit < ActiveRecord::Base; end
    Visit.count # the mold is connected
    run lambda { |env|
      Visit.create!(pid: Process.pid)
      body = Visit.distinct.pluck(:pid).join(",")
      ActiveRecord::Base.connection_handler.clear_active_connections!
      [200, {}, [body]]
    }
  RUBY
  SEQUEL = <<~RUBY
    require "sequel"
    DB = Sequel.sqlite("test.db", timeout: 5000)
    DB.create_table?(:visits) { Integer :pid }
    DB[:visits].count # the mold is connected
    run lambda { |env|
      DB[:visits].insert(pid: Process.pid)
      [200, {}, [DB[:visits].distinct.select_map(:pid).join(",")]]
    }
  RUBY

  { "active_record" => ACTIVE_RECORD, "sequel" => SEQUEL }.each do |name, app|
    define_method("test_#{name}_connects_in_each_worker") do
      write "config.ru", app
      server = cluster
      pids = workers(server).values
      load = load_on(server, clients: 1)
      eventually("visits of both") { get(server).body.split(",").map(&:to_i).sort == pids.sort }
      assert_empty files_of_database(mold(server))
      pids.each { |pid| refute_empty files_of_database(pid) }
      Process.kill("KILL", pids.first)
      wait_for_workers(server, 3)
      load.more(20)
      load.stop
      refute_match(/malformed|misuse|disk I|forked/i, server.log)
    end
  end

  def test_the_mold_warms_up_once_when_the_application_is_loaded
    skip "Ruby #{RUBY_VERSION} has no Process.warmup" unless Process.respond_to?(:warmup)

    write "config.ru", <<~RUBY
      Process.singleton_class.prepend(Module.new do
        def warmup
          File.write("warmups", "\#{Process.pid} \#{defined?(VERSION_OF_CODE)}\\n", mode: "a")
          super
        end
      end)
      #{APP}
    RUBY
    server = cluster
    assert_includes workers(server).values.map(&:to_s), get(server).body
    assert_equal ["#{mold(server)} constant\n"], File.readlines(File.join(@folder, "warmups"))
  end

  def test_threads_that_will_be_missing_are_named
    write "config.ru", "Thread.new { sleep }.name = 'metrics'\n#{APP}"
    server = cluster
    assert_match(/^! 1 thread started while the application was loaded will not be in the workers; .*#<Thread:\S+@metrics config\.ru:1/, server.log)
    assert_includes workers(server).values.map(&:to_s), get(server).body
  end

  def test_threads_that_do_not_mind_are_not_named
    write "config.ru", "Thread.new { sleep }.thread_variable_set(:fork_safe, true)\n#{APP}"
    refute_match(/will not be in the workers/, cluster.log)
  end

  def test_random_numbers_differ
    write "config.ru", "srand(1)\nrand\nrun ->(env) { [200, {}, [rand.to_s]] }\n"
    server = cluster(workers: 2)
    assert_operator Array.new(8) { get(server).body }.uniq.size, :>, 6
    assert_match(/\A0\.\d+\z/, get(server).body)
  end

  def test_what_a_worker_starts_gets_its_signals
    write "config.ru", "run ->(env) { [200, {}, [`trap`, IO.popen(['grep', '-E', 'Sig(Blk|Ign)', '/proc/self/status'], &:read)]] }\n"
    masks = get(cluster).body.scan(/Sig(?:Blk|Ign):\s+(\h+)/).flatten.map { |text| text.to_i(16) }
    shell = File.read("/proc/self/status").scan(/Sig(?:Blk|Ign):\s+(\h+)/).flatten.map { |text| text.to_i(16) }
    assert_equal 0, masks.zip(shell).sum { |child, own| child & ~own & 0xffff }, masks.inspect
  end

  private

  def files_of_database(pid)
    Dir["/proc/#{pid}/fd/*"].filter_map { |link| File.readlink(link) rescue nil }.grep(/test\.db/)
  end
end

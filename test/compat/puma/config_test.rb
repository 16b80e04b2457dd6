# frozen_string_literal: true

# Configuration files as applications have them (files/), evaluated by Puma and by Rondo: Rondo takes what Puma takes,
# and each thing that a file sets for Puma is set here, or a boot line says why it needs no setting. The files are written for
# this test; they use what public applications use, and each verb in each form that the files of Puma's own tests have.
# tools/install_puma installs Puma.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "open3"

class PumaConfigTest < Minitest::Test
  HERE = __dir__
  LIB = File.expand_path("../../../lib", __dir__)
  FILES = Dir[File.join(HERE, "files/*.rb")].freeze
  # Where tools/install_puma puts the gems.
  GEMS = File.expand_path("../../../build/puma/gems", __dir__)

  # Puma refuses these; older versions took them.
  OF_OLDER_PUMA = %w[default_rackup].freeze
  # What a file sets for Puma, and nothing here: the verb of the boot line that says so.
  SAID = { "restart_cmd" => "restart_command", "prune_bundler" => nil, "queue_requests" => nil, "io_selector_backend" => nil,
           "wait_for_less_busy_worker" => nil, "extra_runtime_dependencies" => nil, "silence_single_worker_warning" => nil,
           "silence_fork_callback_warning" => nil }.freeze
  HOOKS = %w[before_fork before_worker_boot before_worker_shutdown before_worker_fork after_worker_fork after_worker_shutdown
             before_refork after_refork before_restart before_thread_start before_thread_exit out_of_band].freeze
  # Parts of others.
  PARTS = %w[single cluster config_files control_url_temp remote_address_header remote_address_value
             remote_address_proxy_protocol store].freeze
  OBJECTS = %w[app lowlevel_error_handler log_formatter custom_logger].freeze

  def before_setup
    super
    GC.stress = false # the servers are other processes
  end

  def evaluate(server, *folders)
    includes = [*folders, LIB, File.join(HERE, "plugins")].flat_map { |folder| ["-I", folder] }
    out, err, status = Open3.capture3({ "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil }, RbConfig.ruby, *includes,
                                      File.join(HERE, "evaluate.rb"), server, *FILES)
    assert_predicate status, :success?, err
    JSON.parse(out)
  end

  def puma_folders
    found = Dir[File.join(GEMS, "ruby/*/{gems,extensions/*/*}/{puma,nio4r}-*")]
    skip "Puma is not installed: tools/install_puma does that" if found.empty?
    found.flat_map { |folder| [folder, File.join(folder, "lib")] }.select { |folder| File.directory?(folder) }
  end

  def test_every_effect
    puma, rondo = evaluate("puma", *puma_folders), evaluate("rondo")
    assert_operator FILES.size, :>=, 64
    assert_equal OF_OLDER_PUMA, puma.select { |_, found| found["refused"] }.keys, puma.filter_map { |name, found| [name, found["refused"]] if found["refused"] }
    assert_empty(rondo.filter_map { |name, found| "#{name}: #{found["refused"]}" if found["refused"] })
    lost = puma.flat_map do |name, found|
      (found["settings"] || {}).filter_map do |key, value|
        why = lost(key, value, rondo.fetch(name).fetch("settings")) and "#{name}: #{key} #{value.inspect}: #{why}"
      end
    end
    assert_empty lost, lost.join("\n")
  end

  private

  # @return [String, nil] what Rondo makes of it, if that is something else
  def lost(key, value, rondo)
    return if PARTS.include?(key)
    return unsaid(SAID[key] || key, rondo["notes"]) if SAID.key?(key)
    return other(value, rondo["hooks"][key]) if HOOKS.include?(key)
    return value.filter_map { |event, count| other(count, rondo["hooks"][event]) }.first if key == "events"
    return lost_address(key, value, rondo) if %w[binds remote_address default_host].include?(key)

    other(expected(key, value), found(key, rondo["options"]))
  end

  def unsaid(verb, notes)
    "no boot line" if notes.none? { |line| line.start_with?("#{verb}:") }
  end

  def other(expected, found)
    found.inspect unless expected == found
  end

  def found(key, options)
    value = options[key]
    return "token" if key == "control_auth_token" && value.nil?

    OBJECTS.include?(key) ? !value.nil? : value
  end

  # The same value as Rondo has it.
  def expected(key, value)
    case key
    when "min_threads" then [value, 1].max
    when "force_shutdown_after" then value.negative? ? 86_400 : value
    when "max_keep_alive" then value == "infinite" ? 0 : value
    when "control_url" then value.include?("puma-status") ? "auto" : value
    when "control_auth_token" then value.match?(/\A\h{32}\z/) ? "token" : value # a random one
    when *OBJECTS then true
    when "pidfile" then value || nil # false is none
    else value
    end
  end

  def lost_address(key, value, rondo)
    options = rondo["options"]
    case key
    when "default_host" then other(value, rondo["port_host"])
    when "remote_address" then options.slice("client_field", "client_address", "proxy_protocol_optional").inspect unless client?(value, options)
    else other(value.map { |uri| place(uri) }, options["binds"].map { |uri| place(uri, rondo["any_host"]) })
    end
  end

  def client?(form, options)
    { "header" => "client_field", "value" => "client_address", "proxy_protocol" => "proxy_protocol_optional" }.then do |names|
      names.key?(form) && options[names[form]]
    end
  end

  # All interfaces have two names; the words of TLS have an order and escapes.
  def place(uri, any = nil)
    place, words = uri.split("?", 2)
    place = place.sub(/#{Regexp.union(["[::]", "0.0.0.0", any].compact)}/, "*")
    [place, words.to_s.split("&").map { |word| word.gsub(/%(\h\h)/) { $1.hex.chr } }.sort]
  end
end

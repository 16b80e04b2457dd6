# frozen_string_literal: true

# `rondo bench --against puma`: both serve the same application, in turns. tools/install_puma installs Puma.
# SPDX-License-Identifier: MIT

require "integration/shell_case"
require "json"
require "support/bench_page"

class PumaBenchTest < ShellCase
  include BenchPage

  GEMS = File.join(ROOT, "build/puma/gems/ruby", RbConfig::CONFIG["ruby_version"])

  def setup
    super
    skip "Puma is not installed: tools/install_puma does that" if Dir.glob("#{GEMS}/gems/puma-*").empty?
    write("config.ru", "run ->(env) { [200, { 'x-server' => env['SERVER_SOFTWARE'].to_s }, ['hello']] }\n")
  end

  def test_both
    result = rondo("bench", "--against", "puma", "--seconds", "0.2", "--rounds", "3", "-c", "8", "--json", "all.json",
                   env: { "GEM_PATH" => [GEMS, *Gem.path].join(":") })
    assert_equal [0, ""], [result.code, result.err]
    document = JSON.parse(read("all.json"))
    assert_page(document, read("rondo-bench.html"))
    assert_equal %w[rondo puma], document["servers"].map { |server| server["name"] }
    document["servers"].each { |server| assert_equal 3, server["rounds"].size }
    rounds = document["servers"].map { |server| server["rounds"].map { |round| round["busy"]["rps"] } }
    ratios = rounds[1].zip(rounds[0]).map { |theirs, ours| theirs / ours }.sort
    assert_in_delta ratios[1], document["servers"][1]["ratios"]["busy"]["rps"], 1e-9
    assert_match(/Puma \S+, as multiples of Rondo: requests\/s/, result.out)
    here = Dir.glob("/proc/[0-9]*/cwd").select { |link| File.readlink(link) == @folder rescue false }
    assert_empty here
  end
end

# frozen_string_literal: true

# The Dockerfile of examples/recipes, built and run without Docker (tools/run_container): its steps install this gem, which a
# static folder serves as rubygems.org, and the image's command is process 1 of its own processes.
# SPDX-License-Identifier: MIT

require "integration/shell_case"
require_relative "image"

class DockerfileTest < ShellCase
  RECIPES = File.join(ROOT, "examples/recipes")
  GEMS = %w[rack redis-client connection_pool].freeze

  # Process 1 of a container is a child of unshare(1).
  class Contained < Server
    def first
      File.read("/proc/#{pid}/task/#{pid}/children").split.fetch(0).to_i
    end

    private

    def send_signal(name)
      Process.kill(name, first) unless name.to_s == "0"
    end

    def command_line(_app, _settings, _config, _binds, args)
      args
    end
  end

  def setup
    super
    @base = ENV.fetch("RONDO_TEST_CONTAINER", nil) or skip "RONDO_TEST_CONTAINER names no root: tools/run_container makes one"
    FileUtils.cp_r(File.join(RECIPES, "app/."), File.join(@folder, "app"))
    write "app/Gemfile.lock", lock
  end

  def test_the_image_builds_serves_and_ends
    image = Image.new(File.read(File.join(RECIPES, "Dockerfile")), base: @base, context: File.join(@folder, "app"), work: @folder,
                                                                   registry: registry.url)
    assert_small(image)
    server = run_image(image)
    assert_equal "up\n", get_port(image, "/up")
    assert_unprivileged(server, image)
    assert_equal [0, 0], [check(server, image), check(server, image)]
    assert_equal 0, server.stop(signal: "TERM").exitstatus
    assert_match(/Goodbye!/, server.log)
  end

  private

  def versions
    Bundler.load.specs.select { |spec| GEMS.include?(spec.name) }.to_h { |spec| [spec.name, spec.version.to_s] }
  end

  def lock
    rows = { "rondo" => Rondo::VERSION, **versions }.sort.map do |name, version|
      needs = { "rondo" => "      rack (>= 2.2, < 4)\n", "redis-client" => "      connection_pool\n" }.fetch(name, "")
      "    #{name} (#{version})\n#{needs}"
    end
    "GEM\n  remote: https://rubygems.org/\n  specs:\n#{rows.join}\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n  redis-client\n  rondo\n"
  end

  # @return [Server] of a folder with an index of gems
  def registry
    folder = File.join(@folder, "registry")
    FileUtils.mkdir_p(File.join(folder, "gems"))
    versions.each do |name, version|
      file = Gem.path.map { |path| File.join(path, "cache/#{name}-#{version}.gem") }.find { |path| File.file?(path) }
      FileUtils.cp(file, File.join(folder, "gems"))
    end
    Bundler.with_unbundled_env do
      package = File.join(folder, "gems/rondo-#{Rondo::VERSION}.gem")
      [["build", "--output", package, "rondo.gemspec"], ["generate_index", "--directory", folder]].each do |words|
        said, status = Open3.capture2e(Gem.ruby, "-S", "gem", *words, chdir: ROOT)
        assert status.success?, said
      end
    end
    start("-www", folder)
  end

  def run_image(image)
    server = Contained.new(nil, args: image.inside(image.last.command), env: BLANK)
    @servers << server
    server.wait_for_log(/Use Ctrl-C/)
    server
  end

  def get_port(image, path)
    Net::HTTP.get(URI("http://127.0.0.1:#{image.last.ports.fetch(0)}#{path}"))
  end

  # Compilers stay in the stage that builds.
  def assert_small(image)
    refute_path_exists File.join(image.last.root, "usr/bin/gcc")
    refute_path_exists File.join(image.last.root, "usr/local/bundle/cache")
    sizes = %w[build last].map { |name| `du -sk #{File.join(@folder, name)}`.to_i }
    assert_operator sizes[1], :<, sizes[0]
  end

  # Process 1 and the server have the image's user, who can write only to tmp.
  def assert_unprivileged(server, image)
    first = server.first
    serving = File.read("/proc/#{first}/task/#{first}/children").split.map(&:to_i)
    assert_equal 1, serving.size
    [first, *serving].each { |pid| assert_match(/^Uid:\t1000\t1000\t1000\t1000$/, File.read("/proc/#{pid}/status")) }
    assert_match(/^NSpid:\t\d+\t1$/, File.read("/proc/#{first}/status"))
    refute system(*image.beside(first, %w[touch /app/config.ru]), err: File::NULL)
    assert system(*image.beside(first, %w[touch tmp/mine]))
  end

  def check(server, image)
    said, status = Open3.capture2e(*image.beside(server.first, image.last.check))
    assert status.success?, said
    status.exitstatus
  end
end

# frozen_string_literal: true

# Makes the root of an image by the steps of a Dockerfile, with chroot in the place of Docker. It knows the instructions that the
# recipe has, and raises for others.
# SPDX-License-Identifier: MIT

require "fileutils"
require "json"
require "open3"

class Image
  # One stage: its root, and what its instructions set.
  Stage = Struct.new(:root, :env, :folder, :user, :ports, :check, :command, keyword_init: true)
  # What the image `ruby` sets.
  BASE = { "PATH" => "/usr/local/bundle/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG" => "C.UTF-8",
           "GEM_HOME" => "/usr/local/bundle", "BUNDLE_APP_CONFIG" => "/usr/local/bundle", "BUNDLE_SILENCE_ROOT_WARNING" => "1",
           "HOME" => "/root" }.freeze
  # With mounts and processes of its own, which end with the command.
  SPACE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c",
           'mount -t proc proc "$0/proc" && exec chroot "$@"'].freeze

  # @param base [String] folder that stands for the image with Ruby
  # @param context [String] folder of the application
  # @param work [String] folder for the roots
  # @param registry [String] URL of what stands for rubygems.org
  def initialize(dockerfile, base:, context:, work:, registry:)
    @base = base
    @context = context
    @work = work
    @registry = registry
    @stages = {}
    instructions(dockerfile).each { |name, words| step(name, words) }
  end

  # @return [Stage] that the image is made of
  def last
    @stages.values.last
  end

  # @return [Array<String>] a command in a root of this image, as its user
  # @param words [Array<String>]
  def inside(words, stage = last)
    [*SPACE, stage.root, *chroot(stage, words)]
  end

  # @return [Array<String>] the same in the container of this process
  def beside(pid, words, stage = last)
    ids = File.readlines(File.join(stage.root, "etc/passwd")).find { |line| line.start_with?("#{stage.user}:") }.split(":")
    ["nsenter", "--target", pid.to_s, "--mount", "--pid", "chroot", "--userspec=#{ids[2]}:#{ids[3]}", stage.root, *entered(stage, words)]
  end

  private

  def instructions(dockerfile)
    lines = dockerfile.gsub(/\\\n\s*/, " ").lines(chomp: true)
    lines.reject { |line| line.empty? || line.start_with?("#") }.map { |line| line.split(" ", 2) }
  end

  def step(name, words)
    case name
    when "FROM" then begin_stage(words[/ AS (\w+)\z/, 1] || "last")
    when "RUN" then run(words)
    when "COPY" then copy(*words.split)
    when "WORKDIR" then FileUtils.mkdir_p(path(last.folder = words))
    when "ENV" then last.env.merge!(words.split.to_h { |word| word.split("=", 2) })
    when "USER" then last.user = words
    when "EXPOSE" then last.ports = words.split
    when "HEALTHCHECK" then last.check = JSON.parse(words[/CMD (.*)/, 1])
    when "CMD" then last.command = JSON.parse(words)
    else raise "unknown instruction #{name}"
    end
  end

  def begin_stage(name)
    root = File.join(@work, name)
    system("cp", "-a", @base, root, exception: true)
    FileUtils.cp("/etc/resolv.conf", File.join(root, "etc/resolv.conf"))
    File.write(File.join(root, "usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n", perm: 0o755)
    FileUtils.mkdir_p(File.join(root, "root/.bundle"))
    File.write(File.join(root, "root/.bundle/config"), "---\nBUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: \"#{@registry}\"\n")
    @stages[name] = Stage.new(root: root, env: BASE.dup, folder: "/")
  end

  def run(words)
    said, status = Open3.capture2e(*inside(["sh", "-c", words]))
    raise "RUN #{words}\n#{said}" unless status.success?
  end

  # COPY [--from=STAGE] SOURCE... TARGET
  def copy(*words)
    from = words.first[/\A--from=(\w+)/, 1]
    words.shift if from
    *sources, target = words
    target = path(File.expand_path(target, last.folder))
    sources.each { |source| copy_one(from ? File.join(@stages.fetch(from).root, source) : File.join(@context, source), target) }
  end

  # Of a folder its contents, as Docker does.
  def copy_one(source, target)
    FileUtils.mkdir_p(target)
    system("cp", "-a", File.directory?(source) ? "#{source}/." : source, target, exception: true)
  end

  def path(inner)
    File.join(last.root, inner)
  end

  def chroot(stage, words)
    [*("--userspec=#{stage.user}" if stage.user), stage.root, *entered(stage, words)]
  end

  def entered(stage, words)
    ["env", "-i", *stage.env.map { |pair| pair.join("=") }, "sh", "-c", 'cd "$0" && exec "$@"', stage.folder, *words]
  end
end

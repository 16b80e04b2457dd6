# frozen_string_literal: true

# `rondo completion SHELL` prints a script by which a shell completes the commands and options of `rondo`. Words and
# descriptions are those of `rondo --help`; the man page (tools/gen_man_page) is made from the same ones.
# SPDX-License-Identifier: MIT

require "rondo/boot/application"
require "rondo/command/cli"

module Rondo
  # Makes the scripts.
  class Completion
    SHELLS = %w[bash zsh fish].freeze
    HELP = <<~TEXT.freeze
      Usage: rondo completion #{SHELLS.join(" | ")}

        bash   eval "$(rondo completion bash)"      in ~/.bashrc
        zsh    eval "$(rondo completion zsh)"       in ~/.zshrc, after compinit
        fish   rondo completion fish | source       in ~/.config/fish/config.fish
    TEXT
    # What commands are for.
    COMMANDS = { "init" => "write a configuration file; with --full every setting in it",
                 "check" => "check whether a start would succeed",
                 "cert" => "certificates: renew, status, trust", "ctl" => "control a running server",
                 "top" => "show what a running server does", "completion" => "print a script for a shell",
                 "publish" => "publish a message through a running server",
                 "bench" => "measure the application and say what to set",
                 "start" => "serve, as without a command", "server" => "serve, as without a command",
                 "help" => "show the options", "version" => "show the version",
                 "node" => "serve on Node, with the gem rondo-node" }.freeze

    # An option: its spellings, the name of its argument, what it does.
    Option = Struct.new(:names, :argument, :help, keyword_init: true)

    # @return [Hash{String => Array<Option>}] by heading of `rondo --help`
    def self.sections
      heading = nil
      CLI.new([]).option_list.each_with_object({}) do |entry, found|
        next heading = entry[/\w.*(?=:)/] if entry.is_a?(String)

        argument = entry.arg.to_s.strip.delete_prefix("=")
        (found[heading] ||= []) << Option.new(names: [*entry.short, *entry.long], help: entry.desc.join(" "),
                                              argument: (argument unless argument.empty?))
      end
    end

    # @return [Hash{String => String}] words after `rondo`, with what they are for
    def self.commands
      Application::COMMANDS.to_h { |name| [name, COMMANDS.fetch(name)] }
    end

    # @param arguments [Array<String>]
    # @param out [IO]
    # @param err [IO]
    def initialize(arguments, out: $stdout, err: $stderr)
      @arguments = arguments
      @out = out
      @err = err
    end

    # @return [Integer] exit code
    def run
      shell, *rest = @arguments
      return say(HELP) if shell.nil? || %w[-h --help help].include?(shell)
      return complain("too many arguments: #{rest.join(" ")}") if rest.any?
      return complain("unknown shell #{shell}#{Server.nearest(shell, SHELLS)}") unless SHELLS.include?(shell)

      say(send(shell))
    end

    private

    def say(text)
      @out.puts text
      0
    end

    def complain(line)
      @err.puts "rondo: #{Logger.escape(line)}; use one of #{SHELLS.join(", ")}"
      2
    end

    def options
      @options ||= self.class.sections.values.flatten
    end

    def verbs
      require "rondo/command/ctl"
      require "rondo/command/cert"
      { "ctl" => Ctl::VERBS, "cert" => Cert::VERBS.keys, "completion" => SHELLS }
    end

    def bash
      <<~BASH
        _rondo() {
            local current=${COMP_WORDS[COMP_CWORD]} words
            case ${COMP_WORDS[1]} in
        #{verbs.map { |name, words| "        #{name}) words=\"#{words.join(" ")}\" ;;" }.join("\n")}
                *) words= ;;
            esac
            [ "$COMP_CWORD" -gt 1 ] || words="#{self.class.commands.keys.join(" ")}"
            case $current in
                -*) words="#{options.flat_map(&:names).join(" ")}" ;;
            esac
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        }
        complete -o bashdefault -o default -F _rondo rondo
      BASH
    end

    def zsh
      lines = options.flat_map { |option| option.names.map { |name| "    '#{name}#{zsh_option(option)}'" } }
      <<~ZSH
        #compdef rondo
        _rondo() {
            local -a commands verbs
            commands=(#{self.class.commands.map { |name, help| "'#{name}:#{zsh_plain(help)}'" }.join(" ")})
            case ${words[2]} in
        #{verbs.map { |name, words| "        #{name}) verbs=(#{words.join(" ")}) ;;" }.join("\n")}
            esac
            _arguments \\
        #{lines.join(" \\\n")} \\
            '1: :{ _describe command commands; _files }' '*: :{ compadd -a verbs; _files }'
        }
        compdef _rondo rondo
      ZSH
    end

    def zsh_option(option)
      "[#{zsh_plain(option.help)}]#{":#{zsh_plain(option.argument)}:_files" if option.argument}"
    end

    def fish
      commands = self.class.commands.map do |name, help|
        "complete -c rondo -n __fish_use_subcommand -a #{name} -d '#{plain(help)}'"
      end
      words = verbs.map do |name, all|
        "complete -c rondo -n '__fish_seen_subcommand_from #{name}' -a '#{all.join(" ")}'"
      end
      [*commands, *words, *options.map { |option| fish_option(option) }].join("\n")
    end

    def fish_option(option)
      names = option.names.map { |name| name.start_with?("--") ? "-l #{name.delete_prefix("--")}" : "-s #{name[1]}" }
      "complete -c rondo #{names.join(" ")}#{" -r" if option.argument} -d '#{plain(option.help)}'"
    end

    # Without what shells read in a description.
    def plain(text)
      text.tr("[]", "()").delete("'\\\\`$\"")
    end

    def zsh_plain(text)
      plain(text).gsub(":", "\\:")
    end
  end
end

# frozen_string_literal: true

# The verbs of the configuration file that lib/rondo/config/verbs.rb makes from the tables of settings: their words for
# YARD (public_api.rb), and their signatures (tools/gen_signatures). Needs the compiled extension.
# SPDX-License-Identifier: MIT

$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "rondo/config/configuration"

# The list of them.
module GeneratedVerbs
  Settings = Rondo::Settings
  Verbs = Rondo::Configuration::Verbs

  # A verb.
  # @!attribute words [String] what it means, in one sentence
  # @!attribute unit [String, nil] of its value
  # @!attribute kind [Symbol] key of TYPES
  Verb = Struct.new(:name, :words, :unit, :kind, keyword_init: true) do
    # @return [String] its words for YARD
    def docstring
      [words, *tags].join("\n")
    end

    # @return [Array<Array(String, String)>] as YARD has parameters
    def parameters
      TYPES.fetch(kind).parameters
    end

    # @return [String] its type for RBS
    def signature
      TYPES.fetch(kind).signature
    end

    private

    def tags
      type = TYPES.fetch(kind)
      about = unit && "(#{unit})"
      type.tags.map { |tag| tag.sub(" VALUE", " #{about}".rstrip) }
    end
  end

  Type = Struct.new(:parameters, :tags, :signature)

  def self.value(yard, rbs)
    Type.new([["value", nil]], ["@param value [#{yard}] VALUE"], "(#{rbs} value) -> void")
  end
  private_class_method :value

  HOOK = "() { (*untyped) -> void } -> void | (Symbol | String key) { (*untyped) -> void } -> void"
  TYPES = {
    bool: Type.new([%w[value true]], ["@param value [Boolean, Integer, String, nil]"],
                   "(?(bool | Integer | String)? value) -> void"),
    truth: value("Boolean, Integer, String, nil", "(bool | Integer | String)?"),
    number: value("Integer, String, Symbol", "Integer | String | Symbol"),
    seconds: value("Numeric, String, nil", "(Numeric | String)?"),
    object: value("Object, nil", "untyped"),
    text: value("String, nil", "String?"),
    choice: value("Symbol, String, nil", "(Symbol | String)?"),
    path: value("String, Pathname, nil", "(String | Pathname)?"),
    paths: value("String, Array<String>, nil", "(String | Array[String])?"),
    hook: Type.new([%w[key nil], ["&block", nil]],
                   ["@param key [Symbol, String, nil] hooks with the same key share a Hash, their last argument",
                    "@yield see docs/CONFIGURATION.md, Hooks"], HOOK),
    accepted: Type.new([["*", nil]], [], "(*untyped, **untyped) ?{ (*untyped) -> untyped } -> void")
  }.freeze
  KINDS = { switch: :bool, seconds: :seconds, count: :number, size: :number, port: :number, workers: :number,
            permission: :number, choice: :choice, text: :text, any: :object, object: :object, nats: :text,
            path: :path, written_file: :path, folder: :path, paths: :paths, addresses: :paths, names: :paths,
            secrets: :paths }.freeze

  module_function

  # @return [Array<Verb>] in the order of the tables, also those that the source defines in another way
  def all
    (of_core + renamed + of_shell + hooks + accepted).uniq(&:name)
                                                     .select { |verb| Verbs.public_method_defined?(verb.name, false) }
  end

  def of_core
    Settings::CORE.map { |name, row| core_verb(name, row) }
  end

  # @param truth [Symbol] the kind of a switch
  def core_verb(name, row, truth = :bool)
    kind = row[:unit] == "bool" ? truth : :number
    Verb.new(name: name, words: sentence(row[:doc]), unit: "#{row[:unit]}; default #{row[:default]}", kind: kind)
  end

  def renamed
    Settings::CORE_NAMES.select { |_, names| names.verb }.map do |name, names|
      row = Settings::CORE.fetch(name)
      next core_verb(names.verb, row, :truth) unless name.end_with?("_ms")

      Verb.new(name: names.verb, words: "#{sentence(row[:doc])} The setting `#{name}`.",
               unit: "seconds; default #{format("%g", row[:default] / 1000.0)}", kind: :seconds)
    end
  end

  def of_shell
    Settings::ROWS.select(&:verb_name).map do |row|
      Verb.new(name: row.verb_name.to_sym, words: sentence(row.doc), unit: row.unit, kind: KINDS.fetch(row.kind))
    end
  end

  def hooks
    Verbs::HOOKS.merge(Verbs::WORKER_HOOKS, Verbs::REFORK_HOOKS).map do |verb, name|
      words = "Puma's older name of {##{name}}."
      words = "Adds a hook; docs/CONFIGURATION.md says when it runs." if verb == name
      Verb.new(name: verb, words: words, kind: :hook)
    end
  end

  def accepted
    Verbs::BUILT_IN.map { |verb, why| Verb.new(name: verb, words: "Accepted: #{why}.", kind: :accepted) } +
      Verbs::WITHOUT_MEANING.map { |verb| Verb.new(name: verb, words: "Accepted, without effect.", kind: :accepted) }
  end

  def sentence(text)
    "#{text[0].upcase}#{text[1..]}#{"." unless text.end_with?(".")}"
  end
end

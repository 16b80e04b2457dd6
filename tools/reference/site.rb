# frozen_string_literal: true

# The site of `rake site`. YARD makes the pages, by the templates beside this file; here the links between guides get
# their pages, headings get the anchors that links on GitHub have, and the index for search.js is made.
# SPDX-License-Identifier: MIT

require "cgi"
require "fileutils"
require "json"
require "yard"
require "yard/templates/helpers/markup/hybrid_markdown"

# Builds it.
class Site
  GUIDES = ["README.md", "docs/*.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/decisions/*.md"].freeze
  ASSETS = %w[tools/reference/assets/site.css tools/reference/assets/search.js].freeze
  TEMPLATES = File.join(__dir__, "templates")
  HEADING = %r{<h([1-6])[^>]*>(.*?)</h\1>}m
  LINK = /<(a|img)\b([^>]*?)\b(href|src)="([^"]*)"([^>]*)>/
  # A table without titles, which YARD's Markdown does not take for one.
  UNTITLED = /^\|(?: *\|)+$(?=\n\| ?:?---)/
  WORD = /[[:alpha:]_][\w:?!]{2,}|\d{3,}/
  private_constant :GUIDES, :ASSETS, :TEMPLATES, :HEADING, :LINK, :UNTITLED, :WORD

  # @param folder [String] is emptied first
  def initialize(folder)
    @folder = folder
    @guides = Dir.glob(GUIDES).uniq
    @pages = @guides.to_h { |path| [path, "file.#{File.basename(path, ".md")}.html"] }
    @index = []
  end

  # @return [Array<String>] links that lead nowhere, one line each
  def build
    FileUtils.rm_rf(@folder)
    run_yard
    @guides.each { |path| finish_guide(path) }
    FileUtils.cp(page("file.README.html"), page("index.html"))
    index_reference
    copy_assets
    File.write(page("search_index.js"), "window.rondoIndex = #{JSON.generate(@index)};\n")
    dead_links
  end

  private

  def page(name)
    File.join(@folder, name)
  end

  def run_yard
    YARD::Registry.clear
    YARD::Templates::Engine.register_template_path(TEMPLATES)
    YARD::Templates::Helpers::Markup::HybridMarkdown.prepend(Untitled)
    YARD::CLI::Yardoc.run("--quiet", "--no-cache", "--no-save", "--markup", "markdown", "--title", "Rondo",
                          "--output-dir", @folder, "--files", @guides.join(","))
  end

  # Gives such tables a title that nobody sees.
  module Untitled
    # @param text [String]
    def initialize(text, options = {})
      super(text.gsub(UNTITLED) { |row| row.sub("|", "| &nbsp;") }, **options)
    end
  end

  def finish_guide(path)
    file = page(@pages.fetch(path))
    html = with_anchors(File.read(file))
    html = html.gsub(LINK) { link(path, *Regexp.last_match.captures) }
    File.write(file, html)
    index_guide(path, html)
  end

  # As GitHub makes them, in the same order.
  def with_anchors(html)
    counts = Hash.new(0)
    html.gsub(HEADING) do
      level, text = Regexp.last_match.captures
      slug = plain(text).downcase.gsub(/[^\p{Alnum}\- _]/, "").tr(" ", "-")
      count = counts[slug]
      counts[slug] += 1
      %(<h#{level} id="#{slug}#{"-#{count}" if count.positive?}">#{text}</h#{level}>)
    end
  end

  # A source has no page: what names it stays, without a link.
  def link(path, tag, before, name, target, after)
    return "<#{tag}#{before}#{name}=\"#{target}\"#{after}>" if target.match?(/\A(?:[a-z]+:|#|\z)/) || built?(target)

    file, anchor = target.split("#", 2)
    found = File.join(File.dirname(path), file).then { |name_| Pathname(name_).cleanpath.to_s }
    found = found.end_with?("docs/decisions") ? "_index.html" : @pages[found] || picture(found)
    return "<#{tag} class=\"elsewhere\" title=\"#{CGI.escapeHTML(target)}\">" unless found

    "<#{tag}#{before}#{name}=\"#{found}#{"##{anchor}" if anchor}\"#{after}>"
  end

  def built?(target)
    File.exist?(page(target.sub(/#.*/, ""))) || ASSETS.any? { |path| path.end_with?("/#{target}") } ||
      %w[index.html search_index.js].include?(target)
  end

  def picture(path)
    return unless path.match?(/\.(?:svg|png)\z/) && File.exist?(path)

    FileUtils.cp(path, page(File.basename(path)))
    File.basename(path)
  end

  def copy_assets
    FileUtils.cp(ASSETS, @folder)
  end

  # One entry for each section: its heading, where it is, the guide, its words.
  def index_guide(path, html)
    main = html[%r{<main.*?</main>}m]
    title = plain(main[%r{<h1.*?</h1>}m].to_s)
    main.split(/(?=<h[1-6] id=)/).each do |section|
      anchor = section[/\A<h[1-6] id="([^"]*)"/, 1] or next
      add(plain(section[HEADING, 2]), "#{@pages[path]}##{anchor}", title, plain(section))
    end
  end

  def index_reference
    serializer = YARD::Serializers::FileSystemSerializer.new
    PublicApi.objects.each do |object|
      space = object.is_a?(YARD::CodeObjects::NamespaceObject) ? object : object.namespace
      url = serializer.serialized_path(space)
      url += "##{anchor_of(object)}" unless space == object
      words = [object.docstring, *object.tags.map { |tag| [tag.name, tag.text] }].join(" ")
      add(object.path, url, object.type.to_s, "#{object.name} #{words}")
    end
  end

  # An alias is described where the method is.
  def anchor_of(object)
    return "#{object.name}-constant" if object.type == :constant

    "#{object.namespace.aliases[object] || object.name}-#{object.scope}_method"
  end

  def add(title, url, about, text)
    @index << [title, CGI.unescapeHTML(url).gsub(/[<>\[\]]/) { |c| format("%%%02X", c.ord) }, about,
               text.downcase.scan(WORD).uniq.join(" ")]
  end

  def plain(html)
    CGI.unescapeHTML(html.gsub(/<[^>]*>/, "")).strip.gsub(/\s+/, " ")
  end

  # Each file of the site, and the anchors in it.
  def dead_links
    anchors = Dir.glob("**/*.html", base: @folder).to_h do |name|
      [name, File.read(page(name)).scan(/\bid="([^"]*)"/).flatten.map { |id| CGI.unescapeHTML(id) }]
    end
    of_index = @index.map { |entry| ["search_index.js", entry[1]] }
    (anchors.keys.flat_map { |name| links_of(name) } + of_index).uniq
      .reject { |name, target| leads_somewhere?(name, target, anchors) }.map { |name, target| "#{name}: #{target}" }
  end

  def links_of(name)
    File.read(page(name)).scan(LINK).map { |link| [name, CGI.unescapeHTML(link[3])] }
        .reject { |_, target| target.match?(/\A[a-z]+:/) }
  end

  def leads_somewhere?(name, target, anchors)
    file, anchor = target.split("#", 2)
    file = file.to_s.empty? ? name : Pathname(File.join(File.dirname(name), CGI.unescape(file))).cleanpath.to_s
    return false unless File.file?(page(file))

    anchor.nil? || anchor.empty? || anchors.fetch(file, []).include?(CGI.unescape(anchor.gsub("+", "%2B")))
  end
end

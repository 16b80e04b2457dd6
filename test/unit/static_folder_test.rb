# frozen_string_literal: true

# The folder of `public` before it is opened.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "pathname"
require "tmpdir"
require "rondo/config/settings"

class StaticFolderTest < Minitest::Test
  def setup
    @folder = File.realpath(Dir.mktmpdir)
    FileUtils.mkdir(File.join(@folder, "site"))
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def find(given)
    Dir.chdir(@folder) { Rondo::StaticFolder.find(given) }
  end

  def complaint(given)
    assert_raises(Rondo::ConfigurationError) { find(given) }.message
  end

  def test_the_way_there_is_kept_as_it_was_given
    File.symlink("site", File.join(@folder, "current"))
    assert_equal "#{@folder}/site", find("site")
    assert_equal "#{@folder}/site", find("./site/")
    assert_equal "#{@folder}/site", find(Pathname.new("site"))
    assert_equal "#{@folder}/current", find("#{@folder}/current")
  end

  def test_a_name_is_no_home
    FileUtils.mkdir(File.join(@folder, "~root"))
    assert_equal "#{@folder}/~root", find("~root")
  end

  def test_what_is_no_folder
    File.write(File.join(@folder, "file"), "")
    assert_equal "public: cannot read the folder #{@folder}/nowhere: No such file or directory", complaint("nowhere")
    assert_equal "public: cannot read the folder #{@folder}/file: Not a directory", complaint("file")
    assert_equal "public: the name of the folder is empty", complaint("")
    assert_equal "public must be the path of a folder, not 5", complaint(5)
    assert_match(/\Apublic must be the path of a folder, not "a/, complaint("a\0b"))
    error = assert_raises(Rondo::ConfigurationError) { Rondo::StaticFolder.find("/nowhere/at all", "x_sendfile_root") }
    assert_match(/\Ax_sendfile_root: cannot read the folder /, error.message)
  end

  # ---- the page for errors ----

  def page
    Rondo::StaticFolder.error_page("#{@folder}/site")
  end

  def test_the_page_is_read_when_it_is_wanted
    assert_nil page
    File.write("#{@folder}/site/500.html", "<p>sorry")
    assert_equal "<p>sorry", page
    File.write("#{@folder}/site/500.html", "")
    assert_nil page
    assert_nil Rondo::StaticFolder.error_page(nil)
    assert_nil Rondo::StaticFolder.error_page("#{@folder}/nowhere")
  end

  def test_a_page_that_is_too_large
    File.write("#{@folder}/site/500.html", "x" * (1 << 20))
    assert_equal 1 << 20, page.bytesize
    File.write("#{@folder}/site/500.html", "x" * ((1 << 20) + 1))
    assert_nil page
  end

  def test_a_page_that_is_no_file
    File.write("#{@folder}/secret", "secret")
    at = "#{@folder}/site/500.html"
    [-> { File.symlink("#{@folder}/secret", at) }, -> { File.mkfifo(at) }, -> { Dir.mkdir(at) }].each do |make|
      make.call
      assert_nil page
      FileUtils.rm_rf(at)
    end
  end

  # ---- the setting ----

  # The application may change its directory.
  def test_it_is_looked_for_once
    settings = Rondo::Settings::Resolved.new(public: %w[site test])
    Dir.chdir(@folder) { settings.public_folder }
    assert_equal "#{@folder}/site", settings.public_folder
    assert_equal "#{@folder}/site", settings.server_options(nil)[:public]
    assert_nil Rondo::Settings::Resolved.new.server_options(nil)[:public]
  end

  def test_so_are_those_of_the_application
    settings = Rondo::Settings::Resolved.new(x_sendfile_root: [%w[site], "test"])
    Dir.chdir(@folder) { settings.find_folders }
    assert_equal ["#{@folder}/site"], settings.server_options(nil)[:x_sendfile_roots]
    assert_nil Rondo::Settings::Resolved.new.server_options(nil)[:x_sendfile_roots]
  end
end

# frozen_string_literal: true

# The static folder as users see it: the options of the command line and the configuration file, their errors, with and
# without an application, with workers, over restarts.
# SPDX-License-Identifier: MIT

require_relative "shell_case"

class FilesTest < ShellCase
  NOWHERE = "127.0.0.1:0"

  def setup
    super
    write "site/index.html", "home\n"
    write "site/note.txt", "note\n"
  end

  def body(server, path)
    get(server, path).body
  end

  # ---- options ----

  def test_words_of_the_command_line
    write "config.ru", HELLO
    [%w[-www site], %w[--public site], %w[--public=site], ["-www", File.join(@folder, "site"), "config.ru"]].each do |words|
      server = start(*words)
      assert_equal ["note\n", "hello"], [body(server, "/note.txt"), body(server, "/other")], words.inspect
      assert_match(/^\* Serving files of #{@folder}\/site$/, server.log)
      server.stop
    end
  end

  def test_the_verb_and_the_folder_that_paths_begin_in
    write "config/rondo.rb", "public 'site'\n"
    write "config.ru", HELLO
    assert_equal "note\n", body(start, "/note.txt")
    write "deep/config.ru", HELLO
    write "deep/www/note.txt", "deep\n"
    assert_equal "deep\n", body(start("--dir", "deep", "-www", "www"), "/note.txt")
    write "config/rondo.rb", "directory 'deep'\npublic 'www'\n"
    assert_equal "deep\n", body(start, "/note.txt")
    assert_match(%r{^ok      files: #{@folder}/deep/www$}, rondo("check", "-b", "tcp://#{NOWHERE}").out)
  end

  def test_words_that_look_like_others
    assert_complaint 2, /workers must be a number or auto, not "wwsite"/, rondo("-wwwsite")
    assert_complaint 2, /missing argument: --public/, rondo("-www")
    assert_complaint 2, /invalid option --publi; did you mean --public\?/, rondo("--publi", "site")
  end

  # ---- folders that cannot be served ----

  def test_a_folder_that_cannot_be_served_is_one_line
    write "config.ru", HELLO
    { "nowhere" => "No such file or directory", "config.ru" => "Not a directory" }.each do |name, reason|
      complaint = /\Arondo: public: cannot read the folder #{@folder}\/#{name}: #{reason}$/
      [%w[-w 0], %w[-w 2]].each { |words| assert_complaint 1, complaint, rondo(*words, "-www", name) }
      result = rondo("check", "-www", name)
      assert_equal 1, result.code
      assert_match(/^failed  files: public: cannot read the folder #{@folder}\/#{name}: #{reason}$/, result.out)
    end
    assert_complaint 1, /public: the name of the folder is empty$/, rondo("-www", "")
  end

  def test_a_folder_that_may_not_be_read
    FileUtils.mkdir(File.join(@folder, "closed"), mode: 0o000)
    File.chmod(0o755, @folder)
    assert_complaint 1, %r{public: cannot read the folder #{@folder}/closed: Permission denied}, powerless("-www", "closed")
  end

  # ---- while Ruby is stuck ----

  def test_answers_go_on_while_ruby_is_stuck
    write "site/large", "x" * 3_000_000
    while_stuck(-> { start("-www", "site") }) do |server|
      assert_equal ["note\n", 3_000_000], [body(server, "/note.txt"), body(server, "/large").bytesize]
      write "site/new.txt", "new\n"
      assert_equal "new\n", body(server, "/new.txt")
    end
  end

  # ---- pages for errors ----

  def test_the_page_of_an_application_that_raises
    write "config.ru", "run ->(env) { raise 'no luck' }\n"
    server = start("-www", "site", "-e", "production")
    assert_equal ["500", "Internal Server Error\n"], [get(server, "/x").code, body(server, "/x")]
    write "site/500.html", "<p>sorry"
    response = get(server, "/x")
    assert_equal ["500", "text/html; charset=utf-8", "<p>sorry"], [response.code, response["content-type"], response.body]
    assert_match(/no luck/, server.log)
    assert_match(/no luck/, body(start("-www", "site", "-e", "development"), "/x"))
  end

  def test_the_page_of_a_server_without_an_application
    write "site/404.html", "<p>gone"
    response = get(start("-www", "site"), "/nothing")
    assert_equal ["404", "text/html; charset=utf-8", "<p>gone"], [response.code, response["content-type"], response.body]
  end

  # ---- without an application ----

  def test_without_an_application_only_files_are_there
    [%w[-w 0], %w[-w 2]].each do |words|
      server = start("-www", "site", *words)
      server.wait_for_log(/^\* +App: none$/)
      assert_equal ["home\n", "404", "405"],
                   [body(server, "/"), get(server, "/other").code, Net::HTTP.post(URI("#{server.url}/"), "x").code]
      assert server.stop.success?
    end
    result = rondo("check", "-www", "site", "-b", "tcp://#{NOWHERE}")
    assert_match(/^ok      application: none; only files are served$/, result.out)
  end

  def test_an_application_that_is_named_has_to_be_there
    assert_complaint 1, /no application: shop does not exist/, rondo("-q", "-www", "site", "shop")
    write "config/rondo.rb", "rackup 'shop.ru'\n"
    assert_complaint 1, /no application: shop\.ru does not exist/, rondo("-q", "-www", "site")
  end

  def test_files_before_the_application_in_a_cluster
    write "config.ru", "run ->(env) { [200, {}, [env['REQUEST_METHOD']]] }\n"
    server = start("-www", "site", "-w", "2")
    assert_equal ["note\n", "GET"], [body(server, "/note.txt"), body(server, "/other")]
    assert_equal "POST", Net::HTTP.post(URI("#{server.url}/note.txt"), "x").body
  end
end

package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LibrarySearchTest {
  private static final OptionalLibrary LIBRARY =
      new OptionalLibrary("test", "libcuvettetest.so", "cuvettetest64_", "nothing");

  @TempDir Path folder;

  private Path file(String name) throws IOException {
    Path file = folder.resolve(name);
    Files.createDirectories(file.getParent());
    return Files.writeString(file, "");
  }

  @Test
  void libraryPath_isSearchedFirst() throws IOException {
    Path one = file("one/libcuvettetest.so.12");
    Path configuration = file("ld.so.conf");
    Files.writeString(configuration, folder.resolve("two") + "\n");
    file("two/libcuvettetest.so.13");
    Map<String, String> environment =
        Map.of("LD_LIBRARY_PATH", folder.resolve("missing") + "::" + one.getParent());
    LibrarySearch search = new LibrarySearch(environment, configuration, "Linux");
    assertThat(search.find(LIBRARY)).contains(one);
    assertThat(search.folders()).as("not where the program runs").doesNotContain(Path.of(""));
  }

  @Test
  void includesOfTheLoaderConfiguration_areRead() throws IOException {
    Path library = file("deep/libcuvettetest.so.1.2.3");
    Path configuration = file("ld.so.conf");
    Files.writeString(configuration, "# comment\ninclude conf.d/*.conf\n");
    Files.writeString(file("conf.d/b.conf"), folder.resolve("deep") + " # here\n");
    Files.writeString(file("conf.d/self.conf"), "include " + configuration + "\n");
    assertThat(new LibrarySearch(Map.of(), configuration, "Linux").find(LIBRARY)).contains(library);
  }

  @Test
  void cudaHome_isSearchedToo() throws IOException {
    Path library = file("cuda/lib64/libcuvettetest.so");
    Map<String, String> environment = Map.of("CUDA_HOME", folder.resolve("cuda").toString());
    assertThat(new LibrarySearch(environment, folder.resolve("none"), "Linux").find(LIBRARY))
        .contains(library);
  }

  /** Where the toolkit is installed if nobody says otherwise: behind what is named. */
  @Test
  void folderOfTheToolkit_isSearchedLast_butForPackages() {
    Map<String, String> named = Map.of("CUDA_PATH", folder.toString());
    LibrarySearch search = new LibrarySearch(named, folder.resolve("none"), "Linux");
    Path usual = Path.of("/usr/local/cuda/lib64");
    assertThat(search.folders())
        .containsSubsequence(folder.resolve("lib64"), Path.of("/usr/lib64"), usual);
    assertThat(new LibrarySearch(Map.of(), folder.resolve("none"), "Windows 11").folders())
        .doesNotContain(usual);
  }

  @Test
  void newestVersion_isByNumber() throws IOException {
    file("lib/libcuvettetest.so.9.2");
    file("lib/libcuvettetest.so");
    Path newest = file("lib/libcuvettetest.so.13.0");
    Map<String, String> environment = Map.of("LD_LIBRARY_PATH", newest.getParent().toString());
    assertThat(new LibrarySearch(environment, folder.resolve("none"), "Linux").find(LIBRARY))
        .contains(newest);
  }

  @Test
  void packagesOfPython_areSearched_theNewestPythonFirst() throws IOException {
    file("env/lib/python3.9/site-packages/nvidia/cu13/lib/libcuvettetest.so.13");
    Path library = file("env/lib/python3.12/site-packages/nvidia/test/lib/libcuvettetest.so.12");
    Map<String, String> environment = Map.of("VIRTUAL_ENV", folder.resolve("env").toString());
    assertThat(new LibrarySearch(environment, folder.resolve("none"), "Linux").find(LIBRARY))
        .contains(library);
    Map<String, String> home = Map.of("HOME", folder.resolve("home").toString());
    Path own =
        file("home/.local/lib/python3.11/site-packages/nvidia/test/lib/libcuvettetest.so.12");
    assertThat(new LibrarySearch(home, folder.resolve("none"), "Linux").find(LIBRARY))
        .contains(own);
  }

  /** They are shown where a library is missing. */
  @Test
  void onlyFoldersThatAreMeant_areSearched() throws IOException {
    Path configuration = file("ld.so.conf");
    Files.writeString(
        configuration,
        "hwcap 0 nosegneg\n\nrelative/folder\n"
            + folder.resolve("meant")
            + "\n#"
            + folder.resolve("comment")
            + "\ninclude\ninclude none/*.conf\n");
    file("env/lib/python3.9/site-packages/nvidia/__init__.py");
    file("env/lib/python3.9/site-packages/nvidia/headers/include/a.h");
    file("env/lib/python3.9/site-packages/nvidia/text/lib");
    file("env/lib/python2.7/site-packages/nvidia/old/lib/libcuvettetest.so");
    Path wheel = file("env/lib/python3.9/dist-packages/nvidia/test/lib/libcuvettetest.so");
    Map<String, String> environment =
        Map.of("CONDA_PREFIX", folder.resolve("env").toString(), "CUDA_HOME", "", "HOME", " ");
    LibrarySearch search = new LibrarySearch(environment, configuration, "Linux");
    assertThat(search.folders()).allMatch(Path::isAbsolute);
    assertThat(search.folders().stream().filter(each -> each.startsWith(folder)))
        .containsExactly(folder.resolve("meant"), wheel.getParent());
    assertThat(search.folders()).startsWith(folder.resolve("meant"), Path.of("/lib"));
    assertThat(new LibrarySearch(Map.of(), configuration, "Linux").folders())
        .startsWith(folder.resolve("meant"), Path.of("/lib"));
  }

  @Test
  void missingLibrary_isEmpty() {
    assertThat(new LibrarySearch(Map.of(), folder.resolve("none"), "Linux").find(LIBRARY))
        .isEmpty();
  }

  @Test
  void whatIsMissing_saysWhereItWasLookedFor_andWhatToInstall() {
    assertThat(LIBRARY.find()).isEmpty();
    assertThat(LIBRARY.missing())
        .startsWith("test is missing: no file libcuvettetest.so* in /")
        .contains("/usr/local/cuda/lib64")
        .endsWith("; install nothing");
  }

  @Test
  void eachListOfFolders_isSplitAsOnItsSystem() {
    Map<String, String> environment =
        Map.of("PATH", "/a;/b:c; ;/d", "LD_LIBRARY_PATH", "/e:/f;g::/h", "CUDA_PATH", "/i");
    Path none = folder.resolve("none");
    assertThat(new LibrarySearch(environment, none, "Windows 11").folders())
        .startsWith(Path.of("/a"), Path.of("/b:c"), Path.of("/d"), Path.of("/i/lib64"))
        .endsWith(Path.of("/i/bin"));
    assertThat(new LibrarySearch(environment, none, "Linux").folders())
        .startsWith(Path.of("/e"), Path.of("/f;g"), Path.of("/h"), Path.of("/i/lib64"));
  }

  @Test
  void library_hasWhatItWasGiven() {
    OptionalLibrary library = new OptionalLibrary("a", "b", "c", "d");
    assertThat(library.title()).isEqualTo("a");
    assertThat(library.file()).isEqualTo("b");
    assertThat(library.windowsFile()).isEqualTo("c");
    assertThat(library.install()).isEqualTo("d");
  }

  @Test
  void onWindows_thePathIsSearched() throws IOException {
    Path library = file("bin/cuvettetest64_13.dll");
    Map<String, String> environment = Map.of("PATH", library.getParent().toString());
    assertThat(new LibrarySearch(environment, folder.resolve("none"), "Windows 11").find(LIBRARY))
        .contains(library);
  }
}

package io.cuvette.internal.program;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HeadersTest {
  @TempDir private Path folder;
  private Path first;
  private Path second;

  @BeforeEach
  void makeFolders() throws IOException {
    first = Files.createDirectories(folder.resolve("first/sub")).getParent();
    second = Files.createDirectory(folder.resolve("second"));
    Files.writeString(first.resolve("a.h"), "#include \"sub/b.h\"\n");
    Files.writeString(first.resolve("sub/b.h"), "#include \"c.h\"\n#include \"../a.h\"\n");
    Files.writeString(first.resolve("sub/c.h"), "int c;");
    Files.writeString(second.resolve("c.h"), "int other;");
  }

  private Optional<List<String>> found(String source) throws IOException {
    Optional<SortedMap<Path, byte[]>> files =
        Headers.of(source, "p.cu", Map.of(), List.of(first, second));
    return files.map(
        all -> all.keySet().stream().map(file -> folder.relativize(file).toString()).toList());
  }

  @Test
  void includedFiles_areFound_withWhatTheyInclude() throws IOException {
    assertThat(found("#include <a.h>\n"))
        .contains(List.of("first/a.h", "first/sub/b.h", "first/sub/c.h", "second/c.h"));
    assertThat(found("int a;")).contains(List.of());
    assertThat(found("#include <nothing.h>\n#include <nv/target>\n")).contains(List.of());
  }

  /** However it is written. */
  @Test
  void directives_areFoundInAnyForm() throws IOException {
    for (String directive :
        new String[] {
          "#include <c.h>",
          "  #  include   \"c.h\" // why",
          "\t#\tinclude<c.h>",
          "%:include <c.h>",
          "#include_next <c.h>",
          "#inc\\\nlude <c.h>",
          "# \\\r\n include <c.h>",
          "/* x */ #include <c.h>",
          "#in\\ \t\nclude \"c.h\"",
          "#if 0\n#include <c.h>\n#endif",
          "#if __has_include(<c.h>)",
          "#define HAS(x) __has_include(x)\n#if HAS( \"c.h\" )",
        }) {
      assertThat(found("int a;\n" + directive + "\nint b;")).as(directive).isPresent();
      assertThat(found("int a;\n" + directive + "\nint b;").orElseThrow())
          .as(directive)
          .contains("second/c.h");
      assertThat(found(directive).orElseThrow()).as("alone: %s", directive).contains("second/c.h");
    }
    assertThat(found("\\\n#inc\\\nlude <c.h>").orElseThrow()).contains("second/c.h");
  }

  @Test
  void whatAMacroNames_isNotKnown() throws IOException {
    for (String directive :
        new String[] {"#include NAME", "#  include NAME(x)", "#/**/include <c.h>", "#include"}) {
      assertThat(found("int a;\n" + directive + "\n")).as(directive).isEmpty();
    }
    assertThat(found("// the #include of a file\nchar* s = \"#include X\";\n")).isPresent();
  }

  @Test
  void headerInTheCurrentFolder_isBesideAProgramWhoseNameHasNone() throws IOException {
    Path header = Files.createTempFile(Path.of(""), "beside", ".h");
    try {
      String text = "#include \"%s\"\n".formatted(header.getFileName());
      assertThat(Headers.of(text, "p.cu", Map.of(), List.of()).orElseThrow())
          .containsOnlyKeys(header.toAbsolutePath().normalize());
    } finally {
      Files.delete(header);
    }
  }

  @Test
  void headersInMemory_areScannedToo() throws IOException {
    Optional<SortedMap<Path, byte[]>> files =
        Headers.of("int a;", "p.cu", Map.of("m.h", "#include <sub/c.h>\n"), List.of(first, second));
    assertThat(files.orElseThrow()).containsOnlyKeys(first.resolve("sub/c.h"));
  }

  /** A name with a folder has files beside it, as another has in the folder of the process. */
  @Test
  void headersInMemory_haveWhatIsBesideTheirNames() throws IOException {
    Files.writeString(folder.resolve("beside.h"), "int beside;");
    Map<String, String> given = Map.of(folder.resolve("m.h").toString(), "#include \"beside.h\"\n");
    assertThat(Headers.of("int a;", "p.cu", given, List.of()).orElseThrow())
        .containsOnlyKeys(folder.resolve("beside.h"));
  }

  /** As a compiler looks: beside the text for names in quotes alone, and a text may be nowhere. */
  @Test
  void namesInQuotes_areLookedForBesideTheText_andOthersAreNot() throws IOException {
    Files.writeString(folder.resolve("beside.h"), "int beside;");
    Files.writeString(folder.resolve("c.h"), "int third;");
    String here = folder.resolve("p.cu").toString();
    List<Path> folders = List.of(second);
    assertThat(Headers.of("#include \"beside.h\"\n", here, Map.of(), folders).orElseThrow())
        .containsOnlyKeys(folder.resolve("beside.h"));
    assertThat(Headers.of("#include <beside.h>\n", here, Map.of(), folders).orElseThrow())
        .isEmpty();
    assertThat(Headers.of("#include \"c.h\"\n", here, Map.of(), folders).orElseThrow())
        .containsOnlyKeys(folder.resolve("c.h"), second.resolve("c.h"));
    for (String nowhere : List.of("/", "\0")) {
      assertThat(Headers.of("#include \"c.h\"\n", nowhere, Map.of(), folders).orElseThrow())
          .as(nowhere)
          .containsOnlyKeys(second.resolve("c.h"));
    }
  }

  /** One that is not is enough. */
  @Test
  void headersOfSeveralTexts_areKnown_ifAllAre() throws IOException {
    String known = "#include <c.h>\n";
    String unknown = "#include NAME\n";
    List<Path> folders = List.of(first, second);
    for (String source : List.of(known, unknown)) {
      for (String one : List.of(known, unknown)) {
        for (String other : List.of(known, unknown)) {
          Map<String, String> given = new TreeMap<>(Map.of("m.h", one, "n.h", other));
          boolean all = source.equals(known) && one.equals(known) && other.equals(known);
          assertThat(Headers.of(source, "p.cu", given, folders).isPresent()).isEqualTo(all);
        }
      }
    }
  }

  @Test
  void tooMuch_isNotKnown() throws IOException {
    for (int i = 0; i < 5_002; i++) {
      Files.writeString(second.resolve("h" + i), "#include <h" + (i + 1) + ">\n");
    }
    assertThat(found("#include <h0>\n")).isEmpty();
  }

  /** One file more, and nobody reads them all. */
  @Test
  void moreFilesThanAnyProgramHas_areNotKnown() throws IOException {
    StringBuilder source = new StringBuilder();
    for (int i = 0; i < 5_000; i++) {
      Files.createFile(second.resolve("f" + i));
      source.append("#include <f").append(i).append(">\n");
    }
    assertThat(found(source.toString()).orElseThrow()).hasSize(5_000);
    assertThat(found(source + "#include <c.h>\n")).isEmpty();
  }

  /** Nobody reads through a quarter of a gigabyte: the file is one of zeros, and takes no room. */
  @Test
  void moreBytesThanAnyProgramHas_areNotKnown() throws IOException {
    try (RandomAccessFile large = new RandomAccessFile(second.resolve("l.h").toFile(), "rw")) {
      large.setLength((256L << 20) + 1);
    }
    assertThat(found("#include <l.h>\n")).isEmpty();
  }
}

package io.cuvette.internal.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CacheSettingsTest {
  private static final Map<String, String> HOME = Map.of("user.home", "/of/me");

  @Test
  void folder_isThatOfTheFirstSetting() {
    Map<String, String> all = Map.of("CUVETTE_CACHE", "/of/variable", "XDG_CACHE_HOME", "/of/xdg");
    assertThat(
            CacheSettings.folder(
                Map.of("cuvette.cache", "/of/property", "user.home", "/of/me"), all))
        .isEqualTo(Path.of("/of/property"));
    assertThat(CacheSettings.folder(HOME, all)).isEqualTo(Path.of("/of/variable"));
    assertThat(CacheSettings.folder(HOME, Map.of("XDG_CACHE_HOME", "/of/xdg")))
        .isEqualTo(Path.of("/of/xdg/cuvette"));
    assertThat(CacheSettings.folder(HOME, Map.of("XDG_CACHE_HOME", "relative")))
        .isEqualTo(Path.of("/of/me/.cache/cuvette"));
    assertThat(CacheSettings.folder(HOME, Map.of("CUVETTE_CACHE", " ")))
        .isEqualTo(Path.of("/of/me/.cache/cuvette"));
  }

  @Test
  void nothingIsKept_whereTheSettingSaysSo_orNoFolderIsKnown() {
    assertThat(CacheSettings.folder(Map.of("cuvette.cache", "none"), Map.of())).isNull();
    assertThat(CacheSettings.folder(HOME, Map.of("CUVETTE_CACHE", "none"))).isNull();
    assertThat(CacheSettings.folder(Map.of("user.home", "?"), Map.of())).isNull();
    assertThat(CacheSettings.folder(Map.of(), Map.of())).isNull();
  }

  @Test
  void textThatIsNoPath_isNamedWithItsSetting() {
    assertThatThrownBy(() -> CacheSettings.folder(HOME, Map.of("CUVETTE_CACHE", "a\0b")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("CUVETTE_CACHE: 'a");
  }

  @Test
  void folderOfThisProcess_isThatOfItsProperty() {
    String before = System.getProperty("cuvette.cache");
    try {
      System.setProperty("cuvette.cache", "/of/property");
      assertThat(CacheSettings.folder()).isEqualTo(Path.of("/of/property"));
      System.setProperty("cuvette.cache", "none");
      assertThat(CacheSettings.folder()).isNull();
    } finally {
      if (before == null) {
        System.clearProperty("cuvette.cache");
      } else {
        System.setProperty("cuvette.cache", before);
      }
    }
  }
}

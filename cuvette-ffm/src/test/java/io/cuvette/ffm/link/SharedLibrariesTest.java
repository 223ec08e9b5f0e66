package io.cuvette.ffm.link;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

class SharedLibrariesTest {

  @Test
  @EnabledOnOs(OS.LINUX)
  void loadError_namesTheFile_whateverItsLetters() {
    assertThat(SharedLibraries.loadError("/nowhere/größe-ж.so")).contains("/nowhere/größe-ж.so");
  }
}

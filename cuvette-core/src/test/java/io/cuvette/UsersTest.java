package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Users;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the number of a user is worth. */
class UsersTest {
  @Test
  void numbersOfAll_areCompleteOnlyInOneOrMoreRangesOfAll() {
    assertThat(Users.isComplete(List.of("         0          0 4294967295"))).isTrue();
    assertThat(Users.isComplete(List.of("0 0 65534", "65534 65534 4294901761"))).isTrue();
    for (List<String> some :
        List.of(
            List.<String>of(),
            List.of("         0       1000          1"),
            List.of("0 1000 1", "1 100000 65536"))) {
      assertThat(Users.isComplete(some)).isFalse();
    }
  }

  @Test
  void userOfThisProcess_isItsOwn() {
    FakeDescriptors descriptors = new FakeDescriptors();
    assertThat(Users.own(descriptors)).isEqualTo(FakeDescriptors.USER);
  }

  @Test
  void numberOfEverybody_isRefused_whereSomeHaveNone() {
    List<String> some = List.of("0 1000 1");
    List<String> all = List.of("0 0 4294967295");
    assertThatThrownBy(() -> Users.checked(65534, 65534, some))
        .isInstanceOf(SecurityException.class)
        .hasMessageContaining("user: 65534 stands for all users without a number")
        .hasMessageMatching(".* \\(expected: one that /\\S+ gives a number\\)");
    assertThat(Users.checked(65534, 65534, all)).isEqualTo(65534);
    assertThat(Users.checked(65533, 65534, some)).isEqualTo(65533);
  }

  @Test
  void numbers_areThoseOfTheFiles_orTheUsualOnes(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("numbers");
    assertThat(Users.overflow(file)).isEqualTo(65534);
    assertThat(Users.numbers(file)).isEmpty();
    Files.writeString(file, " 1234\n5\n");
    assertThat(Users.overflow(file)).isEqualTo(1234);
    assertThat(Users.numbers(file)).containsExactly(" 1234", "5");
    Files.writeString(file, "none");
    assertThat(Users.overflow(file)).isEqualTo(65534);
  }
}

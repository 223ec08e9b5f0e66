package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Users;
import java.util.List;
import org.junit.jupiter.api.Test;

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
}

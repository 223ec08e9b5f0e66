package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.LaunchWatcher.Touch;
import io.cuvette.instrument.internal.memory.TouchedBytes.Conflict;
import org.junit.jupiter.api.Test;

class TouchedBytesTest {
  private final TouchedBytes first = new TouchedBytes();
  private final TouchedBytes second = new TouchedBytes();

  @Test
  void conflict_isFound_behindPagesThatBothOnlyRead() {
    for (int page = 0; page < 16; page++) {
      first.touched(page * 4096L, 4, Touch.READ);
      second.touched(page * 4096L, 4, Touch.READ);
    }
    assertThat(first.conflict(second)).isNull();
    for (int page = 0; page < 16; page++) {
      TouchedBytes writer = new TouchedBytes();
      for (int each = 0; each < 16; each++) {
        writer.touched(each * 4096L, 1, Touch.READ);
      }
      writer.touched(page * 4096L + 3, 1, Touch.WRITE);
      assertThat(first.conflict(writer))
          .isEqualTo(new Conflict(page * 4096L + 3, Touch.READ, Touch.WRITE));
    }
  }

  @Test
  void conflict_isAtItsByte_whereverInAPage() {
    for (int at = 0; at < 4096; at++) {
      TouchedBytes writer = new TouchedBytes();
      TouchedBytes reader = new TouchedBytes();
      writer.touched(0x5000 + at, 1, Touch.WRITE);
      reader.touched(0x5000 + at, 1, Touch.READ);
      assertThat(writer.conflict(reader))
          .isEqualTo(new Conflict(0x5000 + at, Touch.WRITE, Touch.READ));
    }
  }

  @Test
  void bytesSideBySide_areNoConflict() {
    first.touched(8, 4, Touch.WRITE);
    second.touched(12, 4, Touch.WRITE);
    second.touched(4, 4, Touch.ATOMIC);
    assertThat(first.conflict(second)).isNull();
    second.touched(11, 1, Touch.ATOMIC);
    assertThat(first.conflict(second)).isEqualTo(new Conflict(11, Touch.WRITE, Touch.ATOMIC));
  }

  @Test
  void pagesThatOnlyOneTouched_areNoConflict() {
    first.touched(0x1000, 4, Touch.WRITE);
    first.touched(0x2000, 4, Touch.WRITE);
    second.touched(0x3000, 4, Touch.WRITE);
    assertThat(first.conflict(second)).isNull();
    assertThat(second.conflict(first)).isNull();
    second.touched(0x2002, 1, Touch.READ);
    assertThat(first.conflict(second)).isEqualTo(new Conflict(0x2002, Touch.WRITE, Touch.READ));
  }

  @Test
  void pagesBeyondTheMost_areLeftOut() {
    int most = 2048;
    for (int page = 0; page <= most; page++) {
      first.touched(page * 4096L, 4, Touch.WRITE);
    }
    second.touched(most * 4096L, 4, Touch.WRITE);
    assertThat(first.conflict(second)).isNull();
    second.touched((most - 1) * 4096L, 4, Touch.WRITE);
    assertThat(first.conflict(second))
        .isEqualTo(new Conflict((most - 1) * 4096L, Touch.WRITE, Touch.WRITE));
  }
}

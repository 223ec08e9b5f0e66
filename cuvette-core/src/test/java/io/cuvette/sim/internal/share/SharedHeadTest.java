package io.cuvette.sim.internal.share;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.UUID;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class SharedHeadTest {
  private static final long BYTES = 3 << 20;

  @ParameterizedTest
  @EnumSource
  void headThatWasWritten_isReadAsItWas(SharedFile.Kind kind) {
    SharedPlace place = new SharedPlace(UUID.randomUUID(), 1, 7);
    SharedHead head = SharedHead.of(place, BYTES);
    MemorySegment mapped = Arena.ofAuto().allocate(kind.headBytes, 8);
    head.write(mapped, kind, 42);

    assertThat(SharedHead.read(mapped, kind, kind.headBytes + BYTES, BYTES)).isEqualTo(head);
  }
}

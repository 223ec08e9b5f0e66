package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.internal.base.PagedBytes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Pages that are shared, cut off or never written against arrays that are none of that. */
class PagedBytesTest {
  private static final int PAGE = PagedBytes.PAGE;
  private static final int[] SIZES = {1, 4, 512, PAGE, 3 * PAGE + 700, 2 * PAGE};
  private static final int STEPS = 60;
  private static final int SEEDS = 12;

  /** The same bytes twice. */
  private static final class Twin {
    final PagedBytes paged;
    final byte[] plain;

    Twin(int bytes) {
      paged = new PagedBytes(bytes);
      plain = new byte[bytes];
      Arrays.fill(plain, PagedBytes.UNTOUCHED);
    }

    void check() {
      byte[] read = new byte[plain.length];
      paged.read(0, MemorySegment.ofArray(read));
      assertThat(Arrays.mismatch(read, plain)).isEqualTo(-1);
    }

    /** What was written is given, all of it; the rest was never touched. */
    void checkWritten() {
      byte[] written = new byte[plain.length];
      Arrays.fill(written, PagedBytes.UNTOUCHED);
      paged.forEachWritten((offset, bytes) ->
          MemorySegment.copy(
              bytes, ValueLayout.JAVA_BYTE, 0, written, (int) offset, (int) bytes.byteSize()));
      assertThat(Arrays.mismatch(written, plain)).isEqualTo(-1);
    }
  }

  @Test
  void lastByteOfManyPages_isThereAsAnyOther() {
    for (long pages : new long[] {1, 2, 511, 512, 513, 65_535, 65_536, 65_537, 131_072}) {
      for (long bytes : new long[] {pages * PAGE - 1, pages * PAGE}) {
        PagedBytes paged = new PagedBytes(bytes);
        paged.write(bytes - 1, MemorySegment.ofArray(new byte[] {5}));
        byte[] read = new byte[1];
        paged.read(bytes - 1, MemorySegment.ofArray(read));
        assertThat(read[0]).isEqualTo((byte) 5);
      }
    }
  }

  @Test
  void randomWritesFillsAndCopies_giveTheBytesOfAnArray() {
    for (int seed = 0; seed < SEEDS; seed++) {
      SplittableRandom random = new SplittableRandom(seed);
      Twin[] twins = new Twin[3];
      for (int i = 0; i < twins.length; i++) {
        twins[i] = new Twin(SIZES[random.nextInt(SIZES.length)]);
      }
      for (int step = 0; step < STEPS; step++) {
        step(random, twins[random.nextInt(twins.length)], twins[random.nextInt(twins.length)]);
      }
      for (Twin twin : twins) {
        twin.check();
        twin.checkWritten();
      }
    }
  }

  private static void step(SplittableRandom random, Twin to, Twin from) {
    int offset = place(random, to.plain.length);
    int bytes = 1 + place(random, to.plain.length - offset);
    switch (random.nextInt(4)) {
      case 0 -> write(random, to, offset, bytes);
      case 1 -> fill(random.nextInt(), to, offset, bytes);
      case 2 -> fill(0x01010101 * random.nextInt(256), to, 0, to.plain.length);
      default -> copy(random, to, from);
    }
    readSome(random, to);
  }

  /** Often the begin of a page. */
  private static int place(SplittableRandom random, int below) {
    int place = random.nextInt(below);
    return random.nextBoolean() ? place : place / PAGE * PAGE;
  }

  private static void write(SplittableRandom random, Twin to, int offset, int bytes) {
    byte[] written = new byte[bytes];
    random.nextBytes(written);
    to.paged.write(offset, MemorySegment.ofArray(written));
    System.arraycopy(written, 0, to.plain, offset, bytes);
  }

  /** Whole words at places of words, as the driver has it. */
  private static void fill(int pattern, Twin to, int offset, int bytes) {
    int from = offset / 4 * 4;
    int length = Math.min(bytes / 4 * 4 + 4, (to.plain.length - from) / 4 * 4);
    if (length > 0) {
      to.paged.fill(from, length, pattern);
      for (int i = 0; i < length; i++) {
        to.plain[from + i] = (byte) (pattern >>> (8 * (i % 4)));
      }
    }
  }

  private static void copy(SplittableRandom random, Twin to, Twin from) {
    int source = place(random, from.plain.length);
    int offset = place(random, to.plain.length);
    int bytes = Math.min(from.plain.length - source, to.plain.length - offset);
    boolean apart = Math.abs(source - offset) >= bytes;
    if (to != from || apart) {
      to.paged.copyFrom(offset, from.paged, source, bytes);
      System.arraycopy(from.plain, source, to.plain, offset, bytes);
    }
  }

  private static void readSome(SplittableRandom random, Twin of) {
    int offset = place(random, of.plain.length);
    int bytes = 1 + random.nextInt(of.plain.length - offset);
    byte[] read = new byte[bytes];
    of.paged.read(offset, MemorySegment.ofArray(read));
    assertThat(Arrays.mismatch(read, 0, bytes, of.plain, offset, offset + bytes)).isEqualTo(-1);
  }

  @Test
  void pageThatWasCopied_isNobodysAlias() {
    Twin one = new Twin(2 * PAGE);
    Twin two = new Twin(2 * PAGE);
    fill(0x01010101, one, 0, 2 * PAGE);
    two.paged.copyFrom(0, one.paged, 0, 2 * PAGE);
    System.arraycopy(one.plain, 0, two.plain, 0, 2 * PAGE);
    SplittableRandom random = new SplittableRandom(1);
    write(random, one, 5, 1);
    two.check();
    one.check();
    write(random, two, PAGE + 5, 1);
    two.check();
    one.check();
  }

  @Test
  void fillOfManyPages_isOnePage_untilSomeoneWrites() {
    Twin one = new Twin(3 * PAGE);
    fill(0x04030201, one, 0, 3 * PAGE);
    write(new SplittableRandom(1), one, PAGE + 1, 1);
    one.check();
  }

  @Test
  void onlyWhatWasWritten_isGiven() {
    PagedBytes bytes = new PagedBytes(600L * PAGE + 5);
    bytes.write(PAGE + 1, MemorySegment.ofArray(new byte[1]));
    bytes.write(600L * PAGE + 4, MemorySegment.ofArray(new byte[1]));
    StringBuilder given = new StringBuilder();
    bytes.forEachWritten((offset, segment) ->
        given.append(offset).append('+').append(segment.byteSize()).append(' '));
    assertThat(given.toString()).isEqualTo(PAGE + "+" + PAGE + " " + 600 * PAGE + "+5 ");
  }
}

package io.cuvette.cli.bench;

import java.util.SplittableRandom;
import java.util.function.LongSupplier;

/**
 * Sizes of blocks that pools find hard to fit together. They are those for a device with 80 GiB or
 * more; on a smaller one they are smaller in proportion.
 */
enum Mix {
  /** Every size up to 64 MiB is as likely. */
  UNIFORM_64_MIB("uniform-64MiB", 64L << 20),
  /** Every size up to 1 GiB is as likely. */
  UNIFORM_1_GIB("uniform-1GiB", 1L << 30),
  /** Every size up to 4 GiB is as likely. */
  UNIFORM_4_GIB("uniform-4GiB", 4L << 30),
  /** Every magnitude from 1 KiB to 4 GiB is as likely. */
  LOG_UNIFORM_4_GIB("log-uniform-4GiB", 4L << 30) {
    @Override
    LongSupplier sizes(long most, SplittableRandom random) {
      double magnitudes = Math.log((double) most / LEAST);
      return () -> (long) (LEAST * Math.exp(magnitudes * random.nextDouble()));
    }
  },
  /** Eight layers, each twice as large as the one before; every batch has its own length, ±10 %. */
  BATCH_DRIFT("batch-drift", 2L << 30) {
    @Override
    LongSupplier sizes(long most, SplittableRandom random) {
      return new LongSupplier() {
        private int layer;
        private double length;

        @Override
        public long getAsLong() {
          if (layer == 0) {
            length = (0.9 + 0.2 * random.nextDouble()) / 1.1;
          }
          long bytes = (long) (length * (most >> (LAYERS - 1 - layer)));
          layer = (layer + 1) % LAYERS;
          return Math.max(1, bytes);
        }
      };
    }
  };

  private static final long FULL_SIZE = 80L << 30;
  private static final long LEAST = 1L << 10;
  private static final int LAYERS = 8;

  private final String text;
  private final long mostBytes;

  Mix(String text, long mostBytes) {
    this.text = text;
    this.mostBytes = mostBytes;
  }

  /** How it is called in results. */
  String text() {
    return text;
  }

  /** The largest block on a device with so much memory. */
  long mostBytes(long memory) {
    double part = Math.min(1, (double) memory / FULL_SIZE);
    return Math.max(2 * LEAST, (long) (mostBytes * part));
  }

  /** Draws sizes, from 1 to the most bytes. */
  LongSupplier sizes(long most, SplittableRandom random) {
    return () -> random.nextLong(1, most + 1);
  }
}

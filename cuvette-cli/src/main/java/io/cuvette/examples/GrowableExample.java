package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.GrowableBuffer;
import io.cuvette.StreamOptions;
import java.lang.foreign.MemorySegment;

/**
 * A cache of keys and values, as language models keep one for each conversation: it grows by the
 * token at one address, and is cut back to the prompt for the next answer. Stateless.
 */
public final class GrowableExample {
  private static final long MIB = 1L << 20;

  /** Keys and values of one token in all layers. */
  private static final int TOKEN_BYTES = 128 << 10;

  private static final int MOST_TOKENS = 4096;
  private static final int PROMPT = 40;
  private static final int ANSWER = 160;

  private GrowableExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    try (CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        GrowableBuffer cache = cuda.currentDevice().growable((long) MOST_TOKENS * TOKEN_BYTES)) {
      out.say("a cache for %,d tokens of %d KiB:".formatted(MOST_TOKENS, TOKEN_BYTES >> 10));
      out.check("cache.maxBytes() in MiB", cache.maxBytes() / MIB, 512L);
      out.check("cache.blockBytes(), memory that it has", cache.blockBytes(), 0L);
      long address = cache.address();
      append(cache, stream, 0, PROMPT);
      try (Buffer prompt = cache.slice(0, (long) PROMPT * TOKEN_BYTES)) {
        append(cache, stream, PROMPT, PROMPT + ANSWER);
        out.say("%d tokens later:".formatted(PROMPT + ANSWER));
        out.check("bytes in MiB", cache.byteSize() / MIB, 25L);
        out.check("memory is little more", cache.blockBytes() <= cache.byteSize() + 32 * MIB, true);
        out.check("the address is the same", cache.address() == address, true);
        out.check("the first token, through a view", token(prompt, stream, 0), 0);
        out.check("the last one", token(cache, stream, PROMPT + ANSWER - 1), PROMPT + ANSWER - 1);

        out.say("back to the prompt, for another answer:");
        long before = cache.blockBytes();
        cache.shrink((long) PROMPT * TOKEN_BYTES); // waits for the stream
        out.check("memory was given back", cache.blockBytes() < before, true);
        out.check("the prompt is there", token(prompt, stream, PROMPT - 1), PROMPT - 1);
      }
      refused(cache, out);
    }
  }

  /** One more token at a time: most calls of grow find the memory mapped already. */
  private static void append(GrowableBuffer cache, CudaStream stream, int from, int to) {
    for (int token = from; token < to; token++) {
      long start = (long) token * TOKEN_BYTES;
      cache.grow(start + TOKEN_BYTES);
      try (Buffer row = cache.slice(start, TOKEN_BYTES)) {
        row.fillInts(token, stream); // queued, does not wait
      }
    }
  }

  /** The last number of a token. */
  private static int token(Buffer cache, CudaStream stream, int token) {
    int[] back = new int[1];
    stream.synchronize();
    long last = (long) (token + 1) * TOKEN_BYTES - Integer.BYTES;
    try (Buffer number = cache.slice(last, Integer.BYTES)) {
      number.copyTo(MemorySegment.ofArray(back));
    }
    return back[0];
  }

  private static void refused(GrowableBuffer cache, Output out) {
    out.say("more than was reserved is refused, and changes nothing:");
    long before = cache.byteSize();
    try {
      cache.grow(cache.maxBytes() + 1);
      throw new WrongResultException("grew beyond what is reserved");
    } catch (IllegalArgumentException e) {
      out.show("grow", String.valueOf(e.getMessage()));
    }
    out.check("bytes", cache.byteSize(), before);
  }
}

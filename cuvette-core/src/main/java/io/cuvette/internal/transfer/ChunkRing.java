package io.cuvette.internal.transfer;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The chunks of one transfer, which stand for one part of it after the other. It begins with one,
 * and gets more when it could use them and there is memory. Confined to the thread that transfers,
 * but for {@link #at}.
 */
final class ChunkRing implements AutoCloseable {
  private final Staging staging;
  private final Memory device;
  private final OpenStream stream;

  /** Those behind the first one, which is not its own. */
  private final List<StagingChunk> more = new ArrayList<>();

  private final ArrayDeque<StagingChunk> free = new ArrayDeque<>();

  /** The chunk of each part that is under way. */
  private final @Nullable StagingChunk[] parts;

  /** The bytes of each part but the last. */
  private final long chunkBytes;

  private boolean isLimited;

  /**
   * A ring that begins with a chunk.
   *
   * @param first stands for parts of as many bytes as it has
   * @param most how many chunks there are at most
   */
  ChunkRing(Staging staging, Memory device, OpenStream stream, StagingChunk first, int most) {
    this.staging = staging;
    this.device = device;
    this.stream = stream;
    this.parts = new StagingChunk[most];
    this.chunkBytes = first.byteSize();
    this.isLimited = !first.isPinned();
    free.add(first);
  }

  long chunkBytes() {
    return chunkBytes;
  }

  int most() {
    return parts.length;
  }

  /** Has a chunk stand for a part; false if there is none now. */
  boolean take(int part) {
    StagingChunk chunk = free.poll();
    if (chunk == null && !isLimited && 1 + more.size() < parts.length) {
      chunk = staging.more(device, stream, chunkBytes);
      isLimited = chunk == null;
      if (chunk != null) {
        more.add(chunk);
      }
    }
    if (chunk == null) {
      return false;
    }
    parts[part % parts.length] = chunk;
    return true;
  }

  /** The chunk that stands for a part. */
  StagingChunk at(int part) {
    return Objects.requireNonNull(parts[part % parts.length]);
  }

  /** A part is done. */
  void free(int part) {
    free.add(at(part));
  }

  @Override
  public void close() {
    Failures failures = new Failures();
    more.forEach(chunk -> failures.run(chunk::close));
    failures.throwFirst();
  }
}

package io.cuvette;

import io.cuvette.internal.program.CacheSettings;
import java.nio.file.Path;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Where {@link CudaProgram} keeps what it compiled, so that the next process, or the next run, need
 * not compile it again. The key of an entry has the source, the headers with their content, the
 * options, the architecture, and the version and the file of the compiler. Entries are files that
 * this user alone can read, in a folder that this user alone can change; a folder of somebody else,
 * one that others can write to, or a link is not used. What was not used for longest goes when a
 * new entry exceeds the limit. A damaged entry is as none, and a folder that cannot be read or
 * written is no error: the log says so once, and programs are compiled each time. A program whose
 * source or headers name a header by a macro ({@code #include NAME}) is never kept: what it reads
 * cannot be known. Several processes may use one folder at once. Immutable.
 *
 * @param folder the folder, which is made when it is needed; null if nothing is kept
 * @param limitBytes the size of all entries at most, in bytes, at least 1
 */
public record ProgramCache(@Nullable Path folder, long limitBytes) {
  /** The limit unless another is given: 256 MiB. */
  public static final long DEFAULT_LIMIT_BYTES = 256L << 20;

  /**
   * Creates a cache; nothing is read or written yet.
   *
   * @throws IllegalArgumentException if the limit is less than 1
   */
  public ProgramCache {
    if (limitBytes < 1) {
      throw new IllegalArgumentException(
          "limitBytes: %d (expected: >= 1; none() keeps nothing)".formatted(limitBytes));
    }
    folder = folder == null ? null : folder.toAbsolutePath().normalize();
  }

  /**
   * {@return the cache of this user: the folder of {@code -Dcuvette.cache}, else of the environment
   * variable {@code CUVETTE_CACHE}, else {@code cuvette} in {@code XDG_CACHE_HOME}, else {@code
   * .cache/cuvette} in the user's folder; none if the setting is {@code none}}
   */
  public static ProgramCache standard() {
    Path folder = CacheSettings.folder();
    return new ProgramCache(folder, DEFAULT_LIMIT_BYTES);
  }

  /**
   * {@return a cache in a folder, with the usual limit}
   *
   * @param folder the folder
   */
  public static ProgramCache in(Path folder) {
    return new ProgramCache(Objects.requireNonNull(folder, "folder"), DEFAULT_LIMIT_BYTES);
  }

  /** {@return a cache that keeps nothing} */
  public static ProgramCache none() {
    return new ProgramCache(null, DEFAULT_LIMIT_BYTES);
  }

  /**
   * {@return this cache with another limit}
   *
   * @param bytes the size of all entries at most, in bytes, at least 1
   * @throws IllegalArgumentException if it is less
   */
  public ProgramCache withLimit(long bytes) {
    return new ProgramCache(folder, bytes);
  }
}

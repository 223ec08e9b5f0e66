package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** Descriptors that are only numbers, and which of them are open. Thread-safe. */
class FakeDescriptors implements DescriptorCalls {
  static final int USER = 1000;
  private static final Duration LONG = Duration.ofSeconds(40);

  /** The user of this process. */
  volatile int user = USER;

  /** The user at the other end of every socket. */
  volatile int peerUser = USER;

  /** What connecting and receiving do; they fail. */
  volatile Supplier<RuntimeException> failure = () -> new UnsupportedOperationException("fake");

  /** Whether the system knows what is the same file. */
  volatile boolean tellsFilesApart = true;

  /** Whether the next comparison fails. */
  final AtomicBoolean failsToCompare = new AtomicBoolean();

  private final Set<Integer> open = ConcurrentHashMap.newKeySet();

  /** The file of a duplicate, by the first descriptor of it. */
  private final Map<Integer, Integer> originals = new ConcurrentHashMap<>();

  /** No process has so many. */
  private final AtomicInteger next = new AtomicInteger(1 << 24);

  /** Those that are open when the library's threads have closed what they were told to. */
  Set<Integer> open() {
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().equals("cuvette-close")) {
        try {
          boolean _ = thread.join(LONG);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
    }
    return open;
  }

  @Override
  public int memoryFile(String name, long bytes) {
    int made = next.getAndIncrement();
    open.add(made);
    return made;
  }

  @Override
  public boolean isMemoryFile(int descriptor) {
    return true;
  }

  @Override
  public int openMemoryFile(String path) {
    throw new UnsupportedOperationException("openMemoryFile");
  }

  @Override
  public Sameness compare(int descriptor, int other) {
    checkOpen(descriptor);
    checkOpen(other);
    if (failsToCompare.getAndSet(false)) {
      throw new UncheckedIOException(new IOException("compare"));
    }
    Sameness told = original(descriptor) == original(other) ? Sameness.SAME : Sameness.OTHER;
    return tellsFilesApart ? told : Sameness.UNKNOWN;
  }

  private int original(int descriptor) {
    return originals.getOrDefault(descriptor, descriptor);
  }

  private void checkOpen(int descriptor) {
    if (!open.contains(descriptor)) {
      throw new AssertionError("use of " + descriptor + ", which is closed");
    }
  }

  @Override
  public int duplicate(int descriptor) {
    checkOpen(descriptor);
    int duplicate = memoryFile("duplicate", 0);
    originals.put(duplicate, original(descriptor));
    return duplicate;
  }

  @Override
  public boolean isOpen(int descriptor) {
    return open.contains(descriptor);
  }

  @Override
  public void close(int descriptor) {
    if (!open.remove(descriptor)) {
      throw new AssertionError("close of " + descriptor + ", which is closed");
    }
  }

  @Override
  public int listen(String path) {
    throw new UnsupportedOperationException("listen");
  }

  @Override
  public boolean isBound(String path) {
    return false;
  }

  @Override
  public int lock(String path, Duration timeout) {
    try {
      Files.createFile(Path.of(path));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return memoryFile("lock", 0);
  }

  @Override
  public int accept(int listener, Duration timeout) {
    throw new UnsupportedOperationException("accept");
  }

  @Override
  public int connect(String path, Duration timeout) {
    throw failure.get();
  }

  @Override
  public int peerUser(int socket) {
    return peerUser;
  }

  @Override
  public int user() {
    return user;
  }

  @Override
  public void send(int socket, byte[] bytes, int[] descriptors, Duration timeout) {
    throw new UnsupportedOperationException("send");
  }

  @Override
  public Received receive(int socket, int maxBytes, Duration timeout) {
    throw failure.get();
  }
}

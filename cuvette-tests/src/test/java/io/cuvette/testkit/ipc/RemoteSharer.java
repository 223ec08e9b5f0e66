package io.cuvette.testkit.ipc;

import io.cuvette.AllocationHandle;
import io.cuvette.BufferDescriptor;
import io.cuvette.EventDescriptor;
import io.cuvette.PageHandles;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.PeerJvm;
import io.cuvette.testkit.support.Peers;
import java.time.Duration;
import java.util.HexFormat;

/**
 * A {@link Sharer} in another JVM, as a test sees it. What the other refuses is an AssertionError
 * with the refusal. Confined to one test.
 */
final class RemoteSharer implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final PeerJvm jvm;
  private boolean ended;

  private RemoteSharer(PeerJvm jvm) {
    this.jvm = jvm;
  }

  static RemoteSharer start(Peers peers, Subject subject) {
    return new RemoteSharer(peers.start(subject).run(Sharer.class));
  }

  /** Asks for one thing; see {@link Sharer}. */
  String ask(Object... words) {
    tell(words);
    return answer();
  }

  /** Asks without waiting: {@link #answer} does. */
  void tell(Object... words) {
    StringBuilder line = new StringBuilder();
    for (Object word : words) {
      line.append(line.isEmpty() ? "" : " ").append(text(word));
    }
    jvm.say(line);
  }

  String answer() {
    String answer = jvm.hear();
    if (!answer.startsWith("ok ")) {
      throw new AssertionError(answer);
    }
    return answer.substring("ok ".length());
  }

  /** Gives it a pool. */
  RemoteSharer importPool(String name, SharedPool kind, AllocationHandle handle) {
    jvm.channel().send(handle);
    ask("receivePool", name, kind);
    return this;
  }

  /** Gives it a pool of a device. */
  void importPoolOf(int device, String name, AllocationHandle handle) {
    jvm.channel().send(handle);
    ask("receivePoolOf", name, device);
  }

  /** Takes a pool of it. */
  AllocationHandle exportPool(String name) {
    ask("sendPool", name);
    return jvm.channel().receiveAllocationHandle(PATIENCE);
  }

  /** Gives it a buffer by its pages. */
  void importPages(String name, PageHandles handles) {
    jvm.channel().send(handles);
    ask("receivePages", name);
  }

  /** Takes pages of it. */
  PageHandles exportPages(String pool, String buffer) {
    tell("sendPages", pool, buffer); // more than the socket may hold
    PageHandles handles = jvm.channel().receivePageHandles(PATIENCE);
    String _ = answer();
    return handles;
  }

  BufferDescriptor descriptor(String buffer) {
    return BufferDescriptor.fromBytes(HexFormat.of().parseHex(ask("descriptor", buffer)));
  }

  EventDescriptor eventDescriptor(String event) {
    return EventDescriptor.fromBytes(HexFormat.of().parseHex(ask("eventDescriptor", event)));
  }

  boolean holds(String buffer, long seed) {
    return Boolean.parseBoolean(ask("holds", buffer, seed));
  }

  /** Closes things, and waits until that is done on the device too. */
  void closeAll(String... names) {
    for (String name : names) {
      ask("close", name);
    }
    ask("synchronize");
  }

  /** Kills the process without a warning. */
  void kill() {
    ended = true;
    jvm.kill();
  }

  /** The process exits and closes nothing. */
  void exit() {
    ended = true;
    jvm.exit();
  }

  /** Ends the program, which must have closed what it does not leave to its Cuda. */
  @Override
  public void close() {
    try (jvm) {
      if (!ended) {
        jvm.say("end");
        jvm.finish();
      }
    }
  }

  private static String text(Object word) {
    return switch (word) {
      case BufferDescriptor descriptor -> HexFormat.of().formatHex(descriptor.toBytes());
      case EventDescriptor descriptor -> HexFormat.of().formatHex(descriptor.toBytes());
      default -> word.toString();
    };
  }
}

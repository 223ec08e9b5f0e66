package io.cuvette.testkit.races;

import io.cuvette.AllocationHandle;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.PageHandles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ref.Reference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** Operations of {@code IpcChannel} and {@code IpcListener}, with both ends here. Stateless. */
final class ChannelOperations {
  private static final Duration PATIENCE = Duration.ofSeconds(40);
  private static final AtomicInteger NAMES = new AtomicInteger();

  private ChannelOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addListeners(all);
    addSends(all);
    addReceives(all);
    return all;
  }

  private static void addListeners(List<Operation> all) {
    all.add(listener("accept(Duration)", listener -> listener.accept(PATIENCE).close()));
    all.add(listener("close()", IpcListener::close));
    all.add(channel("close()", _ -> {}, IpcChannel::close));
  }

  private static Operation listener(String method, Consumer<IpcListener> body) {
    return Operation.simulated(
        "IpcListener." + method,
        stage -> {
          IpcListener listener = stage.ended(Closer.SHARED, IpcListener.open(path()));
          stage.made(IpcChannel.connect(listener.path(), PATIENCE)); // somebody to accept
          return () -> body.accept(listener);
        });
  }

  private static void addSends(List<Operation> all) {
    all.add(
        channel(
            "send(byte[], AllocationHandle[])", _ -> {}, channel -> channel.send(new byte[100])));
    all.add(
        channel(
            "send(AllocationHandle)",
            _ -> {},
            channel -> channel.send(Exporter.ONE.device.allocationHandle())));
    all.add(
        channel(
            "send(BufferDescriptor)",
            _ -> {},
            channel -> channel.send(Exporter.ONE.plain.descriptor())));
    all.add(
        channel(
            "send(EventDescriptor)",
            _ -> {},
            channel -> channel.send(Exporter.ONE.event.descriptor())));
    all.add(
        channel(
            "send(PageHandles)",
            _ -> {},
            channel -> {
              try (PageHandles handles = Exporter.ONE.pages()) {
                channel.send(handles);
              }
            }));
  }

  private static void addReceives(List<Operation> all) {
    all.add(
        channel(
            "receiveMessage(Duration)",
            theirs -> theirs.send(new byte[100]),
            channel -> channel.receiveMessage(PATIENCE).close()));
    all.add(
        channel(
            "receiveAllocationHandle(Duration)",
            theirs -> theirs.send(Exporter.ONE.device.allocationHandle()),
            channel -> {
              try (AllocationHandle _ = channel.receiveAllocationHandle(PATIENCE)) {
                // closed at once
              }
            }));
    all.add(
        channel(
            "receiveBufferDescriptor(Duration)",
            theirs -> theirs.send(Exporter.ONE.plain.descriptor()),
            channel -> channel.receiveBufferDescriptor(PATIENCE)));
    all.add(
        channel(
            "receiveEventDescriptor(Duration)",
            theirs -> theirs.send(Exporter.ONE.event.descriptor()),
            channel -> channel.receiveEventDescriptor(PATIENCE)));
    all.add(
        channel(
            "receivePageHandles(Duration)",
            theirs -> {
              try (PageHandles handles = Exporter.ONE.pages()) {
                theirs.send(handles);
              }
            },
            channel -> channel.receivePageHandles(PATIENCE).close()));
  }

  private static Operation channel(
      String method, Consumer<IpcChannel> before, Consumer<IpcChannel> body) {
    return Operation.simulated(
        "IpcChannel." + method,
        stage -> {
          try (IpcListener listener = IpcListener.open(path())) {
            IpcChannel ours =
                stage.ended(Closer.SHARED, IpcChannel.connect(listener.path(), PATIENCE));
            IpcChannel theirs = stage.made(listener.accept(PATIENCE));
            before.accept(theirs);
            return () -> {
              body.accept(ours);
              Reference.reachabilityFence(theirs); // the collector would close it
            };
          }
        });
  }

  /** A path that nobody used before. */
  private static Path path() {
    return Folder.ONE.resolve("c" + NAMES.incrementAndGet());
  }

  /** Made when it is first needed. */
  private static final class Folder {
    private static final Path ONE = make();

    private static Path make() {
      try {
        Path folder = Files.createTempDirectory("races");
        folder.toFile().deleteOnExit();
        return folder;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}

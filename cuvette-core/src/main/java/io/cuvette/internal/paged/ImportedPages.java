package io.cuvette.internal.paged;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.base.OneByOne;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.session.Session;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The pages of other processes that this one uses. Two imports are of the same pages if the system
 * says that their descriptors are of the same files; nothing that a peer claims counts.
 * Thread-safe.
 */
public final class ImportedPages {
  /** Whoever looks at the pages or changes how often they are used; no lock is held. */
  private final OneByOne<ImportedPages> users = new OneByOne<>();

  private final List<Pages> known = new ArrayList<>();
  private long made;

  /** Pages with descriptors of their own, which are open as long as they are used. */
  public final class Pages {
    private final PageFiles files;

    /** Tells them from others. */
    public final ByteBuffer key;

    private int uses = 1;

    private Pages(PageFiles files, long number) {
      this.files = files;
      this.key = ByteBuffer.allocate(Long.BYTES).putLong(0, number);
    }

    public long bytes() {
      return files.allBytes();
    }

    /** One more user. */
    public void hold() {
      users.alone(
          ImportedPages.this,
          () -> {
            uses++;
          });
    }

    /** One user less. */
    public void release() {
      users.alone(
          ImportedPages.this,
          () -> {
            uses--;
            if (uses == 0) {
              known.remove(this);
              files.close();
            }
          });
    }
  }

  /** The pages of some descriptors, for one user more: {@link Pages#release} follows. */
  public Pages use(PageFiles files) {
    return users.alone(
        this,
        () -> {
          Pages pages = find(files);
          if (pages == null) {
            pages = add(files.duplicate());
          } else {
            pages.uses++;
          }
          return pages;
        });
  }

  private @Nullable Pages find(PageFiles files) {
    for (Pages pages : known) {
      if (pages.files.isSame(files)) {
        return pages;
      }
    }
    return null;
  }

  private Pages add(PageFiles own) {
    try {
      Pages pages = new Pages(own, made++);
      known.add(pages);
      return pages;
    } catch (OutOfMemoryError e) {
      Failures.runAfter(e, own::close);
      throw e;
    }
  }

  /** One mapping of pages for a device. Used by one thread at a time. */
  public static final class PageMapping {
    private final Device device;
    private final Session session;
    private final Pages pages;

    /** Gives back what a failure left behind: with a later step, or with the Cuda. */
    private final ObjectEnding left;

    private @Nullable PagedRange range;

    public PageMapping(Device device, Pages pages) {
      this.device = device;
      this.session = device.session();
      this.pages = pages;
      this.left = new ObjectEnding(this, session, new Left(), null);
    }

    /**
     * Reserves as many addresses as the pages have bytes, and maps them.
     *
     * @throws IllegalArgumentException if the pages are not what their descriptors claim
     */
    public long map() {
      Paging paging = Paging.of(device, List.of());
      for (int i = 0; i < pages.files.count(); i++) {
        if (pages.files.bytes(i) % paging.unit() != 0) {
          throw new IllegalArgumentException(
              "pages: page %d has %d bytes (expected: a multiple of %d)"
                  .formatted(i, pages.files.bytes(i), paging.unit()));
        }
      }
      session.children().add(left.atEndOfSession());
      try {
        PagedRange mine = PagedRange.reserve(paging, pages.bytes());
        range = mine;
        mine.mapAll(pages.files, this::check);
        left.forget();
        return mine.address();
      } catch (RuntimeException | Error e) {
        Failures.runAfter(e, left::reclaim);
        if (e instanceof CudaException failure) {
          throw explained(failure);
        }
        throw e;
      }
    }

    private void check(AllocationProperties properties) {
      int at = properties.locationId();
      boolean reaches =
          properties.locationType() == MemLocationType.DEVICE
              && (at == device.id()
                  || device.ask(driver -> driver.devices().deviceCanAccessPeer(device.id(), at)));
      if (!reaches) {
        throw new IllegalArgumentException(
            "pages: memory of location %d:%d (expected: of %s, or of a device that it can access)"
                .formatted(properties.locationType(), at, device));
      }
    }

    /**
     * Unmaps the pages and gives their addresses back. If a call fails that may be done all the
     * same, nobody calls this again, and the rest is done with a later step.
     */
    public void unmap(VirtualCalls by) {
      PagedRange mine = Objects.requireNonNull(range);
      try {
        mine.free(by);
      } catch (RuntimeException | Error e) {
        if (Once.mayBeDone(e)) {
          leave(mine, e);
        }
        throw e;
      }
    }

    private void leave(PagedRange mine, Throwable failure) {
      if (session.isClosed()) { // another Cuda frees it, which does not know the rest
        Failures.runAfter(failure, mine::freeAtEnd);
      } else {
        session.children().add(left.atEndOfSession());
        boolean _ = left.end();
        left.failed();
      }
    }

    private final class Left implements ObjectEnding.Ended {
      @Override
      public void end(ObjectEnding ending) {
        if (range != null) {
          range.free();
        }
        ending.forget();
      }

      @Override
      public void endNow(ObjectEnding ending) {
        if (range != null) {
          range.freeAtEnd();
        }
      }

      @Override
      public String toString() {
        return "addresses of imported pages";
      }
    }
  }

  private static CudaException explained(CudaException e) {
    return e.status() == CudaStatus.INVALID_VALUE || e.status() == CudaStatus.INVALID_HANDLE
        ? e.explained("a descriptor is of no memory of a GPU, or of another size than claimed")
        : e;
  }
}

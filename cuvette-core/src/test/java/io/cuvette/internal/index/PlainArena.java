package io.cuvette.internal.index;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * What {@link BlockArena} must do, written the plain way: chunks are lists of pieces, every search
 * looks at every piece. Which of several equally small pieces is taken is left to the caller. Not
 * thread-safe.
 */
final class PlainArena {
  record Piece(long address, long bytes, boolean used) {
    long end() {
      return address + bytes;
    }
  }

  /** Pieces of each chunk in address order, by the chunk's tag. */
  private final TreeMap<Integer, List<Piece>> chunks = new TreeMap<>();

  void adopt(long address, long bytes, int chunk) {
    chunks.put(chunk, new ArrayList<>(List.of(new Piece(address, bytes, true))));
  }

  /** Size of the smallest free piece of at least so many bytes, or -1. */
  long bestFitBytes(long bytes) {
    return chunks.values().stream()
        .flatMap(List::stream)
        .filter(piece -> !piece.used() && piece.bytes() >= bytes)
        .mapToLong(Piece::bytes)
        .min()
        .orElse(-1);
  }

  /** Size of the smallest free chunk of at least so many bytes, or -1. */
  long bestWholeBytes(long bytes) {
    return chunks.values().stream()
        .filter(pieces -> pieces.size() == 1)
        .map(List::getFirst)
        .filter(piece -> !piece.used() && piece.bytes() >= bytes)
        .mapToLong(Piece::bytes)
        .min()
        .orElse(-1);
  }

  Piece pieceAt(long address, int chunk) {
    return chunks.get(chunk).stream()
        .filter(piece -> piece.address() == address)
        .findAny()
        .orElseThrow(() -> new AssertionError("no piece at " + address + " of chunk " + chunk));
  }

  int pieces(int chunk) {
    return chunks.get(chunk).size();
  }

  /** Takes the head of the free piece at an address. */
  void take(long address, long bytes, int chunk) {
    List<Piece> pieces = chunks.get(chunk);
    Piece piece = pieceAt(address, chunk);
    int at = pieces.indexOf(piece);
    pieces.set(at, new Piece(address, bytes, true));
    if (piece.bytes() > bytes) {
      pieces.add(at + 1, new Piece(address + bytes, piece.bytes() - bytes, false));
    }
  }

  /** Frees the piece at an address, and then joins whatever free neighbours there are. */
  void give(long address, int chunk) {
    List<Piece> pieces = chunks.get(chunk);
    Piece piece = pieceAt(address, chunk);
    pieces.set(pieces.indexOf(piece), new Piece(address, piece.bytes(), false));
    for (int i = pieces.size() - 1; i > 0; i--) {
      Piece left = pieces.get(i - 1);
      Piece right = pieces.get(i);
      if (!left.used() && !right.used()) {
        pieces.remove(i);
        pieces.set(i - 1, new Piece(left.address(), left.bytes() + right.bytes(), false));
      }
    }
  }

  /** Cuts the used piece at an address after so many bytes. */
  void cut(long address, long bytes, int chunk) {
    Piece piece = pieceAt(address, chunk);
    List<Piece> pieces = chunks.get(chunk);
    int at = pieces.indexOf(piece);
    pieces.set(at, new Piece(address, bytes, true));
    pieces.add(at + 1, new Piece(address + bytes, piece.bytes() - bytes, true));
  }

  /** Makes a chunk of its own of the piece at an address and what is behind it. */
  void split(long address, int chunk, int made) {
    List<Piece> pieces = chunks.get(chunk);
    int at = pieces.indexOf(pieceAt(address, chunk));
    List<Piece> tail = pieces.subList(at, pieces.size());
    chunks.put(made, new ArrayList<>(tail));
    tail.clear();
  }

  Set<Integer> freeChunks() {
    Set<Integer> free = new TreeSet<>(chunks.keySet());
    free.removeIf(chunk -> pieces(chunk) > 1 || chunks.get(chunk).getFirst().used());
    return free;
  }

  /** The first address of a chunk. */
  long start(int chunk) {
    return chunks.get(chunk).getFirst().address();
  }

  void forget(int chunk) {
    chunks.remove(chunk);
  }

  /** Used and free bytes, used and free pieces, chunks, releasable bytes, largest free bytes. */
  List<Long> totals() {
    long[] bytes = new long[2];
    long[] count = new long[2];
    long releasable = 0;
    long largest = 0;
    for (List<Piece> pieces : chunks.values()) {
      for (Piece piece : pieces) {
        int kind = piece.used() ? 0 : 1;
        bytes[kind] += piece.bytes();
        count[kind]++;
        if (!piece.used()) {
          releasable += pieces.size() == 1 ? piece.bytes() : 0;
          largest = Math.max(largest, piece.bytes());
        }
      }
    }
    return List.of(
        bytes[0], bytes[1], count[0], count[1], (long) chunks.size(), releasable, largest);
  }
}

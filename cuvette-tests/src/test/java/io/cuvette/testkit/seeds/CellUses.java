package io.cuvette.testkit.seeds;

import io.cuvette.testkit.seeds.CellBlock.Use;
import java.util.LinkedHashMap;
import java.util.Map;

/** Who used memory last: of each stream the number of its work. Not thread-safe. */
class CellUses {
  final Map<ProgramStream, Integer> written = new LinkedHashMap<>();
  private final Map<ProgramStream, Integer> added = new LinkedHashMap<>();
  private final Map<ProgramStream, Integer> read = new LinkedHashMap<>();

  /** What must come before a use. */
  Map<ProgramStream, Integer> before(Use use) {
    Map<ProgramStream, Integer> all = new LinkedHashMap<>(written);
    if (use != Use.READ) {
      ProgramStream.merge(all, read);
    }
    if (use != Use.ADD) {
      ProgramStream.merge(all, added);
    }
    return all;
  }

  void note(Use use, ProgramStream stream, int number) {
    if (use == Use.WRITE) {
      forget();
    }
    Map<ProgramStream, Integer> uses =
        switch (use) {
          case READ -> read;
          case ADD -> added;
          case WRITE -> written;
        };
    uses.merge(stream, number, Math::max);
  }

  /** Nothing that comes need care for what was. */
  void forget() {
    written.clear();
    added.clear();
    read.clear();
  }
}

package io.cuvette.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.cli.CommandFailure;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TraceReaderTest {
  @TempDir Path folder;

  private Trace read(String text) {
    return TraceReader.read(TraceFiles.write(folder, "t.csv", text));
  }

  @Test
  void operations_areReadInOrderWithTheirStreamsAndLines() {
    Trace trace =
        read(
            TraceFiles.HEADER
                + "1,14:21:19.998533,allocate,0x30a000000,256,0x2\n"
                + "1,14:21:20.000001,allocate failure,(nil),99999999999,0x0\n"
                + "2,14:21:20.000002,allocate,0x30a000100,1000,(nil)\n"
                + "1,14:21:20.000003,free,0x30a000000,256,0x0\n"
                + "18446744073709551615,5,allocate,30A000000,7,7f00deadbeef\n");
    assertThat(trace.bytes()).containsExactly(256, 1000, Trace.FREE, 7);
    assertThat(trace.slots()).containsExactly(0, 1, 0, 0);
    assertThat(trace.streamIds()).containsExactly(2, 0, 0x7f00deadbeefL);
    assertThat(trace.streams()).containsExactly(0, 1, 1, 2);
    assertThat(trace.lines()).containsExactly(2, 4, 5, 6);
    assertThat(trace.slotCount()).isEqualTo(2);
    assertThat(trace.peakLiveBytes()).isEqualTo(1256);
    assertThat(trace.failures()).isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"\n", "\r\n"})
  void endsOfLinesOfUnixAndWindows_andBlankLastLines(String end) {
    String text = TraceFiles.HEADER + "0,0,allocate,0x1000,5,0x0\n0,1,free,0x1000,5,0x0";
    assertThat(read(text.replace("\n", end)).operations()).isEqualTo(2);
    assertThat(read(text.replace("\n", end) + end).operations()).isEqualTo(2);
    assertThat(read(text.replace("\n", end) + end + end + end).operations()).isEqualTo(2);
  }

  @Test
  void header_mayHaveAByteOrderMarkSpacesAndMoreColumns() {
    assertThat(read("\ufeff" + TraceFiles.HEADER).operations()).isZero();
    assertThat(read("Thread, Time, Action, Pointer, Size, Stream\n").operations()).isZero();
    Trace more =
        read("Thread,Time,Action,Pointer,Size,Stream,Seq,Tag\n0,0,allocate,0x1,5,0x0,0,a b\n");
    assertThat(more.bytes()).containsExactly(5);
  }

  @ParameterizedTest
  @ValueSource(strings = {"14:21:19.998533", "14:21:19:998533", "14:21:19", "17", "17.5"})
  void times_areClocksOrCounts(String time) {
    assertThat(read(TraceFiles.HEADER + "1," + time + ",allocate,0x1,5,0x0\n").operations())
        .isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", "14:21", "14:21:19:", "14:21:19:x", "24:00:00", "-1", "1:2", "1:2:3:4"})
  void otherTimes_areRefused(String time) {
    assertThatThrownBy(() -> read(TraceFiles.HEADER + "1," + time + ",allocate,0x1,5,0x0\n"))
        .hasMessageContaining("t.csv:2: expected a time");
  }

  @Test
  void blocksWithoutBytes_shareTheNullPointer() {
    Trace trace =
        read(
            TraceFiles.HEADER
                + "0,0,allocate,(nil),0,0x0\n0,0,allocate,0x0,0,0x0\n"
                + "0,0,free,(nil),0,0x0\n0,0,free,(nil),0,0x0\n");
    assertThat(trace.bytes()).containsExactly(0, 0, Trace.FREE, Trace.FREE);
    assertThat(trace.slots()[2]).isNotEqualTo(trace.slots()[3]);
  }

  @Test
  void gzip_isFoundByItsContent() {
    String text = TraceFiles.HEADER + "0,0,allocate,0x1000,5,0x0\n";
    assertThat(TraceReader.read(TraceFiles.gzip(folder, "plain.csv", text)).operations())
        .isEqualTo(1);
    assertThat(TraceReader.read(TraceFiles.write(folder, "not.gz", text)).operations())
        .isEqualTo(1);
  }

  @Test
  void manyLines_crossTheBuffersEnds() {
    StringBuilder text = new StringBuilder(TraceFiles.HEADER);
    int pairs = 60_000;
    for (int i = 1; i <= pairs; i++) {
      text.append("7,%d,allocate,0x%x,%d,0x%x\n".formatted(i, i * 512L, i, i % 5));
    }
    for (int i = 1; i <= pairs; i++) {
      text.append("7,%d,free,0x%x,%d,0x%x\r\n".formatted(i, i * 512L, i, i % 3));
    }
    Trace trace = TraceReader.read(TraceFiles.gzip(folder, "many.csv.gz", text.toString()));
    assertThat(trace.operations()).isEqualTo(2 * pairs);
    assertThat(Arrays.stream(trace.bytes()).limit(pairs).sum()).isEqualTo(trace.peakLiveBytes());
    assertThat(trace.peakLiveBytes()).isEqualTo(pairs * (pairs + 1L) / 2);
    assertThat(trace.slotCount()).isEqualTo(pairs);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          0,0,allocate,0x1,5                | 6 columns, found 5
          0,0,allocate,0x1,5,0x0,more       | 6 columns, found 7
          x,0,allocate,0x1,5,0x0            | a thread number, found 'x'
          -1,0,allocate,0x1,5,0x0           | a thread number, found '-1'
          ,0,allocate,0x1,5,0x0             | a thread number, found ''
          0,yesterday,allocate,0x1,5,0x0    | a time, a whole number or HH:MM:SS.ffffff, found
          0,25:00:00.0,allocate,0x1,5,0x0   | a time
          0,12:60:00.0,allocate,0x1,5,0x0   | a time
          0,12:00:00.x,allocate,0x1,5,0x0   | a time
          0,,allocate,0x1,5,0x0             | a time
          0,0,alloc,0x1,5,0x0               | allocate, allocate failure or free, found 'alloc'
          0,0,,0x1,5,0x0                    | allocate, allocate failure or free, found ''
          0,0,ALLOCATE,0x1,5,0x0            | allocate, allocate failure or free, found 'ALLOCATE'
          0,0,allocate,zzz,5,0x0            | a hexadecimal pointer or (nil), found 'zzz'
          0,0,allocate,,5,0x0               | a hexadecimal pointer or (nil), found ''
          0,0,allocate,0x,5,0x0             | a hexadecimal pointer or (nil), found '0x'
          0,0,allocate,0x12345678123456789,5,0x0 | a hexadecimal pointer or (nil)
          0,0,allocate,(nil),5,0x0          | a pointer, or the action 'allocate failure'
          0,0,allocate,0x1,-5,0x0           | a size in bytes, 0 to 2^63 - 1, found '-5'
          0,0,allocate,0x1,5.5,0x0          | a size in bytes, 0 to 2^63 - 1, found '5.5'
          0,0,allocate,0x1,0x5,0x0          | a size in bytes
          0,0,allocate,0x1,9223372036854775808,0x0 | a size in bytes
          0,0,allocate,0x1,,0x0             | a size in bytes
          0,0,allocate,0x1,5,               | a hexadecimal stream or (nil), found ''
          0,0,allocate,0x1,5,null           | a hexadecimal stream or (nil), found 'null'
          0,0,allocate,0xAA,5,0x0           | a pointer that is not allocated already, found '0,0
          0,0,allocate,0x1,9223372036854775807,0x0 | less than 8 EiB live at once
          0,0,free,0xBB,5,0x0               | a pointer that is allocated, found '0,0,free,0xBB
          0,0,free,(nil),0,0x0              | a pointer that is allocated
          0,0,allocate failure,zz,5,0x0     | a hexadecimal pointer or (nil), found 'zz'
          garbage                           | 6 columns, found 1 in 'garbage'
          """)
  void wrongLine_isNamedWithWhatWasExpectedAndFound(String line, String message) {
    String text = TraceFiles.HEADER + "0,0,allocate,0xaa,5,0x0\n" + line + "\n";
    assertThatThrownBy(() -> read(text))
        .isInstanceOf(MalformedTraceException.class)
        .hasMessageStartingWith(folder.resolve("t.csv") + ":3: expected " + message);
  }

  @Test
  void freedTwice_andBlankLinesInside_areRefused() {
    String start = TraceFiles.HEADER + "0,0,allocate,0x1,5,0x0\n";
    assertThatThrownBy(() -> read(start + "0,0,free,0x1,5,0x0\n0,0,free,0x1,5,0x0\n"))
        .hasMessageContaining(":4: expected a pointer that is allocated");
    assertThatThrownBy(() -> read(start + "\n\n0,0,free,0x1,5,0x0\n"))
        .hasMessageContaining(":3: expected an operation, found a blank line");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "0,0,allocate,0x1,5,0x0\n",
        "Thread,Time,Action,Pointer,Size\n",
        "Time,Thread,Action,Pointer,Size,Stream\n",
        "\n",
        "\0\1\2"
      })
  void wrongHeader_isRefused(String text) {
    assertThatThrownBy(() -> read(text))
        .isInstanceOf(MalformedTraceException.class)
        .hasMessageContaining(":1: expected the header Thread,Time,Action,Pointer,Size,Stream");
  }

  @Test
  void emptyFile_isRefused() {
    assertThatThrownBy(() -> read("")).hasMessageEndingWith(", found an empty file");
  }

  @Test
  void veryLongLine_isCutInTheMessage() {
    assertThatThrownBy(() -> read(TraceFiles.HEADER + "x".repeat(3_000_000)))
        .isInstanceOf(MalformedTraceException.class)
        .hasMessageContaining("…")
        .satisfies(e -> assertThat(e.getMessage().length()).isLessThan(400));
  }

  /** Of such a line a part would be taken for all of it. */
  @Test
  void lineThatIsTooLong_isRefusedWhereItIs() {
    int most = LineSource.LONGEST_LINE;
    String row = "0,0,allocate,0x1,5,0x0,";
    for (String end : new String[] {"\n", "\r\n", ""}) {
      for (int more : new int[] {1, 2, 3, 300_000}) {
        String text = "Thread,Time,Action,Pointer,Size,Stream,Tag\n" + row;
        assertThatThrownBy(() -> read(text + "x".repeat(most - row.length() + more) + end))
            .as("%d bytes too many", more)
            .isInstanceOf(MalformedTraceException.class)
            .hasMessageContaining(":2: expected a line of at most 65536 bytes");
        assertThat(read(text + "x".repeat(most - row.length()) + end).operations()).isEqualTo(1);
      }
    }
  }

  @Test
  void damagedGzip_isRefused() throws IOException {
    StringBuilder text = new StringBuilder(TraceFiles.HEADER);
    for (int i = 1; i < 5000; i++) {
      text.append("0,%d,allocate,0x%x,%d,0x0\n".formatted(i * 7919, i * 997L, i * 31));
    }
    Path file = Path.of(TraceFiles.gzip(folder, "t.csv.gz", text.toString()));
    byte[] bytes = Files.readAllBytes(file);
    TraceFiles.writeBytes(folder, "cut.gz", Arrays.copyOf(bytes, bytes.length / 2));
    assertThatThrownBy(() -> TraceReader.read(folder.resolve("cut.gz").toString()))
        .isInstanceOf(CommandFailure.class)
        .hasMessageContaining("expected intact gzip data");
    TraceFiles.writeBytes(folder, "start.gz", Arrays.copyOf(bytes, 5));
    assertThatThrownBy(() -> TraceReader.read(folder.resolve("start.gz").toString()))
        .hasMessageEndingWith("start.gz:1: expected intact gzip data, found: its end");
    bytes[bytes.length / 2] ^= 0x55;
    TraceFiles.writeBytes(folder, "spoilt.gz", bytes);
    assertThatThrownBy(() -> TraceReader.read(folder.resolve("spoilt.gz").toString()))
        .isInstanceOf(CommandFailure.class);
  }

  @Test
  void fileThatIsNone_isRefused() {
    assertThatThrownBy(() -> TraceReader.read(folder.resolve("missing").toString()))
        .hasMessageEndingWith("missing: no such file");
    assertThatThrownBy(() -> TraceReader.read(folder.toString()))
        .isInstanceOf(CommandFailure.class)
        .hasMessageContaining("cannot be read");
    assertThatThrownBy(() -> TraceReader.read("\0")).isInstanceOf(CommandFailure.class);
  }
}

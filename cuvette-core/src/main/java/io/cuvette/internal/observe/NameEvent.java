package io.cuvette.internal.observe;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** A name as the flight recorder keeps it. Confined to one thread. */
@Name("io.cuvette.NvtxName")
@Label("NVTX Name")
@Description("A name that the program gave to a stream, a device or a category")
@Category({"Cuvette", "NVTX"})
@StackTrace(false)
final class NameEvent extends Event {
  @Label("Named")
  String named = "";

  @Label("Name")
  String name = "";
}

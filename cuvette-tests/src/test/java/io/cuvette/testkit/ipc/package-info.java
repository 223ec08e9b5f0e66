/** The contract of memory and events shared between two processes: each test has a second JVM. */
@NullMarked
package io.cuvette.testkit.ipc;

import org.jspecify.annotations.NullMarked;

/** What the sanitizer knows of memory: blocks, who uses them, what was written. */
@NullMarked
package io.cuvette.instrument.internal.memory;

import org.jspecify.annotations.NullMarked;

/** What tools are shown of a program: events of the flight recorder, and NVTX. */
@NullMarked
package io.cuvette.internal.observe;

import org.jspecify.annotations.NullMarked;

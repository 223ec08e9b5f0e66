/** What other libraries and tools are given: handles, and when to profile. */
@NullMarked
package io.cuvette.internal.interop;

import org.jspecify.annotations.NullMarked;

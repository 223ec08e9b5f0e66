/** NVTX through the interop library, or the library of the tool itself. */
@NullMarked
package io.cuvette.ffm.nvtx;

import org.jspecify.annotations.NullMarked;

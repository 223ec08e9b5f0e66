/** Exchange of data with other libraries in the process. */
@NullMarked
package io.cuvette.ffm.foreign;

import org.jspecify.annotations.NullMarked;

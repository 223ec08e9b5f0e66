/** Random programs of several threads over the whole API, whose objects live short. */
@NullMarked
package io.cuvette.testkit.crowd;

import org.jspecify.annotations.NullMarked;

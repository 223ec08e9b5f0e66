/** How something ends: once, not while it is used, and found when it is forgotten. */
@NullMarked
package io.cuvette.internal.lifetime;

import org.jspecify.annotations.NullMarked;

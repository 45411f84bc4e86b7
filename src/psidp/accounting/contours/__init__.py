"""delta by a contour integral of the loss's moment generating function, with every error charged."""

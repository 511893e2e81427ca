"""Scales of similarity: one angle, several numbers. Floors in this package are cosines; others are converted here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import acos, cos, pi


@dataclass(frozen=True)
class Scale:
    """A way to write the cosine of two vectors as another similarity (or a distance) and back."""

    name: str
    about: str
    lowest: float
    highest: float
    write: Callable[[float], float]  # from a cosine
    read: Callable[[float], float]  # to a cosine

    def cosine(self, value: float) -> float:
        """The cosine that this value stands for."""
        self.check(value)
        return min(1.0, max(-1.0, self.read(value)))

    def of_cosine(self, cosine: float) -> float:
        """What a cosine is on this scale."""
        COSINE.check(cosine)
        return self.write(cosine)

    def check(self, value: float) -> None:
        if not self.lowest <= value <= self.highest:
            raise ValueError(
                f"{value} is not on the scale {self.name} ({self.about}), which runs from {self.lowest:.6g} to "
                f"{self.highest:.6g}; the scales are {', '.join(SCALES)}"
            )


COSINE = Scale("cosine", "the cosine itself", -1.0, 1.0, lambda c: c, lambda value: value)
ANGULAR = Scale("angular", "1 - arccos/pi", 0.0, 1.0, lambda c: 1 - acos(c) / pi, lambda value: cos((1 - value) * pi))
# What the released codes of TextFooler, the hard-label attack and the context attack call similarity.
ONE_MINUS_ARCCOS = Scale(
    "one_minus_arccos", "1 - arccos, in radians", 1 - pi, 1.0, lambda c: 1 - acos(c), lambda value: cos(1 - value)
)
# A distance: small is near. Alzantot et al. bound it on word vectors.
SQUARED_DISTANCE = Scale(
    "squared_distance", "that of unit vectors", 0.0, 4.0, lambda c: 2 - 2 * c, lambda value: 1 - value / 2
)
SCALES = {scale.name: scale for scale in (COSINE, ANGULAR, ONE_MINUS_ARCCOS, SQUARED_DISTANCE)}


def floor_from(scale: str, value: float) -> float:
    """The cosine to give as a floor for a threshold printed on another scale."""
    return _named(scale).cosine(value)


def convert(value: float, scale: str, to: str) -> float:
    """The same similarity on another scale."""
    return _named(to).of_cosine(_named(scale).cosine(value))


def _named(scale: str) -> Scale:
    if scale not in SCALES:
        raise ValueError(f"there is no scale {scale!r}; there are {', '.join(SCALES)}")
    return SCALES[scale]

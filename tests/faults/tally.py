"""How many attacks of one kind were tried, and what each that did harm has done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Tally:
    """The outcome of a campaign of one kind of attack."""

    kind: str
    tried: int = 0
    harm: list[str] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Number of attacks that did harm."""
        return len(self.harm)

    @property
    def survived(self) -> int:
        """Number of attacks that did none."""
        return self.tried - self.lost

    def attempt(self, name: str, attack: Callable[[], None]) -> None:
        """Count an attack; an exception says what harm it did."""
        self.tried += 1
        try:
            attack()
        except Exception as error:
            self.harm.append(f"{name}: {type(error).__name__}: {error}"[:600])
